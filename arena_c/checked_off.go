//go:build !checked

package arena_c

import "unsafe"

// Checked says whether this is the checked build (-tags checked). In others nothing below does anything, and the compiler
// drops the questions: see checked_on.go and site.go.
const Checked = false

// FailAt, Failed, Refuse and Tell are for the checked build.

func FailAt(n uint64)              {}
func Failed() (refused, told bool) { return false, false }
func Refuse() bool                 { return false }
func Tell()                        {}

// Here is the number of the calls that lead here: in the checked build.
func Here(skip int) uint32 { return 0 }

// textOf is the number of a text: in the checked build.
//
//lint:ignore U1000 the asan build's mirror asks for it
func textOf(string) uint32 { return 0 }

// Made says where something was made: in the checked build.
func Made(canonical unsafe.Pointer) string { return "" }

// Had says where a block of a heap or a buddy was made, and freed: in the checked build.
func Had(p unsafe.Pointer) string { return "" }

// Text is the text of a number: in the checked build.
func Text(id uint32) string { return "" }

// NoteType, Thing and Things are for the checked build.

func NoteType(p unsafe.Pointer, name string) {}

type Thing struct {
	Offset, Size uint64
	Made, Type   uint32
	Kind         uint64
}

const (
	ThingNode  = 1
	ThingParts = 2
)

func things(_ unsafe.Pointer, list []Thing) ([]Thing, bool) { return list[:0], false }

// SiteOf is the place of a number of Here: in the checked build.
func SiteOf(calls uint32) Site { return Site{} }

// Site is where something began that must end: in the checked build.
type Site struct{}

// Note keeps the calls that lead here: in the checked build.
func (*Site) Note() {}

// Tell is a line with what happened there, and a line for each call: in the checked build.
func (*Site) Tell(what string) string { return "" }

// Calls are the lines of Tell, without words: in the checked build.
func (*Site) Calls() []string { return nil }
