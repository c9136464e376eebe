package game

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

func bytesOf[T any](x *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(x)), unsafe.Sizeof(*x))
}

// TestHashHasAllState changes each byte of each kind of state. Each change must change the hash.
func TestHashHasAllState(t *testing.T) {
	w, p := strip(t, []room{{0, 128, 160, 1, 0, 0}, {0, 128, 0, 0, 3, 0}, {0, 128, 0, 0, 0, 0},
		{0, 0, 0, 0, 0, 0}}, []special{{48, 0}, {252, 3}, {1, 0}})
	g := &Game{Level: w.Level, crew: &Crew{}}
	require.True(t, w.fireAs(p, 2), "a door")
	g.spawn(p.At, 1)
	require.NotNil(t, w.voices.Get())
	w.rebuild()
	require.NotEmpty(t, w.lights)
	require.NotEmpty(t, w.scrolls)
	require.NotEmpty(t, w.carries)
	moving := 0
	for _, m := range w.movers.All() {
		m.Left++
		moving++
	}
	require.Equal(t, 1, moving)
	for name, bytes := range map[string][]byte{"counts": bytesOf(&w.Room.counts),
		"sector": bytesOf(&w.Sectors[1]), "handle": bytesOf(&w.Frogs.handles[0]),
		"event": bytesOf(&w.events[0]), "light": bytesOf(&w.lights[0]),
		"scroll": bytesOf(&w.scrolls[0]), "carry": bytesOf(&w.carries[0]),
		"player": bytesOf(p), "frog": bytesOf(w.Frogs.At(0)), "voice": bytesOf(w.voices.At(0)),
		"mover": bytesOf(w.movers.At(0))} {
		for i := range bytes {
			at := uintptr(i) - unsafe.Offsetof(w.Room.Instance)
			if name == "counts" && at < unsafe.Sizeof(w.Room.Instance) {
				continue // this is the handle of the graph's instance
			}
			before := g.Hash()
			bytes[i] ^= 1
			assert.NotEqual(t, before, g.Hash(), "%s, byte %d", name, i)
			bytes[i] ^= 1
			require.Equal(t, before, g.Hash())
		}
	}
}

// TestStateIsPlain checks that the types in the state have no padding, no address and the same size
// on each target, and that an input is small.
func TestStateIsPlain(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[Room](), reflect.TypeFor[doom.Sector](),
		reflect.TypeFor[arena.Handle[Frog]](), reflect.TypeFor[Frog](), reflect.TypeFor[Player](),
		reflect.TypeFor[mover](), reflect.TypeFor[light](), reflect.TypeFor[scroll](),
		reflect.TypeFor[carry](), reflect.TypeFor[event](), reflect.TypeFor[voice](),
		reflect.TypeFor[Input]()} {
		assert.Equal(t, of.Size(), filled(t, of), of)
	}
	assert.LessOrEqual(t, unsafe.Sizeof(Input{}), uintptr(16))
}

// filled returns the bytes of a type's fields.
func filled(t *testing.T, of reflect.Type) (size uintptr) {
	t.Helper()
	switch of.Kind() {
	case reflect.Struct:
		for i := range of.NumField() {
			size += filled(t, of.Field(i).Type)
		}
		return size
	case reflect.Array:
		if of.Len() == 0 { // a marker of a type, without bytes
			return 0
		}
		return uintptr(of.Len()) * filled(t, of.Elem())
	case reflect.Int, reflect.Uint, reflect.Uintptr, reflect.Pointer, reflect.UnsafePointer:
		assert.Fail(t, "has another size or meaning elsewhere", of)
	}
	return of.Size()
}
