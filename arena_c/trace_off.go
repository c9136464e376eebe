//go:build !memtrace

package arena_c

// Trace says whether each request asks Refuse. Without the tag memtrace none does, and the compiler drops the question.
const Trace = false

// OnPurpose is a bit that no refusal has in this build.
const OnPurpose = OffsetMax << 1

// FailAt, Failed, Refuse and Tell do nothing in this build: see trace_on.go.

func FailAt(uint64)                {}
func Failed() (refused, told bool) { return false, false }
func Refuse() bool                 { return false }
func Tell()                        {}
func given[H any](_ *H, _ H) bool  { return true }

// Asked is the size of the header's last refusal.
func (l *Linear) Asked() (size uint64, onPurpose bool) { return l.Refused & Offsets, false }
