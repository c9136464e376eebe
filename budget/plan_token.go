package budget

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// planReader walks the tokens of one plan. Keys are paths, as in regions[2].size.
type planReader struct {
	data   []byte
	at     int        // what lies before has been read
	open   []planOpen // the objects and lists around it, outermost first
	want   planWant
	broken bool // the JSON is: no token comes any more

	places map[string]int  // where each key's value begins
	unread map[string]bool // keys whose value could not be read
	faults []planPlaced    // the first planFaultsMax, in the order of the file
	more   int             // the others
}

// planPlaced is a fault and where it is.
type planPlaced struct {
	at int
	planFault
}

func (r *planReader) faultAt(at int, key, format string, args ...any) {
	i := len(r.faults)
	for i > 0 && r.faults[i-1].at > at {
		i--
	}
	r.faults = slices.Insert(r.faults, i, planPlaced{at, planFault{key, fmt.Sprintf(format, args...)}})
	if len(r.faults) > planFaultsMax {
		r.faults = r.faults[:planFaultsMax]
		r.more++
	}
}

func (r *planReader) lineAt(offset int) int { return 1 + bytes.Count(r.data[:offset], []byte("\n")) }

// placeOf is where a key's value stands, or the nearest one around it for a key that was not given.
func (r *planReader) placeOf(key string) int {
	for key := range planKeys(key) {
		if at, found := r.places[key]; found {
			return at
		}
	}
	return 0
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

// begin gives the first token of a key's value.
func (r *planReader) begin(key string) planToken {
	token := r.next()
	if !r.broken {
		r.places[key] = token.at
	}
	if token.text == "{" || token.text == "[" {
		r.open[len(r.open)-1].key = key
	}
	return token
}

// refuse reports a value that is not what the key wants.
func (r *planReader) refuse(key string, token planToken, format string, args ...any) {
	if !r.broken {
		r.faultAt(token.at, key, "%s %s", token.echo(), fmt.Sprintf(format, args...))
		r.unread[key] = true
		r.skip(token)
	}
}

// skip passes over the rest of the value that began with token.
func (r *planReader) skip(token planToken) {
	for depth := 0; !r.broken; token = r.next() {
		switch token.text {
		case "{", "[":
			depth++
		case "}", "]":
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

// planKey is a key of an object and how its value is read.
type planKey struct {
	name string
	read func(key string)
}

// object reads an object of known keys, each at most once.
func (r *planReader) object(key string, known ...planKey) {
	if token := r.begin(key); token.text != "{" {
		r.refuse(key, token, "is not an object")
		return
	}
	if key != "" {
		key += "."
	}
	given := make(map[string]bool, len(known))
	for name := r.next(); name.isString(); name = r.next() {
		r.member(key, name, given, known)
	}
}

func (r *planReader) member(parent string, token planToken, given map[string]bool, known []planKey) {
	var names []string
	name := token.string()
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
		r.faultAt(token.at, parent+name, "given twice")
		r.skip(r.next())
		return
	}
	r.faultAt(token.at, parent+planKeyText(name), "no such key (there are %s)", strings.Join(names, ", "))
	r.skip(r.next())
}

// list reads a list; its elements' keys are regions[0], regions[1] and so on.
func (r *planReader) list(key string, read func(key string)) {
	if token := r.begin(key); token.text != "[" {
		r.refuse(key, token, "is not a list")
		return
	}
	for i := 0; !r.broken && r.peek() != ']'; i++ {
		read(key + "[" + strconv.Itoa(i) + "]")
	}
	r.next() // the closing bracket
}
