package save

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// typeLayout is the memory layout of a type. Kind is "struct", "array", a kind of package reflect
// with its size ("int64"), or one of package arena: ptr, slice, string, inline, handle.
type typeLayout struct {
	Name   string        `json:"name"`
	Kind   string        `json:"kind"`
	Size   uint64        `json:"size"`
	Of     string        `json:"of,omitempty"`    // of an array, a ptr, a slice
	Count  uint64        `json:"count,omitempty"` // of an array
	Fields []fieldLayout `json:"fields,omitempty"`
	Enum   []enumerator  `json:"enum,omitempty"` // the declared enumerators

	of     *typeLayout // the type that Of names
	parts  []typePart
	align  uint16 // in this process; 0 from a file
	id     uint16 // of a link; its further words have id+1 and so on
	isBool bool
	isLink bool // it is an arena.Ptr, Slice or String
	leads  bool // it is or has a link
	done   bool // these fields are set
}

type fieldLayout struct {
	Name   string `json:"name"`
	Offset uint64 `json:"offset"`
	Type   string `json:"type"`

	of *typeLayout
}

// typePart is a run of count adjacent bools or links in a type, or of values that have some.
type typePart struct {
	at, count uint64
	of        *typeLayout
}

// These are the kinds of package arena.
const (
	kindPtr, kindSlice, kindString = "ptr", "slice", "string"
	kindInline, kindHandle         = "inline", "handle"
)

// numbers are the kinds with a fixed size, by name. They are also types, but no layout lists them.
var numbers = func() map[string]*typeLayout {
	all := map[string]*typeLayout{}
	for _, t := range []reflect.Type{reflect.TypeFor[bool](), reflect.TypeFor[int8](), reflect.TypeFor[int16](),
		reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](),
		reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](),
		reflect.TypeFor[complex64](), reflect.TypeFor[complex128]()} {
		all[t.Name()] = typeOf(t, t.Name())
		all[t.Name()].complete()
	}
	return all
}()

func typeOf(t reflect.Type, name string) *typeLayout {
	return &typeLayout{Name: name, Kind: t.Kind().String(), Size: uint64(t.Size()), align: uint16(t.Align())}
}

// isPlain reports whether any bytes are a valid value, because the type has neither bools nor
// links.
func (t *typeLayout) isPlain() bool { return !t.isBool && !t.isLink && len(t.parts) == 0 }

// complete sets the fields that follow from the kind and the completed parts. No code reads blank
// fields.
func (t *typeLayout) complete() {
	t.isBool = t.Kind == "bool"
	t.isLink = t.Kind == kindPtr || t.Kind == kindSlice || t.Kind == kindString
	t.leads, t.done = t.isLink, true
	add := func(at, count uint64, of *typeLayout) {
		if !of.isPlain() && count != 0 {
			t.parts, t.leads = append(t.parts, typePart{at, count, of}), t.leads || of.leads
		}
	}
	if t.Kind == "array" {
		add(0, t.Count, t.of)
	}
	for _, f := range t.Fields {
		if f.Name != "_" {
			add(f.Offset, 1, f.of)
		}
	}
}

// leaf finds the innermost field or element at a byte. It returns the path, such as ".Goals[1].X",
// the type, or nil between fields, and the first byte.
func (t *typeLayout) leaf(at uint64) (path string, of *typeLayout, from uint64) {
	for t.Kind == "array" || t.Kind == "struct" {
		if t.Kind == "array" {
			path += fmt.Sprintf("[%d]", at/t.of.Size)
			from, at, t = from+at-at%t.of.Size, at%t.of.Size, t.of
			continue
		}
		i := slices.IndexFunc(t.Fields, func(f fieldLayout) bool { return at >= f.Offset && at-f.Offset < f.of.Size })
		if i < 0 {
			return path, nil, from
		}
		f := &t.Fields[i]
		path += "." + f.Name
		from, at, t = from+f.Offset, at-f.Offset, f.of
	}
	return path, t, from
}

var folders = regexp.MustCompile(`[^][{};*, ]+/`)

// typeName returns a type's name without the folders of packages.
func typeName(name string) string { return folders.ReplaceAllString(name, "") }

type describer struct {
	Types []*typeLayout
	known map[reflect.Type]*typeLayout
	used  map[string]int
	ids   uint64 // of links
	enums map[reflect.Type][]enumerator
}

