//go:build !memdebug

package arena_c

import "unsafe"

// Notes says whether this build notes who asked for what, and under which names (Row.Names).
const Notes = false

func (l *Linear) noteGiven(p unsafe.Pointer) {}

func (r *Row) noteCloses() {}

// Names are those of the scope and the account that the row hands out for from now on, by Intern.
func (r *Row) Names(scope, account uint32) {}
