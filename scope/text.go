package scope

import (
	"fmt"
	"strconv"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Text builds a text in a scope. A Text takes no byte of the scope before the first Add. A Text
// grows as Append does: in place if it is the newest allocation of the scope, else in a new place.
// A Text makes no Go allocation, so use it in ticks. An Add that doesn't fit appends no byte, and
// the scope remembers the error. So check [Scope.Err] before you use the text.
//
// Bytes and String return views of the text, which end with the scope. An Add after a Reset
// overwrites them. After its scope has closed, a Text is empty, and an Add panics. An Add that must
// grow the text also panics if the scope is frozen, or in a constructor that is newer than the Text
// (see [Maker.Make]). One goroutine at a time uses a Text; don't copy it.
type Text struct {
	_     stack.NoCopy
	scope Scope
	text  []byte
	at    uint64 // the cursor when it was made
}

// Text returns an empty text in s.
func (s Scope) Text() Text { return Text{scope: s, at: s.its().Cursor} }

// Add appends a string. It returns t, as the other Adds and Reset do.
func (t *Text) Add(s string) *Text {
	t.add(unsafe.Slice(unsafe.StringData(s), len(s)))
	return t
}

// AddBytes appends a copy of p, from the network for example.
func (t *Text) AddBytes(p []byte) *Text {
	t.add(p)
	return t
}

// AddInt appends i in decimal.
func (t *Text) AddInt(i int64) *Text {
	var room [20]byte
	t.add(strconv.AppendInt(room[:0], i, 10))
	return t
}

// Write appends p. To format without the Go heap, append with package strconv to an array of your
// own, as below. fmt.Fprintf also works, but uses the Go heap. If the scope is full, Write appends
// no byte and returns the error.
//
//	var room [32]byte
//	text.Write(strconv.AppendFloat(room[:0], x, 'f', 2, 64))
func (t *Text) Write(p []byte) (int, error) {
	if !t.add(p) {
		return 0, refusal(t.scope).Unwrap()
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
			stack.MayGrow(t.scope.h, t.scope.gen, t.at, "Add inside a constructor to a Text")
		}
	}
	longer, ok := appendTo(t.scope, t.text, p)
	if ok {
		t.text = longer
	}
	return ok
}

// Bytes returns the text's bytes. They are valid until Reset, or until the scope closes; cap is
// len.
func (t *Text) Bytes() []byte {
	if !t.scope.alive() {
		return nil
	}
	return t.text[:len(t.text):len(t.text)]
}

// String returns the text as a string, without a copy. So the string changes after a Reset and ends
// with the scope. strings.Clone copies a string.
func (t *Text) String() string {
	text := t.Bytes()
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// Len returns the number of bytes, or 0 after the scope has closed.
func (t *Text) Len() int { return len(t.Bytes()) }

// Reset makes the text empty. Later Adds use its bytes again.
func (t *Text) Reset() *Text {
	if text := t.Bytes(); arena_c.Race {
		arena_c.Dead(unsafe.Pointer(unsafe.SliceData(text)), uintptr(len(text)))
	}
	t.text = t.text[:0]
	return t
}

// Sprintf formats as fmt.Sprintf does and returns the string, which is in s. Use Sprintf in loads,
// not in ticks, because formatting uses the Go heap. The string ends with s. For a map key, an
// error or a log line that is kept longer, copy the string with strings.Clone. A full scope
// unwinds.
func Sprintf(s Scope, format string, args ...any) string {
	text := clone(s, fmt.Appendf(nil, format, args...))
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// StringOf copies text into s and returns the [arena.String] that a block holds in place of a
// string. base is the Base of s's region, or of the budget. The copy is freed with s. A full scope
// unwinds; StringOf panics if s isn't in base, unless text is empty. Cost: the copy; no Go
// allocation.
//
//	f.Name = scope.StringOf(s, base, "ada")
//	f.Name = scope.StringOf(s, base, packet[4:20])
func StringOf[S ~string | ~[]byte](s Scope, base arena.Base, text S) arena.String {
	made := s.BytesUnzeroed(len(text), 1)
	copy(made, text)
	if len(text) == 0 {
		return arena.String{} // empty texts must be equal bytes of a state
	}
	return arena.StringOf(base, made)
}

// refuseFrozen panics if s is frozen. A frozen scope could only remember an error that no call
// reads, and a Text in it could never change again.
func (s Scope) refuseFrozen(what string) {
	if s.h.Gen == 0 && !s.isTemp() && s.h.Find(s.gen) == s.h.Depth {
		panic(s.misuse(what))
	}
}
