package save

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// typesOf are two versions of a random type, and the changes between them.
type typesOf struct {
	*rand.Rand
	changes []changeLayout
}

var (
	wider = map[reflect.Kind][]reflect.Type{
		reflect.Int8:      {reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[int64]()},
		reflect.Int16:     {reflect.TypeFor[int32](), reflect.TypeFor[int64]()},
		reflect.Int32:     {reflect.TypeFor[int64]()},
		reflect.Uint8:     {reflect.TypeFor[uint16](), reflect.TypeFor[int16](), reflect.TypeFor[int64]()},
		reflect.Uint16:    {reflect.TypeFor[uint32](), reflect.TypeFor[int32](), reflect.TypeFor[uint64]()},
		reflect.Uint32:    {reflect.TypeFor[uint64](), reflect.TypeFor[int64]()},
		reflect.Float32:   {reflect.TypeFor[float64]()},
		reflect.Complex64: {reflect.TypeFor[complex128]()},
	}
	plainTypes = []reflect.Type{reflect.TypeFor[bool](), reflect.TypeFor[int8](), reflect.TypeFor[int16](),
		reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](),
		reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](),
		reflect.TypeFor[complex64](), reflect.TypeFor[complex128]()}
)

// next returns a random type, and its next version.
func (r *typesOf) next(depth int) (old, now reflect.Type) {
	switch n := r.IntN(6); {
	case n == 0 && depth > 0:
		old, now = r.next(depth - 1)
		count := r.IntN(4)
		return reflect.ArrayOf(count, old), reflect.ArrayOf(count+r.IntN(3), now)
	case n <= 2 && depth > 0:
		return r.structs(depth - 1)
	}
	old = plainTypes[r.IntN(len(plainTypes))]
	if list := append(wider[old.Kind()], old); true {
		now = list[r.IntN(len(list))]
	}
	return old, now
}

func (r *typesOf) structs(depth int) (old, now reflect.Type) {
	var was, is []reflect.StructField
	var list []changeLayout
	for i := range r.IntN(6) {
		a, b := r.next(depth)
		name := fmt.Sprintf("F%d", i)
		was = append(was, reflect.StructField{Name: name, Type: a})
		switch r.IntN(6) {
		case 0:
			list = append(list, changeLayout{Kind: changeDropped, Name: name})
			continue
		case 1:
			list = append(list, changeLayout{Kind: changeRenamed, Name: name, To: name + "New"})
			name += "New"
		}
		is = append(is, reflect.StructField{Name: name, Type: b})
	}
	for i := range r.IntN(3) {
		a, _ := r.next(depth)
		is = append(is, reflect.StructField{Name: fmt.Sprintf("New%d", i), Type: a})
	}
	r.Shuffle(len(is), func(i, k int) { is[i], is[k] = is[k], is[i] })
	old, now = reflect.StructOf(was), reflect.StructOf(is)
	for _, c := range list {
		c.Name = typeName(old.String()) + "." + c.Name
		r.changes = append(r.changes, c)
	}
	return old, now
}

// fillRandom gives each number of a value random bits.
func (r *typesOf) fillRandom(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(math.Float32frombits(r.Uint32() &^ (1 << 30)))) // no NaN
	case reflect.Complex64, reflect.Complex128:
		v.SetComplex(complex(float64(r.IntN(100)), -1))
	case reflect.Array:
		for i := range v.Len() {
			r.fillRandom(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			r.fillRandom(v.Field(i))
		}
	default:
		if v.CanInt() {
			v.SetInt(int64(r.Uint64()))
		} else {
			v.SetUint(r.Uint64())
		}
	}
}

// model converts a value by the names of its fields.
func (r *typesOf) model(old, now reflect.Value) {
	switch old.Kind() {
	case reflect.Array:
		for i := range old.Len() {
			r.model(old.Index(i), now.Index(i))
		}
	case reflect.Struct:
		for i := range old.NumField() {
			name, kept := old.Type().Field(i).Name, true
			for _, c := range r.changes {
				if c.Name == typeName(old.Type().String())+"."+name {
					name, kept = c.To, c.Kind == changeRenamed
				}
			}
			if kept {
				r.model(old.Field(i), now.FieldByName(name))
			}
		}
	default:
		now.Set(old.Convert(now.Type()))
	}
}

// TestRandomTypes: random types of two versions convert as a model does that goes by names.
func TestRandomTypes(t *testing.T) {
	converted := 0
	for seed := range uint64(1000) {
		r := &typesOf{Rand: rand.New(rand.NewPCG(seed, 1))}
		old, now := r.structs(3)
		if old.Size() == 0 || now.Size() == 0 {
			continue
		}
		layoutFor := func(t reflect.Type, changes []changeLayout) *layout {
			var d describer
			root := d.of(t)
			return &layout{Parts: []partLayout{{Root: root.Name, Size: root.Size, Changes: changes}}, Types: d.Types}
		}
		for i := range r.changes {
			r.changes[i].Version = 1
		}
		p, err := planOf(layoutFor(old, nil), layoutFor(now, r.changes), nil)
		require.NoError(t, err)
		ambiguous := false // a type of the same fields may occur twice, with other changes
		for _, c := range r.changes {
			for _, d := range r.changes {
				ambiguous = ambiguous || c.Name == d.Name && c != d
			}
		}
		if ambiguous || p.refused() != "" {
			continue
		}
		was, is, want := reflect.New(old), reflect.New(now), reflect.New(now)
		r.fillRandom(was.Elem())
		bytesOf := func(v reflect.Value) []byte {
			return unsafe.Slice((*byte)(v.UnsafePointer()), v.Elem().Type().Size())
		}
		line := func(b []byte) []byte { return append(b, make([]byte, 64)...) }
		image := line(bytesOf(is))
		require.NoError(t, p.convert(line(bytesOf(was)), image, make([]byte, len(image)), nil))
		copy(bytesOf(is), image)
		r.model(was.Elem(), want.Elem())
		require.Equal(t, want.Interface(), is.Interface(), "seed %d: %v to %v", seed, old, now)
		converted++
	}
	assert.Greater(t, converted, 500)
}

// TestEnumsOfAFile: a file whose type has two enumerators of one name is refused.
func TestEnumsOfAFile(t *testing.T) {
	mood := &typeLayout{Kind: "int32", Enum: []enumerator{{"Calm", 0}, {"Angry", 1}}}
	require.NoError(t, mood.checkEnum())
	mood.Enum[1].Name = "Calm"
	assert.EqualError(t, mood.checkEnum(), `an enumerator "Calm" of a int32`)
}
