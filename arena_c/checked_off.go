//go:build !checked

package arena_c

import "unsafe"

// Checked reports whether this is the checked build (-tags checked). In other builds the functions
// below do nothing, and the compiler drops their calls: see checked_on.go and site.go.
const Checked = false

// FailAt, Failed, Refuse and Tell do their work only in the checked build.

func FailAt(n uint64)              {}
func Failed() (refused, told bool) { return false, false }
func Refuse() bool                 { return false }
func Tell()                        {}

// Here returns the number of the call stack in a checked build.
func Here(skip int) uint32 { return 0 }

// textOf returns the number of a text in a checked build.
//
//lint:ignore U1000 the asan build's mirror asks for it
func textOf(string) uint32 { return 0 }

// Made returns the calls that made an object, in a checked build.
func Made(canonical unsafe.Pointer) string { return "" }

// BlockMade returns the calls that made a block of a heap or a buddy, in a checked build.
func BlockMade(p unsafe.Pointer) Site { return Site{} }

// Had returns the calls that made and freed a block of a heap or a buddy, in a checked build.
func Had(p unsafe.Pointer) string { return "" }

// Text returns the text of a number in a checked build.
func Text(id uint32) string { return "" }

// NoteType and liveObjects do their work only in the checked build.

func NoteType(p unsafe.Pointer, name string) {}

const (
	LiveNode  = 1
	LiveParts = 2
)

func liveObjects(unsafe.Pointer, func(_, _ uint64, _, _ uint32, _ uint64)) (known bool) { return false }

// SiteOf returns the Site of a number in a checked build.
func SiteOf(calls uint32) Site { return Site{} }

// Site is a call site in a checked build.
type Site struct{}

// Note keeps the call stack in a checked build.
func (*Site) Note() {}

// Tell returns the event and its calls in a checked build.
func (*Site) Tell(what string) string { return "" }

// Calls returns the calls in a checked build.
func (*Site) Calls() []string { return nil }
