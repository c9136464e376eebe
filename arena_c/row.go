package arena_c

// #include "row.h"
// #cgo noescape upfront_row_far_open
// #cgo nocallback upfront_row_far_open
// #cgo noescape upfront_row_far_grow
// #cgo nocallback upfront_row_far_grow
// #cgo noescape upfront_row_far_close
// #cgo nocallback upfront_row_far_close
// #cgo noescape upfront_row_rewind
// #cgo nocallback upfront_row_rewind
// #cgo noescape upfront_row_pool_open
// #cgo nocallback upfront_row_pool_open
import "C"

import "unsafe"

// Row is the header of one arena of the map, with its scopes and pools behind it: row.h.
type Row struct {
	Name                                                                   [NameSize]byte
	Owner, Kind, Start, End, Edge, Peak, Open, Slots, Pools, FarOf, Kin, _ uint64
}

// Node is a finalizer in an arena: row.h.
type Node struct{ Below, What uint64 }

// Class is the node's class.
func (n Node) Class() uint64 { return n.Below / Generation }

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

// Padding is upfront_row_padding: of the bytes in use those that no open scope was asked for.
func (r *Row) Padding() uint64 {
	padding := r.Used()
	for i := range r.Open {
		padding -= r.Slot(i).Bytes()
	}
	if r.FarOf != 0 {
		padding -= r.Far().Bytes()
	}
	return padding
}

func (r *Row) c() *C.upfront_row { return (*C.upfront_row)(checked(r)) }

// FarOpen is upfront_row_far_open.
func (r *Row) FarOpen() (tag uint64) {
	return uint64(crossed(writes(&r.FarOf), C.upfront_row_far_open(r.c())))
}

// FarGrow is upfront_row_far_grow.
func (r *Row) FarGrow(size, align uint64) Code {
	top := r.Slot(r.Open - 1) // its room ends at the new piece
	return Code(crossed(writes(&top.Limit), C.upfront_row_far_grow(r.c(), C.uint64_t(size), C.uint64_t(align))))
}

// FarClose is upfront_row_far_close.
func (r *Row) FarClose() {
	edge := r.Edge
	crossed(writes(&r.Edge), C.upfront_row_far_close(r.c()))
	if Race {
		raceDead(r.Far().At(edge), uintptr(r.End-edge))
	}
}

// Rewind is upfront_row_rewind: the topmost scope's header is again as it was.
func (r *Row) Rewind(was *Linear) {
	top := r.Slot(r.Open - 1)
	cursor := top.Cursor
	crossed(writes(&top.Cursor), C.upfront_row_rewind(r.c(), was.c()))
	top.dead(cursor, OK)
}

// PoolOpen is upfront_row_pool_open.
func (l *Linear) PoolOpen(tag, size, align, count, kind uint64) (p *Pool, code Code) {
	was := *l
	code = Code(crossed(writes(&l.Cursor), C.upfront_row_pool_open(l.c(), C.uint64_t(tag), C.uint64_t(size), C.uint64_t(align),
		C.uint64_t(count), C.uint64_t(kind), (**C.upfront_pool)(unsafe.Pointer(&p)))))
	if Checked && code == OK && !given(l, was) {
		p.Close()
		l.Refused = tag + PoolSize(size, align, count) + OnPurpose
		return nil, Full
	}
	return p, code
}
