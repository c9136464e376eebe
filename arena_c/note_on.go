//go:build memdebug

package arena_c

// #include "stretch.h"
// #cgo noescape upfront_stretch_note
// #cgo nocallback upfront_stretch_note
// #cgo noescape upfront_stretch_closed_by
// #cgo nocallback upfront_stretch_closed_by
// #cgo noescape upfront_stretch_names
// #cgo nocallback upfront_stretch_names
import "C"

import "unsafe"

// Notes says whether this build notes who asked for what, and under which names (Row.Names).
const Notes = true

// noteGiven notes who asked for what the slot gave last. Slots of rows that aren't stretched keep no notes.
func (l *Linear) noteGiven(p unsafe.Pointer) {
	if p != nil && l.Index() <= 1<<16 && l.Row().Stretched() {
		C.upfront_stretch_note(l.c(), C.uint32_t(Here(2)))
	}
}

// noteCloses notes who closes, or takes back, what the row gave last.
func (r *Row) noteCloses() {
	if r.Stretched() {
		C.upfront_stretch_closed_by(r.c(), C.uint32_t(Here(2)))
	}
}

// Names are those of the scope and the account that the row hands out for from now on, by Intern.
func (r *Row) Names(scope, account uint32) {
	C.upfront_stretch_names(r.c(), C.uint32_t(scope), C.uint32_t(account))
}
