//go:build !asan && !memdebug

package arena_c

import "unsafe"

// Asan and memdebug builds stretch the rows of a budget (stretch.h): they lay things out with gaps and go on to fresh
// addresses when a row is rewound. There an offset counts bytes that were asked for, and a place is where an address lies,
// in bytes from the start of the map. What is stored to be found again later is a place. Here they are the same.

// Stretched says whether this build stretches rows that have space for it.
const Stretched = false

// Windows is how many a row that is stretched has.
const Windows = 4

// Place is the place of an address in the slot's row.
func (l *Linear) Place(p unsafe.Pointer) uint64 { return l.Offset(p) }

// AtPlace is the address of a place.
func (l *Linear) AtPlace(place uint64) unsafe.Pointer { return l.At(place) }

// Top is the place where what the slot handed out ends; at the far end, of its newest piece.
func (l *Linear) Top() uint64 { return l.Cursor }

// IsLast says whether what lies at a place is the last thing that the slot handed out, and can be made longer there.
func (l *Linear) IsLast(place, size uint64) bool { return place+size == l.Cursor }

// Held is where all that the slot handed out lies; at the far end, in its newest piece.
func (l *Linear) Held() (start, end uint64) { return l.Start, l.Cursor }

// Stretched says whether the row is.
func (r *Row) Stretched() bool { return false }

// Window is the memory that the row hands out from: a place and bytes.
func (r *Row) Window() (place, size uint64) { return r.Start, r.End - r.Start }

// StretchSize is the space that a map of such a plan wants behind it.
func StretchSize(arenas []Arena, slots, pools, guard uint64) uint64 { return 0 }

// The rest is for rows that are stretched: there are none.
func (m *Map) Stretch(size uint64) Code                        { return BadArgument }
func (r *Row) WindowAt(index uint64) (place, size, all uint64) { return 0, 0, 0 }
func (r *Row) Current() uint64                                 { return 0 }
func (r *Row) Renew()                                          {}
