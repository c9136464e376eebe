// Package bindings calls the C core's inline fast paths as a C program does, on headers made by Go.
// The differential test compares these calls with arena_c/fast.go and fast_block.go. The package
// isn't a test file because test files may not import "C".
package bindings

// #cgo CFLAGS: -I${SRCDIR}/../../../arena_c -DUPFRONT_PREFIX=github_com_upfront_mem_upfront_
// #cgo checked CFLAGS: -DUPFRONT_CHECKED
// #include "upfront.h"
//
// // A C library's use of a Go scope: it allocates there, and adds a finalizer that logs its id.
// typedef struct teller { int32_t *log, *count; int32_t id; } teller;
// static void tell(void *arg) {
//     teller *t = (teller *)arg;
//     t->log[(*t->count)++] = t->id;
// }
// static int mouth_defer(void *header, uint64_t generation, int32_t *log, int32_t *count, int32_t id) {
//     upfront_scope s = {(upfront_scopes *)header, generation};
//     teller *t = (teller *)upfront_scope_alloc(s, 24, 8); // 24 bytes for pointers of any size
//     if (t == NULL)
//         return UPFRONT_FULL;
//     t->log = log, t->count = count, t->id = id;
//     return upfront_scope_defer(s, tell, t);
// }
// #cgo noescape upfront_arena_bump
// #cgo nocallback upfront_arena_bump
// #cgo noescape upfront_stack_push
// #cgo nocallback upfront_stack_push
// #cgo noescape upfront_pool_get
// #cgo nocallback upfront_pool_get
// #cgo noescape upfront_pool_put
// #cgo nocallback upfront_pool_put
// #cgo noescape upfront_scopes_unlink
// #cgo nocallback upfront_scopes_unlink
import "C"

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

func header(h *arena_c.Header) *C.upfront_arena  { return (*C.upfront_arena)(unsafe.Pointer(h)) }
func row(r *arena_c.Row) *C.upfront_row          { return (*C.upfront_row)(unsafe.Pointer(r)) }
func scopes(h *arena_c.Scopes) *C.upfront_scopes { return (*C.upfront_scopes)(unsafe.Pointer(h)) }
func own(h *arena_c.Scopes) *C.upfront_arena     { return (*C.upfront_arena)(unsafe.Pointer(h)) }
func pool(p *arena_c.Pool) *C.upfront_pool       { return (*C.upfront_pool)(unsafe.Pointer(p)) }

// Bump is upfront_arena_bump.
func Bump(h *arena_c.Header, gen, size, mask uint64) unsafe.Pointer {
	return C.upfront_arena_bump(header(h), C.uint64_t(gen), C.uint64_t(size), C.uint64_t(mask))
}

// Push is upfront_stack_push.
func Push(s *arena_c.Stack, gen, size, mask uint64) unsafe.Pointer {
	return C.upfront_stack_push((*C.upfront_stack)(unsafe.Pointer(s)), C.uint64_t(gen), C.uint64_t(size),
		C.uint64_t(mask))
}

// Get is upfront_pool_get.
func Get(p *arena_c.Pool, gen uint64) unsafe.Pointer {
	return C.upfront_pool_get(pool(p), C.uint64_t(gen))
}

// Put is upfront_pool_put.
func Put(p *arena_c.Pool, gen uint64, chunk unsafe.Pointer) bool {
	return C.upfront_pool_put(pool(p), C.uint64_t(gen), chunk) == C.UPFRONT_OK
}

// BumpIn is upfront_scopes_bump.
func BumpIn(h *arena_c.Scopes, gen, size, mask uint64) unsafe.Pointer {
	return C.upfront_scopes_bump(scopes(h), C.uint64_t(gen), C.uint64_t(size), C.uint64_t(mask))
}

// GrowIn is upfront_scopes_grow.
func GrowIn(h *arena_c.Scopes, gen, from, size uint64) unsafe.Pointer {
	return C.upfront_scopes_grow(scopes(h), C.uint64_t(gen), C.uint64_t(from), C.uint64_t(size))
}

