package scope

import (
	"fmt"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Text builds a text in a scope. It owns no byte of the scope while it is empty, and grows as Append does: in place when
// it is the last thing in its scope, else it moves to a new place with twice the capacity. It makes no Go allocation, so
// it is for ticks: what doesn't fit, one Add as a whole, is left out, and the scope remembers the full ([Scope.Err]).
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
func (s Scope) Text() Text { return Text{scope: s, at: s.h.Cursor} }

// Add adds a string.
func (t *Text) Add(s string) *Text { return t.AddBytes(unsafe.Slice(unsafe.StringData(s), len(s))) }

// AddBytes adds bytes as they are.
func (t *Text) AddBytes(p []byte) *Text {
	t.add(p)
	return t
}

// AddByte adds one byte.
func (t *Text) AddByte(b byte) *Text {
	one := [1]byte{b}
	return t.AddBytes(one[:])
}

// AddRune adds r in UTF-8; a number that is no rune as U+FFFD.
func (t *Text) AddRune(r rune) *Text {
	var room [utf8.UTFMax]byte
	return t.AddBytes(utf8.AppendRune(room[:0], r))
}

// AddInt adds i in decimal.
func (t *Text) AddInt(i int64) *Text {
	var room [20]byte
	return t.AddBytes(strconv.AppendInt(room[:0], i, 10))
}

// AddUint adds u in decimal.
func (t *Text) AddUint(u uint64) *Text {
	var room [20]byte
	return t.AddBytes(strconv.AppendUint(room[:0], u, 10))
}

// AddHex adds u in hexadecimal: lower case, no prefix, no leading zeros.
func (t *Text) AddHex(u uint64) *Text {
	var room [16]byte
	return t.AddBytes(strconv.AppendUint(room[:0], u, 16))
}

// digitsMax bounds the length of a float: 309 digits before the point, and these behind it.
const digitsMax = 64

// AddFloat adds x in decimal with so many digits behind the point, rounded; with -1, as few as read back as x. Others
// below 0 or above 64 panic. There is no exponent.
func (t *Text) AddFloat(x float64, digits int) *Text {
	if digits < -1 || digits > digitsMax {
		panic(&Misuse{fmt.Sprintf("AddFloat with %d digits: there are 0 to %d, or -1", digits, digitsMax), false})
	}
	var room [1 + 309 + 1 + digitsMax]byte
	return t.AddBytes(strconv.AppendFloat(room[:0], x, 'f', digits, 64))
}

// quotedAtOnce is how many bytes AddQuoted quotes at a time: none of them takes more than 4.
const quotedAtOnce = 16

// AddQuoted adds s in double quotes, with escapes for what doesn't print, as %q does.
func (t *Text) AddQuoted(s string) *Text {
	before := len(t.text)
	quote := []byte{'"'}
	ok := t.add(quote)
	for len(s) > 0 && ok {
		n := wholeRunes(s)
		var room [4*(quotedAtOnce+utf8.UTFMax) + 2]byte
		quoted := strconv.AppendQuote(room[:0], s[:n])
		ok = t.add(quoted[1 : len(quoted)-1])
		s = s[n:]
	}
	if !ok || !t.add(quote) {
		t.text = t.text[:before] // as a whole, or not at all
	}
	return t
}

// wholeRunes is a length near quotedAtOnce that cuts no rune of s.
func wholeRunes(s string) int {
	n := min(len(s), quotedAtOnce)
	for n < len(s) && n < quotedAtOnce+utf8.UTFMax-1 && !utf8.RuneStart(s[n]) {
		n++
	}
	return n
}

// Write adds p, for fmt.Fprintf and its like, which use the Go heap. Its error is the full, and nothing of p was added
// then.
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

// refuseFrozen refuses, as misuse, that s takes bytes while it is frozen: nobody would look at what it
// remembers, and a Text in it would stay as it is for ever.
func (s Scope) refuseFrozen(what string) {
	if s.h.Gen == 0 && !s.isTemp() && s.h.Find(s.gen) == s.h.Depth {
		panic(s.misuse(what))
	}
}
