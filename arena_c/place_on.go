//go:build asan || memdebug

package arena_c

// #include "stretch.h"
// static inline uint64_t upfront_place_of(const upfront_linear *slot, uintptr_t p) {
//     return upfront_place(slot, (const void *)p); // a number: it may be any address
// }
// #cgo noescape upfront_place_of
// #cgo nocallback upfront_place_of
// #cgo noescape upfront_at_place
// #cgo nocallback upfront_at_place
// #cgo noescape upfront_map_stretch_size
// #cgo nocallback upfront_map_stretch_size
// #cgo noescape upfront_map_stretch
// #cgo nocallback upfront_map_stretch
// #cgo noescape upfront_stretch_window
// #cgo nocallback upfront_stretch_window
// #cgo noescape upfront_stretch_current
// #cgo nocallback upfront_stretch_current
// #cgo noescape upfront_stretch_renew
// #cgo nocallback upfront_stretch_renew
import "C"

import "unsafe"

// What stretching is, is in place_off.go.

// Stretched says whether this build stretches rows that have space for it.
const Stretched = true

// Windows is how many a row that is stretched has.
const Windows = C.UPFRONT_WINDOWS

// Place is the place of an address in the slot's row.
func (l *Linear) Place(p unsafe.Pointer) uint64 {
	return uint64(C.upfront_place_of(l.c(), C.uintptr_t(uintptr(p))))
}

// AtPlace is the address of a place.
func (l *Linear) AtPlace(place uint64) unsafe.Pointer {
	return C.upfront_at_place(l.c(), C.uint64_t(place))
}

// bottom is the place where what the slot handed out begins; at the far end, its newest piece, or in a row that is stretched,
// all.
func (l *Linear) bottom() uint64 {
	r, index := l.Row(), l.Index()
	if !r.Stretched() {
		return l.Start
	}
	place, size := r.Window()
	switch index {
	case 0:
		return place
	case r.Slots:
		return place + size/2
	}
	return r.Slot(index - 1).Top()
}

// Top is the place where what the slot handed out ends.
func (l *Linear) Top() uint64 { return l.Place(l.At(l.Cursor)) }

// IsLast is as in place_off.go. At the far end of a row that is stretched a new piece begins where the last thing of the old one
// ended, so long as nothing of it is handed out; elsewhere the two never meet, and what is in an older piece stays as it is.
func (l *Linear) IsLast(place, size uint64) bool {
	r := l.Row()
	return place+size == l.Top() && (!r.Stretched() || l.Index() != r.Slots || place >= l.Place(l.At(r.Edge)))
}

// Held is where all that the slot handed out lies. At the far end of a row that is stretched pieces follow each other up,
// until its half of the window runs short: then they lie in the last bytes of it, as many as the row has (stretch.h).
func (l *Linear) Held() (start, end uint64) {
	start, end = l.bottom(), l.Top()
	if r := l.Row(); r.Stretched() && l.Index() == r.Slots {
		_, size := r.Window()
		if half := size / 2; end >= start+half-(half-Edge)/3 {
			end = start + half
		}
	}
	return start, end
}

// Stretched says whether the row is.
func (r *Row) Stretched() bool { return r.Space != 0 }

// Window is the memory that the row hands out from: a place and bytes.
func (r *Row) Window() (place, size uint64) {
	if !r.Stretched() {
		return r.Start, r.End - r.Start
	}
	place, size, _ = r.WindowAt(r.Current())
	return place, size
}

// StretchSize is upfront_map_stretch_size: the space that a map of such a plan wants behind it.
func StretchSize(arenas []Arena, slots, pools, guard uint64) uint64 {
	return uint64(C.upfront_map_stretch_size((*C.upfront_map_arena)(unsafe.Pointer(unsafe.SliceData(arenas))),
		C.uint64_t(len(arenas)), C.uint64_t(slots), C.uint64_t(pools), C.uint64_t(guard)))
}

// Stretch is upfront_map_stretch.
func (m *Map) Stretch(size uint64) Code { return Code(C.upfront_map_stretch(m.c(), C.uint64_t(size))) }

// WindowAt is the part of a window that things are handed out from: a place and bytes, one half for each end; and the bytes
// of the window with what the core keeps behind it.
func (r *Row) WindowAt(index uint64) (place, size, all uint64) {
	C.upfront_stretch_window(r.c(), C.uint64_t(index), (*C.uint64_t)(&place), (*C.uint64_t)(&all), (*C.uint64_t)(&size))
	return place, size, all
}

// Current is the index of the window that the row is in, or when it is empty, that it goes on in.
func (r *Row) Current() uint64 { return uint64(C.upfront_stretch_current(r.c())) }

// Renew is upfront_stretch_renew: the window is zero again.
func (r *Row) Renew() { C.upfront_stretch_renew(r.c()) }
