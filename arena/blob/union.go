package blob

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// Union is the common first field of several node types, the variants. A Link to a Union leads to a
// node of any variant. A Union begins with a Tag, and each type that Variants lists begins with the
// Union.
type Union interface{ Variants() []any }

// Tag is the index of a node's type among the variants. PutAs sets the Tag, and Verify checks it.
type Tag uint32

// Variant is one of the types that a Link[U] may lead to. Declare it once, at package level, with
// VariantOf. PutAs panics for the zero Variant, and its Of returns nil.
type Variant[U, V any] struct {
	_      [0]func(*U, *V) // forbids conversion from another Variant
	stored Tag             // plus 1
}

// VariantOf declares V as a variant of U. It panics if U.Variants doesn't list V.
func VariantOf[U Union, V any]() Variant[U, V] {
	var union U
	tag := slices.IndexFunc(union.Variants(), func(v any) bool { return reflect.TypeOf(v) == reflect.TypeFor[V]() })
	if tag < 0 {
		panic(fmt.Sprintf("blob: %v is no variant of %v", reflect.TypeFor[V](), reflect.TypeFor[U]()))
	}
	return Variant[U, V]{stored: Tag(tag) + 1}
}

func (v Variant[U, V]) tag() Tag {
	if v.stored == 0 {
		panic(bug("a zero Variant of %v; VariantOf makes one", reflect.TypeFor[V]()))
	}
	return v.stored - 1
}

// Of returns the whole node as a V, or nil if node is nil or of another variant. The node must be
// in a verified blob. Cost: two comparisons.
func (v Variant[U, V]) Of(node *U) *V {
	if node == nil || *(*Tag)(unsafe.Pointer(node))+1 != v.stored {
		return nil
	}
	return (*V)(unsafe.Pointer(node))
}

// isUnion reports whether t is a union. Its variants inherit its method, but don't begin with a
// Tag.
func isUnion(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[Union]()) && t.Kind() == reflect.Struct && t.NumField() != 0 &&
		t.Field(0).Type == reflect.TypeFor[Tag]()
}

func isVariant(t, union reflect.Type) bool {
	return isUnion(union) && slices.ContainsFunc(variantsOf(union), func(v any) bool { return reflect.TypeOf(v) == t })
}

func variantsOf(union reflect.Type) []any { return reflect.Zero(union).Interface().(Union).Variants() }

func (ts *types) union(l *layout, t reflect.Type) error {
	if !t.Implements(reflect.TypeFor[Union]()) || isUnion(t.Field(0).Type) {
		return nil
	}
	if !isUnion(t) {
		return fmt.Errorf("%s has variants: its first field must be a blob.Tag", l.name)
	}
	for _, v := range variantsOf(t) {
		vt := reflect.TypeOf(v)
		if vt.Kind() != reflect.Struct || vt.NumField() == 0 || vt.Field(0).Type != t {
			return fmt.Errorf("%v is a variant of %s: its first field must be a %s", vt, l.name, l.name)
		}
		i, err := ts.add(vt)
		if err != nil {
			return err
		}
		l.variants = append(l.variants, i)
		l.fields += fmt.Sprintf("\t| %s\n", nameOf(vt))
	}
	return nil
}

// tag adds a check of the Tag to each variant, for links to the variant and for structs that
// contain it.
func (ts *types) tag() {
	for _, union := range ts.list {
		for tag, i := range union.variants {
			v := &ts.list[i]
			v.checks = append(v.checks, check{field: v.name, what: isTag, typ: uint32(tag), repeat: 1})
		}
	}
}
