//go:build asan || checked

package arena_c

// #include "checked.h"
// static inline void *upfront_mark_room_at(upfront_scopes *h, uint64_t at, uint64_t size, uint32_t site)
//     UPFRONT_AT_SITE(void *, upfront_mark_room(upfront_arena_at(&h->arena, at), size))
// static inline void upfront_mark_dead_at(upfront_scopes *h, uint64_t at, uint64_t size, uint32_t site)
//     UPFRONT_DO_AT_SITE(upfront_mark_dead(upfront_arena_at(&h->arena, at), size))
// static inline void upfront_mark_less_at(upfront_scopes *h, uint64_t from, uint64_t end, uint64_t size) {
//     upfront_mark_less(upfront_arena_at(&h->arena, from), upfront_arena_at(&h->arena, end), size);
// }
//
// // Addresses as numbers: they may be outside of the block.
// static inline void *upfront_position_of(uintptr_t canonical) { return upfront_position((void *)canonical); }
// static inline uint64_t upfront_place_of(uintptr_t p, uintptr_t from) {
//     return upfront_place((void *)p, (void *)from);
// }
// static inline void upfront_over_of(upfront_row *r) {
//     upfront_mark_over(upfront_arena_at(&r->arena.arena, r->arena.arena.start), r->end - r->arena.arena.start);
// }
// static inline void upfront_gather_of(uintptr_t from, uint64_t size) { upfront_mirror_gather((void *)from, size); }
// static inline void upfront_scatter_of(uintptr_t from, uint64_t size) { upfront_mirror_scatter((void *)from, size); }
// static inline void upfront_pool_remark_at(upfront_pool *p, const uint8_t *states, uint32_t site)
//     UPFRONT_DO_AT_SITE(upfront_pool_remark(p, states))
// static inline int upfront_map_mirror_open(upfront_map *m, void *memory, uint32_t name) {
//     return upfront_mirror_open(m, m->size, memory, upfront_tell, name);
// }
// #cgo noescape upfront_mark_room_at
// #cgo nocallback upfront_mark_room_at
// #cgo noescape upfront_mark_dead_at
// #cgo nocallback upfront_mark_dead_at
// #cgo noescape upfront_mark_less_at
// #cgo nocallback upfront_mark_less_at
// #cgo noescape upfront_position_of
// #cgo nocallback upfront_position_of
// #cgo noescape upfront_place_of
// #cgo nocallback upfront_place_of
// #cgo noescape upfront_over_of
// #cgo nocallback upfront_over_of
import "C"

import (
	"sync"
	"unsafe"
)

// Positions in checked and asan builds are in mirrors (mirror.h).

// At returns the position of an offset.
func (h *Header) At(offset uint64) unsafe.Pointer {
	return Position(unsafe.Add(unsafe.Pointer(h), offset))
}

// Position is upfront_position.
func Position(canonical unsafe.Pointer) unsafe.Pointer {
	return C.upfront_position_of(C.uintptr_t(uintptr(canonical)))
}

// Place is upfront_place: the distance from `from` to the canonical address of p.
func Place(p, from unsafe.Pointer) uint64 {
	return uint64(C.upfront_place_of(C.uintptr_t(uintptr(p)), C.uintptr_t(uintptr(from))))
}

// MarkRoom is upfront_mark_room at an offset; it returns the position.
func (h *Scopes) MarkRoom(at, size uint64) unsafe.Pointer {
	return C.upfront_mark_room_at(h.c(), C.uint64_t(at), C.uint64_t(size), site())
}

// MarkLess is upfront_mark_less.
func (h *Scopes) MarkLess(from, end, size uint64) {
	C.upfront_mark_less_at(h.c(), C.uint64_t(from), C.uint64_t(end), C.uint64_t(size))
}

// MarkDead is upfront_mark_dead.
func (h *Scopes) MarkDead(at, size uint64) {
	C.upfront_mark_dead_at(h.c(), C.uint64_t(at), C.uint64_t(size), site())
}

// Over is upfront_mark_over of the whole row.
func (r *Row) Over() { C.upfront_over_of((*C.upfront_row)(checked(r))) }

// Gather copies the live objects in the range to their canonical addresses.
func Gather(from unsafe.Pointer, size uint64) {
	C.upfront_gather_of(C.uintptr_t(uintptr(from)), C.uint64_t(size))
}

// Scatter copies the live objects in the range from their canonical addresses back.
func Scatter(from unsafe.Pointer, size uint64) {
	C.upfront_scatter_of(C.uintptr_t(uintptr(from)), C.uint64_t(size))
}

// Remark is upfront_pool_remark.
func (p *Pool) Remark(states []byte) {
	C.upfront_pool_remark_at(p.c(), (*C.uint8_t)(unsafe.SliceData(states)), site())
}

// MirrorSize returns the size of a mirror for the map, or 0 in race builds, which have none. Its
// memory begins at a multiple of AlignMax.
func (m *Map) MirrorSize() uint64 {
	if Race { // the detector needs memory of Go
		return 0
	}
	return uint64(C.upfront_mirror_size(unsafe.Pointer(m), C.uint64_t(m.Size)))
}

// mirrors guards opening and closing.
var mirrors sync.Mutex

// MirrorOpen opens a mirror for the map's objects in the memory. It returns false if all mirrors
// are open.
func (m *Map) MirrorOpen(memory unsafe.Pointer, name string) bool {
	mirrors.Lock()
	defer mirrors.Unlock()
	return C.upfront_map_mirror_open(m.c(), memory, C.uint32_t(textOf(name))) != 0
}

// MirrorClose closes the mirror. The map's objects must not be used any more.
func (m *Map) MirrorClose() {
	mirrors.Lock()
	defer mirrors.Unlock()
	C.upfront_mirror_close(unsafe.Pointer(m))
}

// Damage describes the first stray write into dead bytes of the map; "" if there is none.
func (m *Map) Damage() string {
	var text [4096]byte
	n := C.upfront_damage(m.c(), (*C.char)(unsafe.Pointer(&text)), C.size_t(len(text)))
	return string(text[:n])
}
