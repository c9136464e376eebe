package arena_c

// #include "scope.h"
// static inline void upfront_scopes_temp_close_at(upfront_scopes *h, uint32_t site)
//     UPFRONT_DO_AT_SITE(upfront_scopes_temp_close(h))
// #cgo nocallback upfront_scopes_temp_close_at
// #cgo noescape upfront_scopes_temp_close_at
// static inline uint64_t upfront_scope_temp_of(upfront_scopes *h, uint64_t gen, uint64_t size, uint32_t site) {
//     upfront_scope s = {h, gen};
//     UPFRONT_DO_AT_SITE(s = upfront_scope_temp(s, size))
//     return s.gen;
// }
// #cgo nocallback upfront_scope_temp_of
// #cgo noescape upfront_scope_temp_of
// static inline int upfront_scope_pool_at(upfront_scopes *h, uint64_t gen, uint64_t size, uint64_t align,
//                                         uint64_t count, uint32_t kind, int handles,
//                                         upfront_pool **out, uint32_t site) {
//     upfront_scope s = {h, gen};
//     int code;
//     UPFRONT_DO_AT_SITE(code = upfront_scope_pool_of(s, size, align, count, kind, handles, out))
//     return code;
// }
// #cgo nocallback upfront_scope_pool_at
// #cgo noescape upfront_scope_pool_at
// #cgo nocallback upfront_arena_take
// #cgo noescape upfront_arena_take
// #cgo nocallback upfront_arena_back
// #cgo noescape upfront_arena_back
// #cgo nocallback upfront_scopes_pop
// #cgo noescape upfront_scopes_pop
// static inline uint64_t upfront_scopes_temp_take(upfront_scopes *h, uint64_t size) {
//     upfront_scope s = {h, h->arena.gen};
//     uint64_t at, from;
//     return upfront_scope_temp_room(s, size, &at, &from)
//         ? upfront_scopes_temp_open(&upfront_row_of(h)->temp, from, size) : 0;
// }
// #cgo nocallback upfront_scopes_temp_take
// #cgo noescape upfront_scopes_temp_take
// #cgo nocallback upfront_scopes_temp_pop
// #cgo noescape upfront_scopes_temp_pop
import "C"

import (
	"math/bits"
	"unsafe"
)

// Scopes is the header of an arena with nested scopes: arena.h and scope.h.
type Scopes struct {
	Cursor, Limit, Gen, Asked, Misused, Least, Next, Start uint64
	Chain, Odd, Depth, Slots, Base, Records, Back, Owner   uint64
}

// Record is an open scope: scope.h.
type Record struct{ Mark, Chain, Gen, Asked, Count, Limit, Edge, ran uint64 }

// Row is one arena of a map: scope.h.
type Row struct {
	Arena, Temp           Scopes
	Name                  [nameSize]byte
	Kind, kin, End, Pools uint64
	Headers               uint64
	_                     [7]uint64
	_                     Record
}

var (
	_ [unsafe.Sizeof(Scopes{})]byte = [unsafe.Sizeof(C.upfront_scopes{})]byte{}
	_ [unsafe.Sizeof(Record{})]byte = [unsafe.Sizeof(C.upfront_record{})]byte{}
	_ [unsafe.Sizeof(Row{})]byte    = [unsafe.Sizeof(C.upfront_row{})]byte{}
	_ [NodeSize]byte                = [unsafe.Sizeof(C.upfront_node(0))]byte{}
	_ [128]byte                     = [unsafe.Sizeof(Scopes{})]byte{} // on every machine
	_ [64]byte                      = [unsafe.Sizeof(Record{})]byte{}
	_ [16]byte                      = [unsafe.Sizeof(C.upfront_deferred{})]byte{}
)

// LiveObjects calls each with the live objects of the row, by address: with the offset from the
// row's first byte, the size, the numbers of the texts of the calls that made it and of its type,
// and the kind. each must not call LiveObjects. It returns false if the objects aren't known, as in
// all builds but the checked one.
func (r *Row) LiveObjects(each func(offset, size uint64, made, typed uint32, kind uint64)) (known bool) {
	return liveObjects(checked(r), each)
}

// Words of scope.h and arena.h.
const (
	Asked   = C.UPFRONT_ASKED      // in Scopes.Asked
	AskedAt = C.UPFRONT_ASKED_MASK // above the size in Scopes.Asked: the alignment less 1
	Purpose = C.UPFRONT_PURPOSE    // in Scopes.Asked: the request fitted, and FailAt refused it

	ClassNone = C.UPFRONT_CLASS_NONE
	ClassC    = C.UPFRONT_CLASS_C
	ClassPool = C.UPFRONT_CLASS_POOL
	ClassTemp = C.UPFRONT_CLASS_TEMP
	NodeClass = C.UPFRONT_NODE_CLASS // a node's class, above an offset
	NodeSize  = 8

	Closing  = C.UPFRONT_CLOSING // in Scopes.Odd
	Building = C.UPFRONT_BUILDING

	nameSize = C.UPFRONT_NAME_SIZE // of an arena's name, with its closing zero
)