func (d *describer) of(t reflect.Type) *typeLayout {
	if of := d.known[t]; of != nil {
		return of
	}
	name := typeName(t.String())
	if of := numbers[name]; of != nil {
		return of
	}
	if d.known == nil {
		d.known, d.used = map[reflect.Type]*typeLayout{}, map[string]int{}
	}
	if d.used[name]++; d.used[name] > 1 { // a type of another package has the name
		name = fmt.Sprintf("%s#%d", name, d.used[name])
	}
	of := typeOf(t, name)
	of.Enum = d.enums[t]
	d.known[t], d.Types = of, append(d.Types, of)
	generic, _, _ := strings.Cut(t.Name(), "[")
	to := pointsTo(t)
	switch ours := t.PkgPath() == arenaPath; {
	case to != nil && t.NumField() == 2:
		of.Kind = kindPtr
	case to != nil:
		of.Kind = kindSlice
	case ours && generic == "String":
		of.Kind, to = kindString, reflect.TypeFor[byte]()
	case ours && generic == "Inline":
		of.Kind = kindInline
	case ours && generic == "Handle":
		of.Kind = kindHandle
	case t.Kind() == reflect.Array:
		of.of, of.Count = d.of(t.Elem()), uint64(t.Len())
		of.Of = of.of.Name
	case t.Kind() == reflect.Struct:
		for f := range t.Fields() {
			if f.Type.Size() != 0 {
				is := d.of(f.Type)
				of.Fields = append(of.Fields, fieldLayout{f.Name, uint64(f.Offset), is.Name, is})
			}
		}
	case of.Kind == "int", of.Kind == "uint":
		of.Kind += fmt.Sprint(8 * of.Size)
	}
	if of.complete(); of.isLink {
		of.id = uint16(d.ids)
		d.ids += of.Size / linkWord
		of.of = d.of(to) // to may have such a link
		of.Of = of.of.Name
	}
	return of
}

func (t *typeLayout) check(known map[string]*typeLayout) error {
	of := known[t.Of]
	switch number := numbers[t.Kind]; {
	case !isPrintable(t.Name):
		return fmt.Errorf("its name can't be printed")
	case t.Size >= sizeMax:
		return fmt.Errorf("%d bytes", t.Size)
	case t.Kind != "struct" && len(t.Fields) != 0:
		return fmt.Errorf("a %s with fields", t.Kind)
	case t.checkEnum() != nil:
		return t.checkEnum()
	case number != nil && t.Size != number.Size, t.Kind == kindHandle && t.Size != 8, t.Kind == kindPtr &&
		t.Size != 8,
		(t.Kind == kindSlice || t.Kind == kindString) && t.Size != 16:
		return fmt.Errorf("a %s of %d bytes", t.Kind, t.Size)
	case number != nil, t.Kind == kindHandle, t.Kind == kindInline:
		return nil
	case t.Kind == "struct":
		return t.checkFields(known)
	case t.Kind != "array" && t.Kind != kindPtr && t.Kind != kindSlice && t.Kind != kindString:
		return fmt.Errorf("the kind %q", t.Kind)
	case of == nil:
		return fmt.Errorf("of the type %q, which is missing", t.Of)
	case t.Kind == "array" && (of.Size == 0 && t.Size != 0 || of.Size != 0 &&
		(t.Size/of.Size != t.Count || t.Size%of.Size != 0)):
		return fmt.Errorf("%d bytes for %d elements of %d", t.Size, t.Count, of.Size)
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
			return fmt.Errorf("field %q of the type %q, which is missing", f.Name, f.Type)
		case f.Offset < end || f.Offset > t.Size || of.Size > t.Size-f.Offset:
			return fmt.Errorf("field %q at byte %d of %d", f.Name, f.Offset, t.Size)
		}
		end = f.Offset + of.Size
	}
	return nil
}

func (t *typeLayout) differs(file *typeLayout) string {
	if file == nil {
		return fmt.Sprintf("type %s: the file has none", t.Name)
	}
	for i := range min(len(t.Fields), len(file.Fields)) {
		a, b := t.Fields[i], file.Fields[i]
		switch {
		case a.Name != b.Name:
			return fmt.Sprintf("type %s, field %d: %s, in the file %s", t.Name, i, a.Name, b.Name)
		case a.Type != b.Type:
			return fmt.Sprintf("type %s, field %s: %s, in the file %s", t.Name, a.Name, a.Type, b.Type)
		case a.Offset != b.Offset:
			return fmt.Sprintf("type %s, field %s: at byte %d, in the file %d", t.Name, a.Name, a.Offset,
				b.Offset)
		}
	}
	switch {
	case len(t.Fields) != len(file.Fields):
		return fmt.Sprintf("type %s: %d fields, in the file %d", t.Name, len(t.Fields), len(file.Fields))
	case t.Size != file.Size:
		return fmt.Sprintf("type %s: %d bytes, in the file %d", t.Name, t.Size, file.Size)
	case t.Kind != file.Kind || t.Of != file.Of || t.Count != file.Count:
		return fmt.Sprintf("type %s: %s, in the file %s", t.Name, strings.TrimSpace(t.Kind+" "+t.Of),
			strings.TrimSpace(file.Kind+" "+file.Of))
	case !slices.Equal(t.Enum, file.Enum):
		return fmt.Sprintf("type %s: the enumerators %v, in the file %v", t.Name, t.Enum, file.Enum)
	}
	return ""
}
