//go:build !checked

package arena_c

// Checked says whether this is the checked build (-tags checked). In others nothing below does anything, and the compiler
// drops the questions: see checked_on.go and site.go.
const Checked = false

// OnPurpose is a bit that no refusal has in this build.
const OnPurpose = OffsetMax << 1

// FailAt, Failed, Refuse and Tell are for the checked build.

func FailAt(uint64)                {}
func Failed() (refused, told bool) { return false, false }
func Refuse() bool                 { return false }
func Tell()                        {}
func given[H any](_ *H, _ H) bool  { return true }

// Asked is the size of the header's last refusal.
func (l *Linear) Asked() (size uint64, onPurpose bool) { return l.Refused & Offsets, false }

// Site is where something began that must end: in the checked build.
type Site struct{}

// Note keeps the calls that lead here: in the checked build.
func (*Site) Note() {}

// Tell is a line with what happened there, and a line for each call: in the checked build.
func (*Site) Tell(what string) string { return "" }
