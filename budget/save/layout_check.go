package save

import (
	"cmp"
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// sizeMax is larger than any state. A sum of such sizes, as many as a file can list, doesn't
// overflow.
const sizeMax = arena_c.OffsetMax

// check returns an error for a layout that no ring has written: a part beyond its container, a type
// that contains itself, an unknown name, or a name that a terminal would obey.
func (l *layout) check() error {
	known := l.byName()
	if len(known) != len(l.Types)+len(numbers) {
		return fmt.Errorf("two types have the same name")
	}
	for _, t := range l.Types {
		if err := t.check(known); err != nil {
			return fmt.Errorf("type %q: %w", t.Name, err)
		}
	}
	if name := l.resolve(known); name != "" {
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

// resolve sets the types' pointers from their names. It returns the name of a type that contains
// itself, or "".
func (l *layout) resolve(known map[string]*typeLayout) (nested string) {
	begun := map[*typeLayout]bool{}
	var look func(t *typeLayout) string
	look = func(t *typeLayout) (nested string) {
		switch {
		case t.done:
			return ""
		case begun[t]:
			return t.Name
		}
		begun[t], t.of = true, known[t.Of]
		if t.Kind == "array" {
			nested = look(t.of)
		}
		for i := range t.Fields {
			f := &t.Fields[i]
			f.of = known[f.Type]
			nested = cmp.Or(nested, look(f.of))
		}
		t.complete()
		return nested
	}
	for _, t := range l.Types {
		nested = cmp.Or(nested, look(t))
	}
	return nested
}

func (p *partLayout) check(known map[string]*typeLayout) error {
	if root := known[p.Root]; p.Size >= sizeMax || p.Mark >= sizeMax || root == nil ||
		root.Size > p.Size {
		return fmt.Errorf("a root %q in a state of %d bytes", p.Root, p.Size)
	}
	if !isPrintable(p.Region) || !isPrintable(p.Slot) {
		return fmt.Errorf("its name can't be printed")
	}
	for _, s := range p.Of {
		if !isPrintable(s.Name) {
			return fmt.Errorf("its name can't be printed")
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
		case !isPrintable(q.Name):
			return fmt.Errorf("the name of a pool can't be printed")
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
	if err := p.checkVersioned(known); err != nil {
		return err
	}
	last := uint64(0)
	for _, h := range p.Heaps {
		if h.Offset%arena_c.HeapAlign != 0 || h.Size%arena_c.HeapAlign != 0 || h.Size == 0 || h.Offset < last ||
			h.Offset > p.Size || h.Size > p.Size-h.Offset {
			return fmt.Errorf("a heap of %d bytes at byte %d of %d", h.Size, h.Offset, p.Size)
		}
		last = h.Offset + h.Size
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

// checkVersioned checks the facts in files of programs with a State.Version.
func (p *partLayout) checkVersioned(known map[string]*typeLayout) error {
	for _, v := range p.Values {
		if !v.isIn(known, 0, p.Size) {
			return fmt.Errorf("%d values %q of %q at byte %d of %d", v.Count, v.What, v.Type, v.Offset, p.Size)
		}
	}
	for _, r := range p.Rooms {
		if !isPrintable(r.Name) || r.Offset > p.Size || r.Size > p.Size-r.Offset {
			return fmt.Errorf("an allocator %q at byte %d of %d", r.Name, r.Offset, p.Size)
		}
	}
	for i := range p.Changes {
		if err := p.Changes[i].check(known); err != nil {
			return err
		}
	}
	return nil
}

func isPrintable(name string) bool { return jsonfile.Printable(name) == name }
