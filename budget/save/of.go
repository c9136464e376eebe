package save

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// subject is data outside of a state that its play depends on.
type subject struct {
	Name string `json:"name"`
	Sum  uint64 `json:"sum"`
}

func (s *subject) String() string {
	return fmt.Sprintf("%s, sum %#x", s.Name, s.Sum)
}

// Of names data outside of the state on which play depends, such as a map, a table of rules or a
// script. name describes the data in errors, and sum is a checksum of the data. A file contains
// name and sum. A delta contains one checksum of all names and sums. [Ring.Read] and [Ring.Apply]
// refuse a file or delta with another name or sum. Call Of in the load before NewRing; after
// NewRing it panics. All programs must make their calls of Of in the same order. A checksum finds
// honest mistakes, but doesn't protect against forgery.
func (st *State) Of(name string, sum uint64) {
	if st.end != 0 {
		panic(fmt.Sprintf("save: BUG: Of(%q) after NewRing, in region %s", name, st.saved.Name))
	}
	st.of = append(st.of, subject{jsonfile.Printable(name), sum})
}

// differIn returns the first difference between two lists of a region, or "". The format is for the
// index, the region, and both texts; none is the text of a missing element.
func differIn[T any](format, region, none string, here, there []T, text func(*T) string) string {
	for i := range max(len(here), len(there)) {
		a, b := none, none
		if i < len(here) {
			a = text(&here[i])
		}
		if i < len(there) {
			b = text(&there[i])
		}
		if a != b {
			return fmt.Sprintf(format, i, region, a, b)
		}
	}
	return ""
}

func (r *Ring) subjects() string {
	var all []string
	for i := range r.parts {
		for k := range r.parts[i].of {
			all = append(all, r.parts[i].of[k].String())
		}
	}
	if all == nil {
		return "nothing"
	}
	return strings.Join(all, "; ")
}

// subjectsSum returns a checksum of the subjects of all states, or 0 if there are no subjects.
func subjectsSum(parts []part) (sum uint32) {
	h := fnv.New32a()
	for i := range parts {
		for _, s := range parts[i].of {
			fmt.Fprintf(h, "%d %q %d\n", i, s.Name, s.Sum) // never fails
			sum = max(h.Sum32(), 1)
		}
	}
	return sum
}
