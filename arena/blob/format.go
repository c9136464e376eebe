package blob

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"

	"github.com/upfront-mem/upfront/arena/plain"
)

// Format describes the types of a blob: the root's type, and all types that links lead to. Declare
// it once, at package level, with Of. The zero Format panics.
type Format[T any] struct {
	_     [0]*T // forbids conversion from another Format
	types *types
}

// types are in the order in which links from the root reach them; the root is the first.
type types struct {
	list  []layout
	index map[reflect.Type]uint32
	root  check
	text  string
	print uint64
}

// layout describes a type for Verify.
type layout struct {
	checks   []check // none: any bytes are valid
	variants []uint32
	size     uint32
	align    uint32
	name     string
	fields   string
}

// check is a check of one field in each value of a type.
type check struct {
	at     uint32 // offset in the value
	what   what
	plain  bool   // any bytes are valid at its target
	repeat uint32 // elements of an array in the value
	stride uint32
	typ    uint32 // of the node, or the part
	size   uint32 // of the node
	low    uint32 // the bits of its offset that must be 0
	field  string
}

type what uint8

const (
	isLink what = iota
	isArray
	isStr
	isBool
	isPart // a struct in the struct
	isTag  // of a variant; typ is its value
)

// target is the kind of a Link, Array or Str, and the type that it leads to.
type target interface {
	target() (what, reflect.Type)
}

// targetOf returns t as a target. A struct that embeds a target inherits its method, but isn't a
// target.
func targetOf(t reflect.Type) (target, bool) {
	if t.PkgPath() != reflect.TypeFor[Str]().PkgPath() {
		return nil, false
	}
	to, ok := reflect.Zero(t).Interface().(target)
	return to, ok
}

func (Link[T]) target() (what, reflect.Type)  { return isLink, reflect.TypeFor[T]() }
func (Array[T]) target() (what, reflect.Type) { return isArray, reflect.TypeFor[T]() }
func (Str) target() (what, reflect.Type)      { return isStr, reflect.TypeFor[byte]() }

// Of declares blobs whose root is a T. It panics if T leads to a field whose bytes aren't the same
// on every target, such as an int, a Go pointer or padding. The message names the field.
func Of[T any]() Format[T] {
	ts := &types{index: map[reflect.Type]uint32{}}
	if _, err := ts.add(reflect.TypeFor[T]()); err != nil {
		panic("blob: " + err.Error())
	}
	ts.tag()
	ts.flatten()
	var text strings.Builder
	for i, l := range ts.list {
		if i == 0 || l.fields != "" {
			fmt.Fprintf(&text, "%s\n%s", l.name, l.fields)
		}
	}
	ts.text = text.String()
	print := fnv.New64a()
	_, _ = print.Write([]byte(ts.text)) // a hash's Write doesn't fail
	ts.print = print.Sum64()
	return Format[T]{types: ts}
}

func (f Format[T]) declared() *types {
	if f.types == nil {
		panic(bug("a zero Format of %v; Of makes one", reflect.TypeFor[T]()))
	}
	return f.types
}

// add returns the index of a type, and checks a new type.
func (ts *types) add(t reflect.Type) (uint32, error) {
	if i, ok := ts.index[t]; ok {
		return i, nil
	}
	i := uint32(len(ts.list))
	ts.index[t] = i
	ts.list = append(ts.list, layout{name: nameOf(t)})
	l, err := ts.layout(t)
	ts.list[i] = l
	return i, err
}

func nameOf(t reflect.Type) string {
	if t.Name() != "" {
		return t.Name()
	}
	return t.String()
}

func (ts *types) layout(t reflect.Type) (layout, error) {
	l := layout{name: nameOf(t), size: uint32(t.Size()), align: alignOf(t)}
	if t.Size() == 0 || t.Size() >= 1<<31 {
		return l, fmt.Errorf("%s has %d bytes; a node has 1 at least, and less than 2 GiB", l.name, t.Size())
	}
	if _, ok := targetOf(t); ok || t.Kind() != reflect.Struct {
		c, err := ts.check(l.name, t)
		l.add(c)
		return l, err
	}
	if err := ts.fields(&l, t); err != nil {
		return l, err
	}
	return l, ts.union(&l, t)
}

func (l *layout) add(c check) {
	if c.repeat != 0 {
		l.checks = append(l.checks, c)
	}
}

// fields adds the check of each field to l. It returns an error for a bad field, and for padding
// between fields.
func (ts *types) fields(l *layout, t reflect.Type) error {
	end := uintptr(0)
	for i := range t.NumField() {
		f := t.Field(i)
		name := l.name + "." + f.Name
		if f.Offset != end || end%uintptr(alignOf(f.Type)) != 0 {
			return fmt.Errorf("%s has padding before it, which isn't the same on every target: put the larger "+
				"fields first, or a field _ [n]byte there", name)
		}
		end += f.Type.Size()
		check := ts.check
		if i == 0 && isVariant(t, f.Type) {
			check = ts.part
		}
		c, err := check(name, f.Type)
		if err != nil {
			return err
		}
		c.at = uint32(f.Offset)
		l.add(c)
		l.fields += fmt.Sprintf("\t%s %s\n", f.Name, spell(f.Type))
	}
	if end != t.Size() || end%uintptr(l.align) != 0 {
		return fmt.Errorf("%s has padding at its end: add a field _ [n]byte", l.name)
	}
	return nil
}

