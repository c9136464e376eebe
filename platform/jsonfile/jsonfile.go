// Package jsonfile reads JSON that people write: the plan of a budget, the graph of a level. It is
// for the packages of this module.
//
// Reading is strict, and says all that is wrong at once, each fault on a line with the place in the
// file and the path:
//
//	handheld.json:7: regions[2].size: "-4MiB" is not a size
//
// What a value is and where it ends, encoding/json says. Which key has it, that no key is given
// twice, and where that stands in the file, is said here: json.Unmarshal would take the last of two
// equal keys, and report one fault alone, by the Go type that it doesn't fit.
package jsonfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ReadFile is the bytes of a file of at most so many; of a larger one the error says tooLarge.
// Errors name the file.
func ReadFile(name string, most int, tooLarge string) ([]byte, error) {
	data, err := readFile(name, most)
	if len(data) > most {
		err = errors.New(tooLarge)
	}
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err // which names the file, and so does this:
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

func readFile(name string, most int) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, int64(most)+1))
}

// File is the text of one file, and what is wrong with it.
type File struct {
	place  string
	data   []byte
	given  map[string]*Value
	faults []fault
}

// Value is a value in the file. A member of an object has a name and where that stands.
type Value struct {
	Path   string // regions[2].size
	Name   string
	NameAt int
	At     int
	Text   string // as it stands in the file
	// Refused says that a fault was reported of the value itself: what it would mean needs no
	// other.
	Refused bool
}

// fault is one thing wrong: where, of what, and what.
type fault struct {
	at         int
	path, text string
}

// MaxFaults is how many faults one error lists.
const MaxFaults = 100

// Parse looks whether data is JSON in UTF-8. It is the whole value; nil when a fault hides all
// others. Errors begin with the place and a line: "handheld.json:" gives "handheld.json:7: ".
func Parse(place string, data []byte) (*File, *Value) {
	f := &File{place: place, data: data, given: map[string]*Value{}}
	if f.checkText(); f.faults != nil {
		return f, nil
	}
	root := &Value{At: len(data) - len(bytes.TrimLeft(data, space))}
	root.Text = string(bytes.TrimSpace(data))
	f.given[""] = root
	return f, root
}

// checkText finds what breaks the JSON, and a byte that is not UTF-8: a string would quietly have
// another character there. json.Unmarshal says to the byte what is wrong, an early end and anything
// after the value among that.
func (f *File) checkText() {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} { // of UTF-8 and UTF-16
		if bytes.HasPrefix(f.data, []byte(mark)) {
			f.Fault(0, "", "the file begins with a byte order mark; save it as UTF-8 without one")
			return
		}
	}
	for at := 0; at < len(f.data); {
		char, size := utf8.DecodeRune(f.data[at:])
		if char == utf8.RuneError && size == 1 {
			f.Fault(at, "", "byte %#x is not UTF-8", f.data[at])
			return
		}
		at += size
	}
	err := json.Unmarshal(f.data, new(json.RawMessage))
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok { // which counts the faulty byte, too
		at := min(max(int(syntax.Offset)-1, 0), len(bytes.TrimRight(f.data, space)))
		f.Fault(at, "", "%v", err)
	}
}

const space = " \t\r\n"

// Fault adds one: at an offset of the file, of a path.
func (f *File) Fault(at int, path, format string, args ...any) {
	f.faults = append(f.faults, fault{at, path, fmt.Sprintf(format, args...)})
}

// Refuse adds a fault of a value itself: what it is, and err after that: "7 is not a string".
func (f *File) Refuse(v *Value, err error) {
	v.Refused = true
	f.Fault(v.At, v.Path, "%s %v", v, err)
}

