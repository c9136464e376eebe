package arena_c

// #include "map.h"
// #cgo nocallback upfront_map_init
// #cgo noescape upfront_map_reconfigure
// #cgo nocallback upfront_map_reconfigure
// #cgo noescape upfront_map_over
// #cgo nocallback upfront_map_over
// #cgo noescape upfront_map_walk
// #cgo nocallback upfront_map_walk
import "C"

import "unsafe"

// Map is the header of a whole block: map.h.
type Map struct {
	Magic, Size, Rows, Slots, Pools, Tables, Guard, _ uint64
}

// MapMagic begins the tables of a map.
const MapMagic = C.UPFRONT_MAP_MAGIC

// Kinds of rows, and uses of a range: map.h.
const (
	KindRegion  = C.UPFRONT_REGION
	KindFrame   = C.UPFRONT_FRAME
	KindScratch = C.UPFRONT_SCRATCH

	RangeTables    = C.UPFRONT_RANGE_TABLES
	RangeUsed      = C.UPFRONT_RANGE_USED
	RangeFree      = C.UPFRONT_RANGE_FREE
	RangeTemp      = C.UPFRONT_RANGE_TEMP
	RangeEdge      = C.UPFRONT_RANGE_EDGE
	RangeUnplanned = C.UPFRONT_RANGE_UNPLANNED
	RangeGuard     = C.UPFRONT_RANGE_GUARD
)

// Arena is a line of the plan for MapInit.
type Arena struct {
	Name                 [nameSize]byte
	Kind, Size, Siblings uint64 // 0 siblings are 1
	Slots, Pools         uint64 // of each; 0: the default of the call
}

// Tables has the sizes of a map's tables (map.h).
type Tables struct{ Head, Headers, Size uint64 }

// Range is one range in the output of Walk.
type Range struct{ Offset, Size, Row, What uint64 }

var (
	_ [unsafe.Sizeof(Map{})]byte    = [unsafe.Sizeof(C.upfront_map{})]byte{}
	_ [unsafe.Sizeof(Arena{})]byte  = [unsafe.Sizeof(C.upfront_map_arena{})]byte{}
	_ [unsafe.Sizeof(Tables{})]byte = [unsafe.Sizeof(C.upfront_tables{})]byte{}
	_ [unsafe.Sizeof(Range{})]byte  = [unsafe.Sizeof(C.upfront_range{})]byte{}
)

// Row returns the n-th row of the map.
func (m *Map) Row(n uint64) *Row {
	return (*Row)(unsafe.Add(unsafe.Pointer(m), uint64(unsafe.Sizeof(*m))+n*uint64(unsafe.Sizeof(Row{}))))
}

// Start returns the offset in the map of the n-th row's first byte, and End the offset past its
// last.
func (m *Map) Start(n uint64) uint64 { return m.offset(m.Row(n)) + m.Row(n).Arena.Start }
func (m *Map) End(n uint64) uint64   { return m.offset(m.Row(n)) + m.Row(n).End }

// GuardStart returns the offset of the guard after the n-th row.
func (m *Map) GuardStart(n uint64) uint64 { return (m.End(n) + Edge - 1) &^ (Edge - 1) }

func (m *Map) offset(r *Row) uint64 {
	return uint64(uintptr(unsafe.Pointer(r)) - uintptr(unsafe.Pointer(m)))
}

func (m *Map) c() *C.upfront_map { return (*C.upfront_map)(checked(m)) }

// MapTables is upfront_map_tables.
func MapTables(rows, slots, pools uint64) Tables {
	t := C.upfront_map_tables(C.uint64_t(rows), C.uint64_t(slots), C.uint64_t(pools))
	return Tables{uint64(t.head), uint64(t.headers), uint64(t.size)}
}

// Over is upfront_map_over.
func (m *Map) Over() { C.upfront_map_over(m.c()) }

// MapInit is upfront_map_init.
func MapInit(block unsafe.Pointer, size uint64, arenas []Arena, slots, pools, guard uint64) *Map {
	list := (*C.upfront_map_arena)(unsafe.Pointer(unsafe.SliceData(arenas)))
	return (*Map)(unsafe.Pointer(C.upfront_map_init(block, C.uint64_t(size), list, C.uint64_t(len(arenas)),
		C.uint64_t(slots), C.uint64_t(pools), C.uint64_t(guard))))
}

// Reconfigure is upfront_map_reconfigure.
func (m *Map) Reconfigure(row uint64, sizes []uint64) Code {
	return Code(C.upfront_map_reconfigure(m.c(), C.uint64_t(row), (*C.uint64_t)(unsafe.SliceData(sizes)),
		C.uint64_t(len(sizes))))
}

// Walk is upfront_map_walk: it returns the number of ranges, or with Corrupt the index of the row.
func (m *Map) Walk(size uint64, out []Range) (count uint64, code Code) {
	code = Code(C.upfront_map_walk(m.c(), C.uint64_t(size), (*C.upfront_range)(unsafe.Pointer(unsafe.SliceData(out))),
		C.uint64_t(len(out)), (*C.uint64_t)(unsafe.Pointer(&count))))
	return count, code
}