// Node is upfront_scopes_node.
func Node(h *arena_c.Scopes, gen, size, mask uint64) unsafe.Pointer {
	return C.upfront_scopes_node(scopes(h), C.uint64_t(gen), C.uint64_t(size), C.uint64_t(mask))
}

// Link is upfront_scopes_link.
func Link(h *arena_c.Scopes, object unsafe.Pointer, class uint64) {
	C.upfront_scopes_link(scopes(h), object, C.uint64_t(class))
}

// Unlink is upfront_scopes_unlink.
func Unlink(h *arena_c.Scopes) (object unsafe.Pointer, class uint64) {
	object = C.upfront_scopes_unlink(scopes(h), (*C.uint64_t)(unsafe.Pointer(&class)))
	return object, class
}

// Open is upfront_scopes_open.
func Open(h *arena_c.Scopes) (gen uint64) { return uint64(C.upfront_scopes_open(scopes(h))) }

// Close is upfront_scopes_close.
func Close(h *arena_c.Scopes) { C.upfront_scopes_close(scopes(h)) }

// Cut is upfront_arena_cut.
func Cut(h *arena_c.Scopes, to uint64) { C.upfront_arena_cut(own(h), C.uint64_t(to)) }

// The small reads of the headers, which Go repeats: the results of C for the same words.

// Place is upfront_arena_offset, and Address upfront_arena_at.
func Place(h *arena_c.Scopes, p unsafe.Pointer) uint64 {
	return uint64(C.upfront_arena_offset(own(h), p))
}
func Address(h *arena_c.Scopes, offset uint64) unsafe.Pointer {
	return C.upfront_arena_at(own(h), C.uint64_t(offset))
}

// Used is upfront_row_used.
func Used(r *arena_c.Row) uint64 { return uint64(C.upfront_row_used(row(r))) }

// RowOf is upfront_row_of.
func RowOf(h *arena_c.Scopes) *arena_c.Row {
	return (*arena_c.Row)(unsafe.Pointer(C.upfront_row_of(scopes(h))))
}

// Record is upfront_scopes_record.
func Record(h *arena_c.Scopes, depth uint64) *arena_c.Record {
	return (*arena_c.Record)(unsafe.Pointer(C.upfront_scopes_record(scopes(h), C.uint64_t(depth))))
}

// Pool is upfront_row_pool.
func Pool(r *arena_c.Row, index uint64) *arena_c.Pool {
	return (*arena_c.Pool)(unsafe.Pointer(C.upfront_row_pool(row(r), C.uint64_t(index))))
}

// Row is upfront_map_row.
func Row(m *arena_c.Map, index uint64) *arena_c.Row {
	return (*arena_c.Row)(unsafe.Pointer(C.upfront_map_row((*C.upfront_map)(unsafe.Pointer(m)), C.uint64_t(index))))
}

// Bounds are upfront_map_start and upfront_map_end.
func Bounds(m *arena_c.Map, r *arena_c.Row) (start, end uint64) {
	c := (*C.upfront_map)(unsafe.Pointer(m))
	return uint64(C.upfront_map_start(c, row(r))), uint64(C.upfront_map_end(c, row(r)))
}

// State is upfront_pool_state.
func State(p *arena_c.Pool, index uint64) unsafe.Pointer {
	return unsafe.Pointer(C.upfront_pool_state(pool(p), C.uint64_t(index)))
}

// Chunk is upfront_pool_chunk.
func Chunk(p *arena_c.Pool, index uint64) unsafe.Pointer {
	return C.upfront_pool_chunk(pool(p), C.uint64_t(index))
}

// Defer adds a C finalizer to a Go scope, as a C library does. The finalizer appends id to log,
// whose length is count. Both are in memory that C may keep pointers to.
func Defer(header unsafe.Pointer, generation uint64, log, count *int32, id int32) arena_c.Code {
	return arena_c.Code(C.mouth_defer(header, C.uint64_t(generation), (*C.int32_t)(log), (*C.int32_t)(count),
		C.int32_t(id)))
}