// Given is the value of a path, or the nearest one around it for a path that has none.
func (f *File) Given(path string) *Value {
	for {
		if value, found := f.given[path]; found {
			return value
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// Err is every fault in the order of the file, each behind its line in the file.
func (f *File) Err() error {
	slices.SortStableFunc(f.faults, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	var errs []error
	for _, fault := range f.faults[:min(len(f.faults), MaxFaults)] {
		path := fault.path
		if path != "" {
			path += ": "
		}
		line := 1 + bytes.Count(f.data[:fault.at], []byte("\n"))
		errs = append(errs, fmt.Errorf("%s%d: %s%s", f.place, line, path, fault.text))
	}
	if more := len(f.faults) - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// Members gives each member of an object in the order of the file, if its name is one of known and
// came once; any name is right when known is nil. Of another value there are none, and a fault.
func (f *File) Members(v *Value, known []string) iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		if v.Text[0] != '{' {
			f.Refuse(v, errors.New("is not an object"))
			return
		}
		prefix := v.Path
		if prefix != "" {
			prefix += "."
		}
		given := map[string]bool{}
		f.each(v, func(m *Value) bool {
			m.Path = prefix + keyText(m.Name)
			switch {
			case known != nil && !slices.Contains(known, m.Name):
				f.Fault(m.NameAt, m.Path, "no such key (there are %s)", strings.Join(known, ", "))
			case given[m.Name]:
				f.Fault(m.NameAt, m.Path, "given twice")
			default:
				given[m.Name] = true
				f.given[m.Path] = m
				return yield(m)
			}
			return true
		})
	}
}

// Items gives each value of a list. Of another value there are none, and a fault.
func (f *File) Items(v *Value) iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		if v.Text[0] != '[' {
			f.Refuse(v, errors.New("is not a list"))
			return
		}
		i := 0
		f.each(v, func(m *Value) bool {
			m.Path = fmt.Sprintf("%s[%d]", v.Path, i)
			f.given[m.Path] = m
			i++
			return yield(m)
		})
	}
}

// each reads an object or a list, member by member.
func (f *File) each(v *Value, member func(*Value) bool) {
	decoder := json.NewDecoder(strings.NewReader(v.Text))
	next := func() int {
		rest := v.Text[decoder.InputOffset():]
		return len(v.Text) - len(strings.TrimLeft(rest, space+",:"))
	}
	_, _ = decoder.Token() // the bracket; Parse has read it all, so that nothing fails
	for decoder.More() {
		m := &Value{NameAt: v.At + next()}
		if v.Text[0] == '{' {
			name, _ := decoder.Token()
			m.Name, _ = name.(string)
		}
		at := next()
		m.At = v.At + at
		_ = decoder.Decode(new(json.RawMessage))
		m.Text = v.Text[at:decoder.InputOffset()]
		if !member(m) {
			return
		}
	}
}

// Str is the text of a string.
func (v *Value) Str() (text string, err error) {
	if v.Text[0] != '"' {
		return "", errors.New("is not a string")
	}
	err = json.Unmarshal([]byte(v.Text), &text)
	return text, err
}

// String is the value for a message: what it says, cut short.
func (v *Value) String() string {
	switch v.Text[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return Echo(v.Text)
}

// keyText writes a key in a path; a strange one is quoted, so that it can't disturb the message.
func keyText(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if name != "" && len(name) <= 40 && strings.Trim(name, plain) == "" {
		return name
	}
	return Quote(name)
}

// Echo is what stands in a file, for a message: cut short, and without what would disturb a
// terminal.
func Echo(text string) string {
	const most = 60
	end := ""
	if len(text) > most {
		text, end = text[:most], "…"
	}
	return Printable(text) + end
}

// Printable is text that can't steer a terminal and is UTF-8: every character that isn't printable
// is U+FFFD instead, unless it is one of except.
func Printable(text string, except ...rune) string {
	return strings.Map(func(char rune) rune {
		if unicode.IsPrint(char) || slices.Contains(except, char) {
			return char
		}
		return utf8.RuneError
	}, text)
}

// Quote quotes text for a message; a file may hold a very long one.
func Quote(text string) string {
	const most = 40
	if len(text) <= most {
		return strconv.Quote(text)
	}
	return strconv.Quote(text[:most]) + "…"
}
