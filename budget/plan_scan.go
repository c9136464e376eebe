package budget

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// planDepthMax is how deep an unknown key's value may nest. A plan's own nest three deep.
const planDepthMax = 100

// planToken is a piece of the JSON as it stands in the file: a bracket, a string with its quotes, a number, true, false
// or null. It is empty at the end of the file and once the JSON is broken.
type planToken struct {
	text string
	at   int // its offset
}

func (t planToken) isString() bool { return strings.HasPrefix(t.text, `"`) }

// string is what a string's token means.
func (t planToken) string() (text string) {
	_ = json.Unmarshal([]byte(t.text), &text) // the token was found valid
	return text
}

// bare is the token without a string's quotes.
func (t planToken) bare() string {
	if t.isString() {
		return t.string()
	}
	return t.text
}

// echo is the token for a message.
func (t planToken) echo() string {
	switch t.text {
	case "{":
		return "an object"
	case "[":
		return "a list"
	}
	return planEcho(t.text)
}

// planEcho is what stands in a file, for a message: cut short, and without what would disturb a terminal.
func planEcho(text string) string {
	const most = 60
	end := ""
	if len(text) > most {
		text, end = text[:most], "…"
	}
	return strings.Map(func(char rune) rune {
		if unicode.IsPrint(char) {
			return char
		}
		return utf8.RuneError
	}, text) + end
}

// planOpen is an object or list that the reader is inside.
type planOpen struct {
	at  int    // offset of its bracket
	key string // empty inside the value of an unknown key
}

// planWant is what JSON allows next, in the words of a message.
type planWant string

const (
	wantValue       planWant = "a value"
	wantElement     planWant = "a value or ']'"
	wantNextElement planWant = "',' or ']'"
	wantAnother     planWant = "a value after the comma"
	wantMember      planWant = `a "key" or '}'`
	wantNextMember  planWant = "',' or '}'"
	wantKey         planWant = `a "key" after the comma`
	wantColon       planWant = "':' after the key"
	wantEnd         planWant = "nothing more after the plan"
)

func (w planWant) value() bool { return w == wantValue || w == wantElement || w == wantAnother }

// next gives the next token. It knows JSON's whole grammar: encoding/json tells neither where a fault is nor what was
// open there.
func (r *planReader) next() planToken {
	for !r.broken {
		c := r.peek()
		switch {
		case c == 0 && r.want == wantEnd && r.at == len(r.data):
			return planToken{at: r.at}
		case c == ',' && r.want == wantNextMember:
			r.take(1, wantKey)
		case c == ',' && r.want == wantNextElement:
			r.take(1, wantAnother)
		case c == ':' && r.want == wantColon:
			r.take(1, wantValue)
		case c == '{' && r.want.value():
			return r.enter(wantMember)
		case c == '[' && r.want.value():
			return r.enter(wantElement)
		case c == '}' && (r.want == wantMember || r.want == wantNextMember),
			c == ']' && (r.want == wantElement || r.want == wantNextElement):
			r.open = r.open[:len(r.open)-1]
			return r.take(1, r.wantNext())
		case c == '"' && (r.want == wantMember || r.want == wantKey):
			return r.takeIf(r.stringLength(), wantColon)
		case c == '"' && r.want.value():
			return r.takeIf(r.stringLength(), r.wantNext())
		case r.want.value() && json.Valid(r.word()):
			return r.take(len(r.word()), r.wantNext())
		default:
			r.unexpected()
		}
	}
	return planToken{}
}

