package save

import (
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// sizeMax is more than any state has: sums of such sizes and of what a file can list don't wrap.
const sizeMax = arena_c.OffsetMax

// check refuses a layout from outside that no ring has written: what lies outside of what it is in,
// a type that contains itself, a name that nothing has, or that a terminal would obey.
func (l *layout) check() error {
	known := l.byName()
	if len(known) != len(l.Types)+len(numbers) {
		return fmt.Errorf("a type is there twice")
	}
	for i := range l.Types {
		if err := l.Types[i].check(known); err != nil {
			return fmt.Errorf("type %q: %w", l.Types[i].Name, err)
		}
	}
	if name := l.nested(known); name != "" {
		return fmt.Errorf("type %q contains itself", name)
	}
	if !isPrintable(l.Plan) {
		return fmt.Errorf("plan %q, which can't be printed", l.Plan)
	}
	if len(l.Parts) == 0 {
		return fmt.Errorf("no region")
	}
	for i := range l.Parts {
		if err := l.Parts[i].check(known); err != nil {
			return fmt.Errorf("region %q: %w", l.Parts[i].Region, err)
		}
	}
	return nil
}

func (t *typeLayout) check(known map[string]*typeLayout) error {
	of := known[t.Of]
	switch size, isNumber := numbers[t.Kind]; {
	case !isPrintable(t.Name):
		return fmt.Errorf("a name that can't be printed")
	case t.Size >= sizeMax:
		return fmt.Errorf("%d bytes", t.Size)
	case t.Kind != "struct" && len(t.Fields) != 0:
		return fmt.Errorf("a %s with fields", t.Kind)
	case isNumber && t.Size != size, t.Kind == kindHandle && t.Size != 8, t.Kind == kindPtr &&
		t.Size != 8,
		(t.Kind == kindSlice || t.Kind == kindString) && t.Size != 16:
		return fmt.Errorf("a %s of %d bytes", t.Kind, t.Size)
	case isNumber, t.Kind == kindHandle, t.Kind == kindInline:
		return nil
	case t.Kind == "struct":
		return t.checkFields(known)
	case t.Kind != "array" && t.Kind != kindPtr && t.Kind != kindSlice && t.Kind != kindString:
		return fmt.Errorf("the kind %q", t.Kind)
	case of == nil:
		return fmt.Errorf("of %q, which nothing is", t.Of)
	case t.Kind == "array" && (of.Size == 0 && t.Size != 0 || of.Size != 0 &&
		(t.Size/of.Size != t.Count || t.Size%of.Size != 0)):
		return fmt.Errorf("%d bytes, of %d times %d", t.Size, t.Count, of.Size)
	}
	return nil
}

func (t *typeLayout) checkFields(known map[string]*typeLayout) error {
	end := uint64(0)
	for _, f := range t.Fields {
		of := known[f.Type]
		switch {
		case !isPrintable(f.Name):
			return fmt.Errorf("field %q, which can't be printed", f.Name)
		case of == nil:
			return fmt.Errorf("field %q of %q, which nothing is", f.Name, f.Type)
		case f.Offset < end || f.Offset > t.Size || of.Size > t.Size-f.Offset:
			return fmt.Errorf("field %q at byte %d of %d", f.Name, f.Offset, t.Size)
		}
		end = f.Offset + of.Size
	}
	return nil
}

// nested is a type that contains itself, or "".
func (l *layout) nested(known map[string]*typeLayout) string {
	const begun, done = 1, 2
	state := map[*typeLayout]int{}
	var look func(t *typeLayout) string
	look = func(t *typeLayout) (name string) {
		switch state[t] {
		case begun:
			return t.Name
		case done:
			return ""
		}
		state[t] = begun
		if t.Kind == "array" {
			name = look(known[t.Of])
		}
		for i := 0; i < len(t.Fields) && name == ""; i++ {
			name = look(known[t.Fields[i].Type])
		}
		state[t] = done
		return name
	}
	for i := range l.Types {
		if name := look(&l.Types[i]); name != "" {
			return name
		}
	}
	return ""
}

func (p *partLayout) check(known map[string]*typeLayout) error {
	if root := known[p.Root]; p.Size >= sizeMax || p.Mark >= sizeMax || root == nil ||
		root.Size > p.Size {
		return fmt.Errorf("a root %q in a state of %d bytes", p.Root, p.Size)
	}
	if !isPrintable(p.Region) || !isPrintable(p.Slot) {
		return fmt.Errorf("a name that can't be printed")
	}
	for _, s := range p.Of {
		if !isPrintable(s.Name) {
			return fmt.Errorf("a name that can't be printed")
		}
	}
	end := uint64(0)
	for i := range p.Pools {
		q := &p.Pools[i]
		of := known[q.Type]
		words := uint64(4)
		if q.Handles {
			words = 8
		}
		switch {
		case of == nil || q.Stride == 0 || q.Stride >= sizeMax || of.Size > q.Stride ||
			q.Count > p.Size/q.Stride:
			return fmt.Errorf("a pool of %d chunks of %d bytes for %q", q.Count, q.Stride, q.Type)
		case q.Numbers < end || q.Offset < q.Numbers || q.Offset-q.Numbers < (words+1)*q.Count ||
			(q.Offset-q.Numbers)%8 != 0 ||
			q.Offset > p.Size || q.Count*q.Stride > p.Size-q.Offset:
			return fmt.Errorf("a pool of %q at byte %d of %d", q.Type, q.Offset, p.Size)
		}
		end = q.Offset + q.Count*q.Stride
	}
	if err := p.checkKept(known); err != nil {
		return err
	}
	for i := range p.Objects {
		o := &p.Objects[i]
		o.Scope, o.Label, o.Made = jsonfile.Printable(o.Scope), jsonfile.Printable(o.Label), jsonfile.Printable(o.Made)
		if of := known[o.Type]; of == nil || o.Offset > p.Size || o.Size > p.Size-o.Offset {
			return fmt.Errorf("an object of %q at byte %d of %d", o.Type, o.Offset, p.Size)
		}
	}
	return nil
}

// isPrintable says whether a name does nothing to a terminal.
func isPrintable(name string) bool { return jsonfile.Printable(name) == name }