// BumpFar is upfront_ends_bump_far.
func BumpFar(e *arena_c.Ends, gen, size, mask uint64) unsafe.Pointer {
	return C.upfront_ends_bump_far((*C.upfront_ends)(unsafe.Pointer(e)), C.uint64_t(gen), C.uint64_t(size),
		C.uint64_t(mask))
}

// Marks is upfront_ends_mark and upfront_ends_mark_far.
func Marks(e *arena_c.Ends) (mark, farMark uint64) {
	ends := (*C.upfront_ends)(unsafe.Pointer(e))
	return uint64(C.upfront_ends_mark(ends)), uint64(C.upfront_ends_mark_far(ends))
}

// PushFar is upfront_stack_push_far.
func PushFar(s *arena_c.Stack, gen, size, mask uint64) unsafe.Pointer {
	return C.upfront_stack_push_far((*C.upfront_stack)(unsafe.Pointer(s)), C.uint64_t(gen), C.uint64_t(size),
		C.uint64_t(mask))
}

// GetHandle is upfront_pool_get_handle.
func GetHandle(p *arena_c.Pool, gen uint64) (chunk unsafe.Pointer, handle uint64) {
	chunk = C.upfront_pool_get_handle(pool(p), C.uint64_t(gen), (*C.uint64_t)(unsafe.Pointer(&handle)))
	return chunk, handle
}

// At is upfront_pool_at.
func At(p *arena_c.Pool, gen, handle uint64) unsafe.Pointer {
	return C.upfront_pool_at(pool(p), C.uint64_t(gen), C.uint64_t(handle))
}

// PutHandle is upfront_pool_put_handle.
func PutHandle(p *arena_c.Pool, gen, handle uint64) arena_c.Code {
	return arena_c.Code(C.upfront_pool_put_handle(pool(p), C.uint64_t(gen), C.uint64_t(handle)))
}

// RingPush is upfront_ring_push.
func RingPush(r *arena_c.Ring, gen, size, mask uint64) unsafe.Pointer {
	return C.upfront_ring_push((*C.upfront_ring)(unsafe.Pointer(r)), C.uint64_t(gen), C.uint64_t(size),
		C.uint64_t(mask))
}

// RingFront is upfront_ring_front.
func RingFront(r *arena_c.Ring) (p unsafe.Pointer, size uint64) {
	p = C.upfront_ring_front((*C.upfront_ring)(unsafe.Pointer(r)), (*C.uint64_t)(unsafe.Pointer(&size)))
	return p, size
}

// RingPop is upfront_ring_pop.
func RingPop(r *arena_c.Ring, gen uint64, p unsafe.Pointer) bool {
	return C.upfront_ring_pop((*C.upfront_ring)(unsafe.Pointer(r)), C.uint64_t(gen), p) == C.UPFRONT_OK
}

// FrameBump is upfront_frame_bump.
func FrameBump(f *arena_c.Frame, gen, size, mask uint64) unsafe.Pointer {
	return C.upfront_frame_bump((*C.upfront_frame)(unsafe.Pointer(f)), C.uint64_t(gen), C.uint64_t(size),
		C.uint64_t(mask))
}

// FramePeak is upfront_frame_peak.
func FramePeak(f *arena_c.Frame) uint64 {
	return uint64(C.upfront_frame_peak((*C.upfront_frame)(unsafe.Pointer(f))))
}

// MapSize is upfront_map_size.
func MapSize(arenas []arena_c.Arena, slots, pools, guard uint64) uint64 {
	list := (*C.upfront_map_arena)(unsafe.Pointer(unsafe.SliceData(arenas)))
	return uint64(C.upfront_map_size(list, C.uint64_t(len(arenas)), C.uint64_t(slots), C.uint64_t(pools),
		C.uint64_t(guard)))
}

// NoteRoom is upfront_note_room. The block isn't of the Go heap.
func NoteRoom(kind arena_c.RoomKind, block unsafe.Pointer, size uint64) arena_c.Code {
	return arena_c.Code(C.upfront_note_room(C.uint64_t(kind), block, C.uint64_t(size)))
}
