package budget

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
)

// planReader walks the tokens of one plan. Keys are paths, as in regions[2].size.
type planReader struct {
	place   string // what stands before a line's number
	data    []byte
	decoder *json.Decoder
	key     string // being read, for faults of the JSON itself
	broken  bool   // the JSON is: no token comes any more

	line, counted int             // line of the byte data[counted]
	lines         map[string]int  // where each key's value begins
	unread        map[string]bool // keys whose value could not be read
	faults        []error
	more          int // faults beyond planFaultsMax
}

func (r *planReader) fault(key, format string, args ...any) {
	r.faultAt(r.lineAt(r.decoder.InputOffset()), key, format, args...)
}

func (r *planReader) faultAt(line int, key, format string, args ...any) {
	if len(r.faults) == planFaultsMax {
		r.more++
		return
	}
	if key != "" {
		key += ": "
	}
	r.faults = append(r.faults, fmt.Errorf("%s%d: %s%s", r.place, line, key, fmt.Sprintf(format, args...)))
}

// lineAt is the line of an offset. Offsets mostly grow, so that counting goes on where it stood.
func (r *planReader) lineAt(offset int64) int {
	end := int(min(max(offset, 0), int64(len(r.data))))
	if end < r.counted {
		r.line, r.counted = 0, 0
	}
	r.line += bytes.Count(r.data[r.counted:end], []byte("\n"))
	r.counted = end
	return r.line + 1
}

// lineOf is where a key stands, or the nearest one around it for a key that was not given.
func (r *planReader) lineOf(key string) int {
	for key := range planKeys(key) {
		if line, found := r.lines[key]; found {
			return line
		}
	}
	return 1
}

// reported tells whether the key's value, or one around it, could not be read: that has been said already.
func (r *planReader) reported(key string) bool {
	for key := range planKeys(key) {
		if r.unread[key] {
			return true
		}
	}
	return false
}

// planKeys goes from a key outwards: regions[2].size, regions[2], regions, and "" for the plan.
func planKeys(key string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(key) && key != "" {
			key = key[:max(strings.LastIndexAny(key, ".["), 0)]
		}
	}
}

// next gives the next token, or nil once the JSON is broken. nil is JSON's null too: no caller takes either for a value.
func (r *planReader) next() json.Token {
	if r.broken {
		return nil
	}
	token, err := r.decoder.Token()
	if err == nil {
		return token
	}
	r.broken = true
	offset := r.decoder.InputOffset()
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		offset, err = int64(len(r.data)), errors.New("ends too early")
	}
	r.faultAt(r.lineAt(offset), r.key, "%v", err)
	return nil
}

// begin gives the first token of a key's value.
func (r *planReader) begin(key string) json.Token {
	r.key = key
	token := r.next()
	if !r.broken {
		r.lines[key] = r.lineAt(r.decoder.InputOffset())
	}
	return token
}

// refuse reports a value of the wrong type and passes over what is left of it.
func (r *planReader) refuse(key string, token json.Token, want string) {
	if !r.broken {
		r.fault(key, "%s is not %s", tokenText(token), want)
		r.unread[key] = true
		r.skip(token)
	}
}

// skip passes over the rest of the value that began with token. It counts instead of recursing: a file may nest deeply.
func (r *planReader) skip(token json.Token) {
	for depth := 0; !r.broken; token = r.next() {
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return
		}
	}
}

// planKeyText writes a key that is none of ours; a strange one is quoted, so that it cannot disturb the message.
func planKeyText(name string) string {
	if name != "" && len(name) <= 40 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" {
		return name
	}
	return shortQuote(name)
}

func tokenText(token json.Token) string {
	switch v := token.(type) {
	case nil:
		return "null"
	case json.Delim:
		if v == '{' {
			return "an object"
		}
		return "a list"
	case string:
		return shortQuote(v)
	case json.Number:
		return shortQuote(v.String())
	}
	return fmt.Sprint(token)
}

// planKey is a key of an object and how its value is read.
type planKey struct {
	name string
	read func(key string)
}

// object reads an object of known keys, each at most once.
func (r *planReader) object(key string, known ...planKey) {
	if token := r.begin(key); token != json.Delim('{') {
		r.refuse(key, token, "an object")
		return
	}
	if key != "" {
		key += "."
	}
	given := make(map[string]bool, len(known))
	for {
		name, ok := r.next().(string)
		if !ok { // the end
			return
		}
		r.member(key, name, given, known)
	}
}

func (r *planReader) member(parent, name string, given map[string]bool, known []planKey) {
	var names []string
	for _, k := range known {
		if k.name != name {
			names = append(names, k.name)
			continue
		}
		if !given[name] {
			given[name] = true
			k.read(parent + name)
			return
		}
		r.fault(parent+name, "given twice")
		r.skip(r.next())
		return
	}
	r.fault(parent+planKeyText(name), "no such key (there are %s)", strings.Join(names, ", "))
	r.skip(r.next())
}

func (r *planReader) text(value *string) func(string) {
	return func(key string) {
		token := r.begin(key)
		text, ok := token.(string)
		if !ok {
			r.refuse(key, token, "a string")
		}
		*value = text
	}
}

func (r *planReader) size(value *uint64) func(string) {
	return func(key string) {
		token := r.begin(key)
		text, ok := token.(string)
		if number, isNumber := token.(json.Number); isNumber {
			text, ok = number.String(), true
		}
		if !ok {
			r.refuse(key, token, "a size")
			return
		}
		size, err := parseSize(text)
		if err != nil {
			r.fault(key, "%v", err)
			r.unread[key] = true
		}
		*value = size
	}
}

func (r *planReader) count(value *int) func(string) {
	return func(key string) {
		token := r.begin(key)
		number, ok := token.(json.Number)
		if !ok {
			r.refuse(key, token, "a number")
			return
		}
		count, err := parseCount(number.String())
		if err != nil {
			r.fault(key, "%v", err)
			r.unread[key] = true
		}
		*value = count
	}
}

// list reads a list; its elements' keys are regions[0], regions[1] and so on.
func (r *planReader) list(key string, read func(key string)) {
	if token := r.begin(key); token != json.Delim('[') {
		r.refuse(key, token, "a list")
		return
	}
	for i := 0; !r.broken && r.decoder.More(); i++ {
		read(key + "[" + strconv.Itoa(i) + "]")
	}
	r.next() // the closing bracket
}
