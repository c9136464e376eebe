// Package jsonfile reads JSON that people write: the plan of a budget, the graph of a level. It is
// for the packages of this module.
//
//	f, root := jsonfile.Parse("handheld.json:", data)
//	if root == nil {
//		return f.Err()
//	}
//	for member := range f.Members(root, []string{"regions", "reserve"}) {
//		use(member.Name, member.Text)
//	}
//	return f.Err()
//
// Reading is strict. It reports up to [MaxFaults] faults at once, each with its line in the file
// and its path:
//
//	handheld.json:7: regions[2].size: "-4MiB" is not a size
//
// encoding/json parses the values; this package adds their keys and places, and refuses a key that
// occurs twice. json.Unmarshal would take the last of two equal keys, and report only one fault,
// with the Go type that the value doesn't fit.
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
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ReadFile returns the contents of a file of at most `most` bytes. For a larger file the error is
// tooLarge. Errors name the file.
func ReadFile(name string, most int, tooLarge string) ([]byte, error) {
	data, err := readFile(name, most)
	if len(data) > most {
		err = errors.New(tooLarge)
	}
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err // without the name, added below
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
	return io.ReadAll(io.LimitReader(file, int64(min(most, math.MaxInt-1))+1))
}

// File is the text of one file, with its faults.
type File struct {
	place  string
	data   []byte
	given  map[string]*Value // by path
	fresh  []*Value          // given, but not yet in the map
	faults []fault
}

// Value is a value in the file. A member of an object also has a name, and the offset of the name.
type Value struct {
	Name   string
	NameAt int
	At     int
	Text   string // as in the file
	// Refused reports whether the value itself has a fault, so that its meaning needs no check.
	Refused bool

	around *Value
	i      int // the value's place in an object or list
	inside []*Value
}

type fault struct {
	at         int
	path, text string
}

// MaxFaults is the number of faults that one error lists.
const MaxFaults = 100

// Parse checks that data is JSON in UTF-8 and returns the whole value. The value is nil if a fault
// hides all others. Errors begin with the place and a line: "handheld.json:" makes
// "handheld.json:7: ".
func Parse(place string, data []byte) (*File, *Value) {
	f := &File{place: place, data: data, given: map[string]*Value{}}
	if f.checkText(); f.faults != nil {
		return f, nil
	}
	p := parser{json.NewDecoder(bytes.NewReader(data)), string(data)}
	p.UseNumber() // else a number beyond a float64 fails
	root := &Value{At: p.next()}
	p.read(root)
	f.fresh = append(f.fresh, root)
	return f, root
}

// parser reads text that checkText has read, so that nothing can fail.
type parser struct {
	*json.Decoder
	text string
}

// next returns the offset of the next token.
func (p *parser) next() int {
	return len(p.text) - len(strings.TrimLeft(p.text[p.InputOffset():], space+",:"))
}

// read fills in a value at next, and the values inside.
func (p *parser) read(v *Value) {
	bracket, _ := p.Token()
	if _, is := bracket.(json.Delim); is {
		for p.More() {
			m := &Value{NameAt: p.next(), around: v, i: len(v.inside)}
			if bracket == json.Delim('{') {
				name, _ := p.Token()
				m.Name, _ = name.(string)
			}
			m.At = p.next()
			p.read(m)
			v.inside = append(v.inside, m)
		}
		_, _ = p.Token()
	}
	v.Text = p.text[v.At:p.InputOffset()]
}

// checkText finds faults of the JSON, and bytes that aren't UTF-8, which a string would silently
// replace. json.Unmarshal reports the exact byte of a fault, including text after the value. Before
// an early end, Go 1.27 doesn't count an unfinished number.
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
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok { // Offset counts the faulty byte
		at, end := max(int(syntax.Offset)-1, 0), len(bytes.TrimRight(f.data, space))
		if strings.HasPrefix(err.Error(), "unexpected end") {
			at = end
		}
		f.Fault(min(at, end), "", "%v", err)
	}
}

const space = " \t\r\n"