// peek passes over white space and gives the byte that follows, 0 at the end.
func (r *planReader) peek() byte {
	for ; r.at < len(r.data); r.at++ {
		if c := r.data[r.at]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

func (r *planReader) take(length int, want planWant) planToken {
	token := planToken{string(r.data[r.at : r.at+length]), r.at}
	r.at += length
	r.want = want
	return token
}

// takeIf is take unless the token has no length, because it is broken.
func (r *planReader) takeIf(length int, want planWant) planToken {
	if length == 0 {
		return planToken{}
	}
	return r.take(length, want)
}

func (r *planReader) enter(want planWant) planToken {
	if len(r.open) == planDepthMax {
		r.breakOff("nests deeper than %d", planDepthMax)
		return planToken{}
	}
	r.open = append(r.open, planOpen{at: r.at})
	return r.take(1, want)
}

// wantNext is what may stand after a value.
func (r *planReader) wantNext() planWant {
	switch {
	case len(r.open) == 0:
		return wantEnd
	case r.data[r.open[len(r.open)-1].at] == '{':
		return wantNextMember
	}
	return wantNextElement
}

// stringLength measures the string that begins here, quotes included. 0: it is none.
func (r *planReader) stringLength() int {
	rest := r.data[r.at:]
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"' && json.Valid(rest[:i+1]):
			return i + 1
		case c == '"':
			r.breakOff(`%s has an escape that JSON does not know; a backslash is written \\`, planEcho(string(rest[:i+1])))
			return 0
		case c == '\n' || c == '\r':
			r.breakOff(`the line ends inside the string %s; expected '"'`, planEcho(string(rest[:i])))
			return 0
		case c < ' ':
			r.breakOff("found %q inside a string, where JSON wants it escaped", c)
			return 0
		case c == '\\':
			i++
		}
	}
	r.breakOff(`the file ends inside the string %s; expected '"'`, planEcho(string(rest)))
	return 0
}

// word is what stands here without a space: a number, a name, or something like them.
func (r *planReader) word() []byte {
	end := bytes.IndexFunc(r.data[r.at:], func(char rune) bool {
		return !unicode.IsLetter(char) && !unicode.IsDigit(char) && !strings.ContainsRune("+-._", char)
	})
	if end < 0 {
		end = len(r.data) - r.at
	}
	return r.data[r.at : r.at+end]
}

// unexpected reports what stands here instead of what is wanted, and inside what.
func (r *planReader) unexpected() {
	ends := r.at == len(r.data)
	if ends {
		r.at = len(bytes.TrimRight(r.data, " \t\r\n")) // the last line that holds something
	}
	if ends && len(r.open) == 0 {
		r.breakOff("the file ends without a plan")
		return
	}
	inside := ""
	if n := len(r.open); n > 0 {
		kind := map[byte]string{'{': "object", '[': "list"}[r.data[r.open[n-1].at]]
		inside = fmt.Sprintf(" inside the %s opened at line %d", kind, r.lineAt(r.open[n-1].at))
	}
	if ends {
		r.breakOff("the file ends%s; expected %s", inside, r.want)
		return
	}
	if found := r.found(); found != "" {
		r.breakOff("found %s%s; expected %s%s", found, inside, r.want, r.hint())
	}
}

// found is the character that stands here, or the whole word or string. It is empty when that is a broken string, which
// has been said then.
func (r *planReader) found() string {
	char, size := utf8.DecodeRune(r.data[r.at:])
	if char == '"' {
		return planEcho(string(r.data[r.at : r.at+r.stringLength()]))
	}
	if word := r.word(); len(word) > 0 {
		return planEcho(string(word))
	}
	if char == utf8.RuneError && size == 1 {
		return fmt.Sprintf("byte %#x", r.data[r.at])
	}
	return fmt.Sprintf("%q", char)
}

// hint is what a newcomer may have meant with what stands here.
func (r *planReader) hint() string {
	switch {
	case r.data[r.at] == '/' || r.data[r.at] == '#':
		return " (JSON has no comments)"
	case len(r.word()) > 0 && r.want.value():
		return " (a string needs quotes)"
	}
	return ""
}

// breakOff reports a fault of the JSON itself: no token comes any more. Its key is that of the object or list around it.
func (r *planReader) breakOff(format string, args ...any) {
	key := ""
	if n := len(r.open); n > 0 {
		key = r.open[n-1].key
	}
	r.faultAt(r.at, key, format, args...)
	r.broken = true
}
