package save

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Readable names values that the load made before the state: lines of a map, a table. An arena.Ptr
// or arena.Slice of a snapshot from outside may lead to them, and to nothing else before the state.
// A hostile snapshot may have play write there, through such a link. So name only what is numbers
// to all who use it, and nothing that was verified once and is trusted since, as a blob or a graph
// is. Readable panics for a T that has a bool, a link, an address or padding, for values that lie
// elsewhere, and after [NewRing]. Cost: Go allocations.
func Readable[T any](st *State, values []T) {
	t := reflect.TypeFor[T]()
	st.declares("Readable", t)
	if !new(describer).of(t).isPlain() {
		panic(fmt.Sprintf("save: BUG: Readable of region %s can't name a %v, which has a bool, an "+
			"arena.Ptr or an arena.Slice", st.saved.Name(), t))
	}
	h := st.header()
	at := arena_c.Place(unsafe.Pointer(unsafe.SliceData(values)), unsafe.Pointer(h))
	size := uint64(len(values)) * uint64(t.Size())
	switch {
	case size == 0:
	case at < h.Start || at >= st.mark || size > st.mark-at:
		panic(fmt.Sprintf("save: BUG: Readable of region %s: the values lie elsewhere than before the "+
			"state", st.saved.Name()))
	default:
		st.reads = append(st.reads, span{at, at + size})
	}
}

// isReadable says whether a range lies in values that Readable named.
func (st *State) isReadable(from, to uint64) bool {
	for _, s := range st.reads {
		if s.from <= from && to <= s.to {
			return true
		}
	}
	return false
}

// Values names values in the state that Go code keeps, and to which neither root nor pools lead by
// arena.Ptr and arena.Slice. Then their bools and links are checked, too, in each snapshot from
// outside; values that are numbers alone need no check. In a checked build [NewRing] panics where
// bools or links of the state can't be checked, and says who made them. Values panics for what lies
// elsewhere than in the state, and after NewRing. Cost: Go allocations.
func Values[T any](st *State, list []T) {
	t := reflect.TypeFor[T]()
	st.declares("Values", t)
	at := arena_c.Place(unsafe.Pointer(unsafe.SliceData(list)), unsafe.Pointer(st.header()))
	size := uint64(len(list)) * uint64(t.Size())
	switch end := st.header().Cursor; {
	case size == 0:
	case at < st.mark || at >= end || size > end-at:
		panic(fmt.Sprintf("save: BUG: Values of region %s lie elsewhere than in the state",
			st.saved.Name()))
	default:
		st.values = append(st.values, values{at: at - st.mark, count: uint64(len(list)), stride: uint64(t.Size()), of: t})
	}
}

// declares refuses what comes too late, or has a type that no state has.
func (st *State) declares(what string, t reflect.Type) {
	if st.end != 0 {
		panic(fmt.Sprintf("save: BUG: %s of region %s after NewRing", what, st.saved.Name()))
	}
	if err := st.admits(t); err != nil {
		panic(err)
	}
}
