package plain

import (
	"cmp"
	"reflect"
)

// Type is a type as Walk needs it. Go returns one for a type of package reflect; upfront-vet has
// another implementation, for go/types.
type Type interface {
	Name() string    // without its package; "" if it has none
	PkgPath() string // "" if the type isn't declared
	String() string  // with the name of its package
	Kind() reflect.Kind
	Size() uintptr // in bytes; 0 if sizes aren't known, and then a walk visits no padding
	NumField() int
	Field(i int) (name string, offset uintptr, t Type)
	Len() int // of an array
	Elem() Type
}

// Part is a part of the values of a type: the value itself, a field, an element of an array, or
// padding.
type Part struct {
	Kind   reflect.Kind // Invalid: padding
	Type   Type         // nil: padding
	Name   string       // of a field; "" of any other part
	Path   string       // "Match.Goals[0].At"; for padding the path of the part before it
	Offset uintptr      // in bytes from the start of the value
	Size   uintptr      // in bytes
}

// Walk calls visit for t, and then for the parts of t in the order of their offsets. It visits each
// part before the part's own parts. It visits only the first element of an array, because all
// elements have the same parts. If visit returns false, the walk skips the part's own parts. Cost:
// a path and an interface for each part.
func Walk(t Type, visit func(p Part) (into bool)) {
	name := cmp.Or(t.Name(), t.String())
	Part{Kind: t.Kind(), Type: t, Path: name, Size: t.Size()}.walk(visit)
}

func (p Part) walk(visit func(Part) bool) {
	if !visit(p) {
		return
	}
	switch p.Kind {
	case reflect.Array:
		if p.Type.Len() != 0 {
			of := p.Type.Elem()
			Part{of.Kind(), of, "", p.Path + "[0]", p.Offset, of.Size()}.walk(visit)
		}
	case reflect.Struct:
		// ends at the next field if there is no padding
		before := Part{Path: p.Path, Offset: p.Offset}
		padding := func(to uintptr) {
			if end := before.Offset + before.Size; end != to {
				visit(Part{Path: before.Path, Offset: end, Size: to - end})
			}
		}
		for i := range p.Type.NumField() {
			name, offset, of := p.Type.Field(i)
			padding(p.Offset + offset)
			before = Part{of.Kind(), of, name, p.Path + "." + name, p.Offset + offset, of.Size()}
			before.walk(visit)
		}
		padding(p.Offset + p.Size)
	}
}

// Go returns the Type of a type of package reflect.
func Go(t reflect.Type) Type { return goType{t} }

// Go returns the reflect.Type of the part, or nil for padding. The walk must be over a type from
// [Go].
func (p Part) Go() reflect.Type {
	t, _ := p.Type.(goType)
	return t.Type
}

type goType struct{ reflect.Type }

func (t goType) Elem() Type { return goType{t.Type.Elem()} }

func (t goType) Field(i int) (name string, offset uintptr, of Type) {
	f := t.Type.Field(i)
	return f.Name, f.Offset, goType{f.Type}
}

// IsPointer reports whether the part is a Go pointer or a Go value that holds Go pointers, such as
// a string. It is false for a struct and an array, because the walk visits their parts.
func (p Part) IsPointer() bool { return p.Kind > reflect.Array && p.Kind != reflect.Struct }
