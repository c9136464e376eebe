package scope

import (
	"fmt"
	"strconv"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// Text builds a text in a scope. It owns no byte of the scope while it is empty, and grows as Append does: in place when
// it is the last thing in its scope, else it moves to a new place with twice the capacity. It makes no Go allocation, so
// it is for ticks: what doesn't fit, one Add as a whole, is left out, and the scope remembers the full: ask [Scope.Err]
// before the text goes anywhere.
//
// What it gives, Bytes and String, are views that die with the scope; Reset and what is added after it write over them.
// After its scope closed a Text reads as empty, and an Add to it panics. One goroutine at a time uses it.
type Text struct {
	_     noCopy
	scope Scope
	text  []byte
	at    uint64 // the cursor when it was made
}

// Text gives an empty text in s.
func (s Scope) Text() Text { return Text{scope: s, at: s.its().Cursor} }

// Add adds a string.
func (t *Text) Add(s string) *Text {
	t.add(unsafe.Slice(unsafe.StringData(s), len(s)))
	return t
}

// AddBytes adds a copy of p, as what comes from the network. The bytes are the caller's again when it returns.
func (t *Text) AddBytes(p []byte) *Text {
	t.add(p)
	return t
}

// AddInt adds i in decimal.
func (t *Text) AddInt(i int64) *Text {
	var room [20]byte
	t.add(strconv.AppendInt(room[:0], i, 10))
	return t
}

// Write adds p: what package strconv appends to an array of the caller's, or fmt.Fprintf and its like write, which use
// the Go heap. Its error is the full, and nothing of p was added then.
//
//	var room [32]byte
//	text.Write(strconv.AppendFloat(room[:0], x, 'f', 2, 64))
func (t *Text) Write(p []byte) (int, error) {
	if !t.add(p) {
		return 0, why(refusal(t.scope))
	}
	return len(p), nil
}

func (t *Text) add(p []byte) bool {
	if !t.scope.alive() {
		panic(t.scope.misuse("Add to a Text in"))
	}
	if len(p) > cap(t.text)-len(t.text) {
		t.scope.refuseFrozen("Add to a Text in")
		if t.text == nil && t.scope.open() {
			t.scope.mayGrow(t.at, "Add inside a constructor to a Text")
		}
	}
	longer, ok := appendTo(t.scope, t.text, p)
	if ok {
		t.text = longer
	}
	return ok
}

// Bytes is the text. It is valid until Reset, and as long as the scope is open; cap is len.
func (t *Text) Bytes() []byte {
	if !t.scope.alive() {
		return nil
	}
	return t.text[:len(t.text):len(t.text)]
}

// String is the text as Bytes gives it, not a copy: it changes after Reset and dies with the scope. strings.Clone keeps it.
func (t *Text) String() string {
	text := t.Bytes()
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// Len is the number of bytes, 0 after the scope closed.
func (t *Text) Len() int { return len(t.Bytes()) }

// Reset makes the text empty. The bytes it owns are used again by what is added next.
func (t *Text) Reset() *Text {
	if text := t.Bytes(); arena_c.Race {
		arena_c.Dead(unsafe.Pointer(unsafe.SliceData(text)), uintptr(len(text)))
	}
	t.text = t.text[:0]
	return t
}

// Sprintf formats as fmt.Sprintf does. It is for loads: formatting uses the Go heap. The string lies in s and dies with it:
// so it is no key of a map, no error and no line of a log that lives longer; strings.Clone keeps it. A full scope unwinds.
func Sprintf(s Scope, format string, args ...any) string {
	text := clone(s, fmt.Appendf(nil, format, args...))
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// StringOf copies a text, a string or bytes, into s and gives what a T has in place of a string; base is that of s's region, or
// of the budget. It dies with s. A full scope unwinds; a base that s doesn't lie in is a caller's bug and panics. Cost: the
// copy; no Go allocation.
//
//	f.Name = scope.StringOf(s, base, "ada")
//	f.Name = scope.StringOf(s, base, packet[4:20])
func StringOf[S ~string | ~[]byte](s Scope, base arena.Base, text S) arena.String {
	made := s.BytesUnzeroed(len(text), 1)
	copy(made, text)
	if len(text) == 0 {
		return arena.String{} // equal texts of no bytes are equal bytes of a state
	}
	return arena.StringOf(base, made)
}

// refuseFrozen refuses, as misuse, that s takes bytes while it is frozen: nobody would look at what it
// remembers, and a Text in it would stay as it is for ever.
func (s Scope) refuseFrozen(what string) {
	if s.h.Gen == 0 && !s.isTemp() && s.h.Find(s.gen) == s.h.Depth {
		panic(s.misuse(what))
	}
}