// Fault adds a fault at an offset of the file, for a path. An offset outside of the file is that of
// its first or last line.
func (f *File) Fault(at int, path, format string, args ...any) {
	at = min(max(at, 0), len(f.data))
	f.faults = append(f.faults, fault{at, path, fmt.Sprintf(format, args...)})
}

// Refuse adds a fault of a value itself. Its text is the value and then err, as in "7 is not a
// string".
func (f *File) Refuse(v *Value, err error) {
	v.Refused = true
	f.Fault(v.At, v.Path(), "%s %v", v, err)
}

// Given returns the value at a path, or the nearest one around it if the path has none.
func (f *File) Given(path string) *Value {
	for _, v := range f.fresh {
		f.given[v.Path()] = v
	}
	f.fresh = nil
	for {
		if value, found := f.given[path]; found {
			return value
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// Err returns the faults in the order of the file, each with its line. Of those beyond MaxFaults it
// has only the number.
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

// Members yields the members of an object in the order of the file. If a name isn't in known, or
// occurred before, Members adds a fault and skips the member. A nil known allows any name. If the
// value isn't an object, Members adds a fault and yields nothing.
func (f *File) Members(v *Value, known []string) iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		if v.Text[0] != '{' {
			f.Refuse(v, errors.New("is not an object"))
			return
		}
		names := make(map[string]bool, len(v.inside))
		for _, m := range v.inside {
			switch {
			case known != nil && !slices.Contains(known, m.Name):
				f.Fault(m.NameAt, m.Path(), "no such key (there are %s)", strings.Join(known, ", "))
			case names[m.Name]:
				f.Fault(m.NameAt, m.Path(), "given twice")
			default:
				names[m.Name] = true
				f.fresh = append(f.fresh, m)
				if !yield(m) {
					return
				}
			}
		}
	}
}

// Items yields each value of a list. If the value isn't a list, Items adds a fault and yields
// nothing.
func (f *File) Items(v *Value) iter.Seq[*Value] {
	return func(yield func(*Value) bool) {
		if v.Text[0] != '[' {
			f.Refuse(v, errors.New("is not a list"))
			return
		}
		for _, m := range v.inside {
			f.fresh = append(f.fresh, m)
			if !yield(m) {
				return
			}
		}
	}
}

// Path returns the names from the whole to the value, as regions[2].size.
func (v *Value) Path() string {
	if v.around == nil {
		return ""
	}
	path := v.around.Path()
	switch {
	case v.around.Text[0] == '[':
		return fmt.Sprintf("%s[%d]", path, v.i)
	case path == "":
		return keyText(v.Name)
	}
	return path + "." + keyText(v.Name)
}

// Str returns the text of a string, and an error for any other value.
func (v *Value) Str() (text string, err error) {
	if v.Text[0] != '"' {
		return "", errors.New("is not a string")
	}
	err = json.Unmarshal([]byte(v.Text), &text)
	return text, err
}

// String returns the value for a message, cut short.
func (v *Value) String() string {
	switch v.Text[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	return Echo(v.Text)
}

// keyText returns a key for a path; an unusual one is quoted, so that it can't disturb the message.
func keyText(name string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if name != "" && len(name) <= 40 && strings.Trim(name, plain) == "" {
		return name
	}
	return Quote(name)
}

// Echo returns text of a file for a message: cut short, without characters that disturb a terminal.
func Echo(text string) string {
	const most = 60
	end := ""
	if len(text) > most {
		text, end = text[:most], "…"
	}
	return Printable(text) + end
}

// Printable returns the text with U+FFFD for every character that isn't printable, except the
// listed ones, so that the text is UTF-8 and can't steer a terminal.
func Printable(text string, except ...rune) string {
	return strings.Map(func(char rune) rune {
		if unicode.IsPrint(char) || slices.Contains(except, char) {
			return char
		}
		return utf8.RuneError
	}, text)
}

// Quote quotes text for a message, cut short.
func Quote(text string) string {
	const most = 40
	if len(text) <= most {
		return strconv.Quote(text)
	}
	return strconv.Quote(text[:most]) + "…"
}