// unrolled is the maximum number of checks to which the parts and arrays of a type are unrolled.
const unrolled = 64

// flatten unrolls structs and short arrays into checks of the type that contains them, so that
// Verify handles one type at a time. Each check also gets the size and alignment of its target.
func (ts *types) flatten() {
	for i := range ts.list {
		flat := ts.flat(ts.list[i].checks)
		ts.list[i].checks = flat
	}
	ts.root = check{field: "root"}
	ts.root.leads(&ts.list[0])
	for _, l := range ts.list {
		for i := range l.checks {
			if k := &l.checks[i]; k.what != isTag {
				k.leads(&ts.list[k.typ])
			}
		}
	}
}

// flat returns the checks with each part replaced by the checks of its fields. A part in which any
// bytes are valid has no checks. Beyond `unrolled` checks parts stay parts, and arrays become
// parts.
func (ts *types) flat(checks []check) (to []check) {
	for _, k := range checks {
		of := []check{k}
		of[0].repeat = 1
		if k.what == isPart {
			of = ts.flat(ts.list[k.typ].checks)
			for i := range of {
				of[i].at += k.at
			}
		}
		switch {
		case len(of) == 0:
		case uint64(len(to))+uint64(k.repeat)*uint64(len(of)) <= unrolled:
			for n := range k.repeat {
				for _, one := range of {
					one.at += n * k.stride
					to = append(to, one)
				}
			}
		case k.repeat > 1 && k.what != isPart:
			to = append(to, ts.array(k))
		default:
			to = append(to, k)
		}
	}
	return to
}

// array returns the check of an array as a part whose element keeps the field's name.
func (ts *types) array(k check) check {
	one := k
	one.at, one.repeat = 0, 1
	ts.list = append(ts.list, layout{name: k.field, size: k.stride, align: 1, checks: []check{one}})
	k.what, k.typ = isPart, uint32(len(ts.list)-1)
	return k
}

// leads sets the properties of the check's target.
func (k *check) leads(to *layout) {
	k.size, k.low, k.plain = to.size, to.align-1, len(to.checks) == 0 && to.variants == nil
}

// check returns the check of a field. Its repeat is 0 if any bytes are valid.
func (ts *types) check(name string, t reflect.Type) (check, error) {
	c := check{field: name, repeat: 1, stride: uint32(t.Size())}
	if to, ok := targetOf(t); ok {
		what, elem := to.target()
		c.what = what
		if isUnion(elem) && what != isLink {
			return c, fmt.Errorf("%s: an Array of %v, whose variants differ in size; use one of Links", name, elem)
		}
		var err error
		c.typ, err = ts.add(elem)
		return c, err
	}
	switch t.Kind() {
	case reflect.Bool:
		c.what = isBool
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32,
		reflect.Uint64, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		c.repeat = 0
	case reflect.Array:
		c, err := ts.check(name, t.Elem())
		if err != nil || c.repeat == 0 {
			return c, err
		}
		if c.repeat != 1 {
			return c, fmt.Errorf("%s is an array of arrays whose elements must be checked: make the inner array a "+
				"struct", name)
		}
		c.repeat = uint32(t.Len())
		return c, nil
	case reflect.Struct:
		if isUnion(t) {
			return c, fmt.Errorf("%s: a union %v by value has no room for its variants: use a Link, or a variant",
				name, t)
		}
		return ts.part(name, t)
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return c, fmt.Errorf("%s is an %v, whose size isn't the same on every target: use %v32 or %v64",
			name, t.Kind(), t.Kind(), t.Kind())
	default:
		return c, fmt.Errorf("%s (%v) holds a Go pointer; use blob.Link, blob.Array or blob.Str", name, t)
	}
	return c, nil
}

func (ts *types) part(name string, t reflect.Type) (check, error) {
	i, err := ts.add(t)
	return check{field: name, what: isPart, typ: i, repeat: 1, stride: uint32(t.Size())}, err
}

// alignOf returns a type's alignment on every target: 64 bits are aligned to 8.
func alignOf(t reflect.Type) uint32 {
	most := uintptr(1)
	plain.Walk(plain.Go(t), func(p plain.Part) (into bool) {
		switch p.Kind {
		case reflect.Invalid, reflect.Struct:
		case reflect.Array:
			most = max(most, uintptr(alignOf(p.Go().Elem()))) // also if the array is empty
			return false
		case reflect.Complex64:
			most = max(most, 4)
		default:
			most = max(most, min(p.Size, align))
		}
		return true
	})
	return uint32(most)
}

// spell returns a field's type as the types' text has it: equal for equal bytes, wherever the type
// is declared.
func spell(t reflect.Type) string {
	if to, ok := targetOf(t); ok {
		what, elem := to.target()
		return [...]string{isLink: "*" + spell(elem), isArray: "[]" + spell(elem), isStr: "str"}[what]
	}
	switch t.Kind() {
	case reflect.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), spell(t.Elem()))
	case reflect.Struct:
		return nameOf(t)
	}
	return t.Kind().String()
}

func bug(format string, args ...any) string { return "blob: BUG: " + fmt.Sprintf(format, args...) }