// Record returns the record at a depth; at depth 0 it is the state without a scope.
func (h *Scopes) Record(depth uint64) *Record {
	return (*Record)(unsafe.Add(unsafe.Pointer(h), h.Records+depth*uint64(unsafe.Sizeof(Record{}))))
}

// Top returns the record of the topmost scope.
func (h *Scopes) Top() *Record { return h.Record(h.Depth) }

// Find returns the depth of the open scope with the generation; 0: none. Cost: O(scopes open).
func (h *Scopes) Find(gen uint64) uint64 {
	i := h.Depth
	for i > 0 && h.Record(i).Gen != gen {
		i--
	}
	if gen == 0 {
		return 0
	}
	return i
}

// header returns the arena's cache line. It isn't embedded, because the inliner counts each field
// of an embedded struct.
func (h *Scopes) header() *Header { return (*Header)(unsafe.Pointer(h)) }

// At returns the address of an offset.
func (h *Scopes) At(offset uint64) unsafe.Pointer { return h.header().At(offset) }

// Offset returns the canonical offset of an address.
func (h *Scopes) Offset(p unsafe.Pointer) uint64 { return Place(p, unsafe.Pointer(h)) }

// Row returns the row of the header, for either end.
func (h *Scopes) Row() *Row { return (*Row)(unsafe.Add(unsafe.Pointer(h), -int(h.Back))) }

// Bytes returns the bytes of the scope at a depth, without the scopes on top of it.
func (h *Scopes) Bytes(depth uint64) uint64 {
	end := h.Cursor
	if depth < h.Depth {
		end = h.Record(depth + 1).Mark
	}
	return end - h.Record(depth).Mark
}

// Freeze ends allocation in the topmost scope, which stays alive until it closes.
func (h *Scopes) Freeze() { h.Gen = 0 }

// Newest returns the object and the word of the node whose object is at offset chain. pre: chain
// isn't 0.
func (h *Scopes) Newest(chain uint64) (object unsafe.Pointer, node uint64) {
	word := h.At(chain - NodeSize)
	return unsafe.Add(word, NodeSize), *(*uint64)(word)
}

// Unlink is upfront_scopes_unlink.
func (h *Scopes) Unlink() {
	h.Chain = *(*uint64)(h.At(h.Chain - NodeSize)) % NodeClass
}

// Link is upfront_scopes_link.
func (h *Scopes) Link(object unsafe.Pointer, class uint64) {
	*(*uint64)(unsafe.Add(object, -NodeSize)) = class*NodeClass | h.Chain
	h.Chain = h.Offset(object)
}

// Used returns the bytes in use at both ends.
func (r *Row) Used() uint64 { return r.Arena.Cursor - r.Arena.Start + r.End - r.Arena.Limit }

// Size returns the bytes of the arena.
func (r *Row) Size() uint64 { return r.End - r.Arena.Start }

// Peak returns the highest number of bytes in use at once.
func (r *Row) Peak() uint64 { return r.Size() - min(r.Arena.Limit-r.Arena.Cursor, r.Arena.Least) }

// ResetPeak restarts Peak at the present use.
func (r *Row) ResetPeak() { r.Arena.Least = r.Arena.Limit - r.Arena.Cursor }

// Pool returns the n-th pool header of the row.
func (r *Row) Pool(n uint64) *Pool {
	return (*Pool)(unsafe.Add(unsafe.Pointer(r), r.Headers+n*uint64(unsafe.Sizeof(Pool{}))))
}

func (h *Scopes) c() *C.upfront_scopes { return (*C.upfront_scopes)(checked(h)) }

// PoolOpen is upfront_scope_pool_of.
func (h *Scopes) PoolOpen(gen, size, align, count, kind uint64, handles bool) (p *Pool, code Code) {
	code = Code(crossed(writes(&h.Cursor), C.upfront_scope_pool_at(h.c(), C.uint64_t(gen), C.uint64_t(size),
		C.uint64_t(align), C.uint64_t(count), C.uint32_t(kind), C.int(one(handles)),
		(**C.upfront_pool)(unsafe.Pointer(&p)), C.uint32_t(Here(1)))))
	return p, code
}

// TempOpen is upfront_scope_temp: it returns the generation of the temporary scope, 0 if it is
// refused.
func (h *Scopes) TempOpen(gen, size uint64) uint64 {
	return uint64(crossed(writes(&h.Cursor), C.upfront_scope_temp_of(h.c(), C.uint64_t(gen), C.uint64_t(size),
		C.uint32_t(Here(1)))))
}

