package save

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Readable allows links to values that the load allocated before the state, such as lines of a map
// or a table. In a snapshot from outside ([Ring.Apply], [Ring.Read]), an arena.Ptr or arena.Slice
// may lead to these values, and to no other memory before the state. A hostile snapshot can make
// play write to the values. So pass only numbers that may have any value, and never verified data
// such as a blob or a graph. Readable panics for a T with a bool, a link, an address or padding,
// for values that aren't before the state, and after [NewRing]. It makes Go allocations.
func Readable[T any](st *State, values []T) {
	t := reflect.TypeFor[T]()
	st.declares("Readable", t)
	if !new(describer).of(t).isPlain() {
		panic(fmt.Sprintf("save: BUG: Readable of region %s can't name a %v, which has a bool, an "+
			"arena.Ptr or an arena.Slice", st.saved.Name, t))
	}
	h := st.header()
	at := arena_c.Place(unsafe.Pointer(unsafe.SliceData(values)), unsafe.Pointer(h))
	size := uint64(len(values)) * uint64(t.Size())
	switch {
	case size == 0:
	case at < h.Start || at >= st.mark || size > st.mark-at:
		panic(fmt.Sprintf("save: BUG: Readable of region %s: the values aren't in the region before the "+
			"state", st.saved.Name))
	default:
		st.reads = append(st.reads, span{at, at + size})
	}
}

func (st *State) isReadable(from, to uint64) bool {
	for _, s := range st.reads {
		if s.from <= from && to <= s.to {
			return true
		}
	}
	return false
}

// Values names values in the state to which only Go code refers: neither the root nor pools nor
// containers lead to them by arena.Ptr and arena.Slice. [Ring.Apply] and [Ring.Read] then check the
// bools and links in these values; numbers need no check. In a checked build [NewRing] panics if a
// scope made values with bools or links in the state, and no root, pool, container, link or call of
// Values has their type. The panic names the source line that allocated the values. Values panics
// for values outside the state, and after NewRing. It makes Go allocations.
func Values[T any](st *State, list []T) {
	t := reflect.TypeFor[T]()
	st.declares("Values", t)
	at := arena_c.Place(unsafe.Pointer(unsafe.SliceData(list)), unsafe.Pointer(st.header()))
	size := uint64(len(list)) * uint64(t.Size())
	switch end := st.header().Cursor; {
	case size == 0:
	case at < st.mark || at >= end || size > end-at:
		panic(fmt.Sprintf("save: BUG: Values of region %s: the values aren't in the state",
			st.saved.Name))
	default:
		st.values = append(st.values, values{at: at - st.mark, count: uint64(len(list)), stride: uint64(t.Size()),
			of: t})
	}
}

// declares panics after NewRing, and for a type that can't be in a state.
func (st *State) declares(what string, t reflect.Type) {
	if st.end != 0 {
		panic(fmt.Sprintf("save: BUG: %s of region %s after NewRing", what, st.saved.Name))
	}
	if err := st.admits(t); err != nil {
		panic(err)
	}
}
