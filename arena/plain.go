package arena

import (
	"fmt"
	"reflect"
)

// counterparts of Go types that hold pointers, for the message.
var counterparts = map[reflect.Kind]string{
	reflect.String:  "; use arena.String",
	reflect.Slice:   "; use arena.Slice",
	reflect.Pointer: "; use arena.Ptr",
}

// CheckPlain says whether values of t may live in a block: nil, or an error that names the first field, at any depth,
// that holds a Go pointer, and its counterpart in this package. The collector does not look into a block, so what only
// a block points to would be lost.
//
// It walks the type, which costs a hundred allocations and more. Check a type once, where it is declared.
func CheckPlain(t reflect.Type) error {
	name := t.Name()
	if name == "" {
		name = t.String()
	}
	if path, found := goPointer(t, name); found != nil {
		return fmt.Errorf("%s (%s) holds a Go pointer%s", path, found, counterparts[found.Kind()])
	}
	return nil
}

// goPointer finds the first part of t that the collector would have to follow.
func goPointer(t reflect.Type, path string) (where string, found reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if where, found := goPointer(f.Type, path+"."+f.Name); found != nil {
				return where, found
			}
		}
		return "", nil
	case reflect.Array:
		if t.Len() == 0 {
			return "", nil
		}
		return goPointer(t.Elem(), path+"[0]")
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64, reflect.Complex64,
		reflect.Complex128:
		return "", nil
	}
	return path, t
}