// TempClose is upfront_scopes_temp_close.
func (h *Scopes) TempClose() {
	row := h.Row()
	from, to := row.Arena.Limit, h.Top().Edge
	crossed(writes(&h.Cursor), C.upfront_scopes_temp_close_at(h.c(), C.uint32_t(Here(1))))
	if Race {
		raceDead(row.Arena.At(from), uintptr(to-from))
	}
}

// The functions below change only headers and records, which is enough for a map without memory.

// Take is upfront_arena_take of size bytes at the cursor. It reports whether they fit.
func (h *Scopes) Take(size uint64) bool {
	a := (*C.upfront_arena)(unsafe.Pointer(h))
	return C.upfront_arena_take(a, C.uint64_t(h.Gen), C.uint64_t(h.Cursor), C.uint64_t(size)) != 0
}

// BackTo is upfront_arena_back.
func (h *Scopes) BackTo(to uint64) {
	C.upfront_arena_back((*C.upfront_arena)(unsafe.Pointer(h)), C.uint64_t(to))
}

// Pop is upfront_scopes_pop.
func (h *Scopes) Pop() { C.upfront_scopes_pop(h.c()) }

// TempTake is upfront_scope_temp_room for the scope that allocates in h, then
// upfront_scopes_temp_open: it returns the generation of the temporary scope, 0 if it is refused.
func (h *Scopes) TempTake(size uint64) (gen uint64) {
	return uint64(C.upfront_scopes_temp_take(h.c(), C.uint64_t(size)))
}

// TempPop is upfront_scopes_temp_pop.
func (h *Scopes) TempPop() { C.upfront_scopes_temp_pop(h.c()) }

// RunC is upfront_scopes_run_deferred: it may call Go, and may not return.
func (h *Scopes) RunC(until uint64) { C.upfront_scopes_run_deferred(h.c(), C.uint64_t(until)) }

// RanC returns the number of C's finalizers that ran in the topmost scope since the last call.
func (h *Scopes) RanC() (ran uint64) {
	r := h.Top()
	ran, r.ran = r.ran, 0
	return ran
}

// badAlign lets a fast path refuse a bad align without a test of its own. The path adds the align's
// fault times badAlign to the generation, which then fails the comparison. The fault is 0 for a
// power of two up to LineSize. Example: an align of 48 has the mask 47, and 47 & 48 is 32, so the
// generation is off by 32 * badAlign.
//
// The sum is never 0, and for most faults above all generations of the header. From bit 43 up, the
// generations of one owner of the header differ from the next owner's. The bits below hold the
// golden ratio, so that no small multiple comes near a generation of a later owner, and a stale
// scope is refused as well.
const badAlign = 1<<43 | 0x9E3779B97F

// aboveLine has the bits that only masks of an align above LineSize have.
const aboveLine = 1<<58 - LineSize

// perBadAlign is the inverse of badAlign modulo 2^64.
const perBadAlign = 0xB48BAE4C19BC067F

var _ [badAlign * perBadAlign % (1 << 64)]byte = [1]byte{}

// BadAlign reports whether the fault of an align was added to a refused generation. Without its top
// bit, which package scope uses, such a generation is mostly newer than any that exists; that of an
// align just below 2^63 or 2^64 wraps. depth is the depth of the scope whose align was bad: with
// its generation, (gen - generation) * perBadAlign is the fault, a small or simple number; with
// another scope's the result looks random. depth is 0 if that scope isn't open, or if the fault
// itself looks random.
func (h *Scopes) BadAlign(gen uint64) (depth uint64, bad bool) {
	isNewer := gen<<1 > h.Next<<1
	for depth = h.Depth; depth > 0; depth-- {
		wrong := (gen - h.Record(depth).Gen) * perBadAlign
		if isNewer && (wrong < 1<<32 || bits.OnesCount64(wrong^wrong>>1) <= 8) || wrong<<1 != 0 && -wrong<<1 < 1<<33 {
			return depth, true
		}
	}
	return 0, isNewer
}

// Refusal is the panic of a fast path: the header, and the generation that it refused. Package
// scope works out the reason when the error is read.
type Refusal struct {
	Arena *Scopes
	Gen   uint64
}

// Explain returns the reason of a Refusal. Package scope sets it.
var Explain func(Refusal) error

func (r Refusal) Error() string { return Explain(r).Error() }

// Unwrap returns the reason, for errors.Is and errors.As.
func (r Refusal) Unwrap() error { return Explain(r) }

// Keep closes the topmost scope, whose record is r, and leaves its bytes to the scope below. pre:
// it has no nodes.
func (h *Scopes) Keep(r *Record) {
	count := r.Count
	r.Mark = h.Cursor
	h.Close(r)
	h.Top().Count += count
}
