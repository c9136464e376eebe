package arena_c

import "unsafe"

// The limits of base.h; bindings.go compares them with the C side when the package is compiled.
const (
	OffsetMax  = 1 << 38 // a block, an offset and a size are below it
	Generation = 1 << 40 // one generation, in a word that carries one
	Offsets    = Generation - 1
	Edge       = 1 << 16 // edges of regions and tables; also the largest alignment
	AlignMax   = Edge
	LineSize   = 64
	NameSize   = 32 // of a row's name, with its closing zero
	Piece      = Edge
)

// Code is the answer of an operation that can refuse: OK, a kind of full (above zero), or a caller's bug (below).
type Code int

const (
	OK          Code = 0
	Full        Code = 1
	TableFull   Code = 2
	BadArgument Code = -1
	Stale       Code = -2
	Order       Code = -3
	Double      Code = -4
	Foreign     Code = -5
	Misaligned  Code = -6
	Corrupt     Code = -7
)

// String gives the code in a few words, for messages.
func (c Code) String() string {
	switch c {
	case OK:
		return "ok"
	case Full:
		return "full"
	case TableFull:
		return "no free header in a control table"
	case BadArgument:
		return "bad argument"
	case Stale:
		return "closed already"
	case Order:
		return "out of order"
	case Double:
		return "put twice"
	case Foreign:
		return "not from here"
	case Misaligned:
		return "inside a chunk, not at its start"
	}
	return "corrupt table"
}

// Linear is the header of a linear arena, and of a scope: linear.h says what its words mean.
type Linear struct {
	Cursor, Limit, Origin, Count, Start, Peak, Chain, Refused uint64
}

// Stack is the header of a stack arena: stack.h.
type Stack struct{ Linear Linear }

// below is the word pair before a block of a stack.
type below struct{ cursor, last uint64 }

// Pool is the header of a pool: pool.h.
type Pool struct {
	Free, Chunks, Stride, Inverse, Bound, Live, Kind, Open uint64
}

// Row is the header of one arena of the map, with its scopes and pools behind it: row.h.
type Row struct {
	Name                                                                 [NameSize]byte
	Owner, Kind, Start, End, Edge, Peak, Open, Slots, Pools, FarOf, _, _ uint64
}

// Node is a finalizer in an arena: row.h.
type Node struct{ Below, What uint64 }

// Class is the node's class.
func (n Node) Class() uint64 { return n.Below / Generation }

// Map is the header of a whole block: map.h.
type Map struct {
	Magic, Size, Rows, Slots, Pools, _, _, _ uint64
}

// What a row is, and what a range of the map is: map.h.
const (
	KindRegion = 1
	KindFrame  = 2
	KindPad    = 3

	RangeTables    = 1
	RangeUsed      = 2
	RangeFree      = 3
	RangeTemp      = 4
	RangeEdge      = 5
	RangeUnplanned = 6
)

// Arena is one line of the plan that MapInit lays out.
type Arena struct {
	Name       [NameSize]byte
	Kind, Size uint64
}

// Range is one named piece of the map.
type Range struct{ Offset, Size, Row, What uint64 }

// Tag is the generation of the header: the tag of a handle that is not stale.
func (l *Linear) Tag() uint64 { return l.Limit &^ Offsets }

// At is the address of an offset.
func (l *Linear) At(offset uint64) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(l), l.Origin+offset)
}

// Offset is the offset of an address.
func (l *Linear) Offset(p unsafe.Pointer) uint64 {
	return uint64(uintptr(p)-uintptr(unsafe.Pointer(l))) - l.Origin
}

// Index is the slot's place in its row.
func (l *Linear) Index() uint64 { return l.Count / Generation }

// Objects is the number of allocations since the scope was opened.
func (l *Linear) Objects() uint64 { return l.Count & Offsets }

// Row is the row of a slot. Only slots of a map have one.
func (l *Linear) Row() *Row {
	return (*Row)(unsafe.Add(unsafe.Pointer(l), -int(l.Index()*LineSize)-int(unsafe.Sizeof(Row{}))))
}

// Slot is the header of the n-th nested scope; Slot(r.Slots) is the far end's.
func (r *Row) Slot(n uint64) *Linear {
	return (*Linear)(unsafe.Add(unsafe.Pointer(r), uint64(unsafe.Sizeof(*r))+n*LineSize))
}

// Far is the header of the far end.
func (r *Row) Far() *Linear { return r.Slot(r.Slots) }

// Pool is the n-th pool header of the row.
func (r *Row) Pool(n uint64) *Pool { return (*Pool)(unsafe.Pointer(r.Slot(r.Slots + 1 + n))) }

// Used is the bytes between the ends and the borders.
func (r *Row) Used() uint64 {
	near := r.Start
	if r.Open != 0 {
		near = r.Slot(r.Open - 1).Cursor
	}
	return near - r.Start + r.End - r.Edge
}

// Row is the n-th row of the map.
func (m *Map) Row(n uint64) *Row {
	size := uint64(unsafe.Sizeof(Row{})) + (m.Slots+1+m.Pools)*LineSize
	return (*Row)(unsafe.Add(unsafe.Pointer(m), uint64(unsafe.Sizeof(*m))+n*size))
}

// Count is the number of chunks.
func (p *Pool) Count() uint64 { return p.Bound & Offsets }

// Chunk is the address of a chunk.
func (p *Pool) Chunk(index uint64) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(p), p.Chunks+index*p.Stride)
}

// State is the byte of a chunk: 0 never taken, 1 live, 2 free.
func (p *Pool) State(index uint64) *uint8 {
	return (*uint8)(unsafe.Add(unsafe.Pointer(p), p.Chunks-1-index))
}

// Tag is the generation of the pool.
func (p *Pool) Tag() uint64 { return p.Free &^ Offsets }
