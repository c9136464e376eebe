package save

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// subject is something outside of a state that its play depends on.
type subject struct {
	Name string `json:"name"`
	Sum  uint64 `json:"sum"`
}

func (s *subject) String() string {
	return fmt.Sprintf("%s, sum %#x", s.Name, s.Sum)
}

// Of names something outside of the state that its play depends on: a map, a table of rules, a
// script. sum is a sum of its bytes that the program works out, and name is for people. Files and
// deltas carry both, and [Ring.Read] and [Ring.Apply] refuse those of another name or sum. Call it
// in the load, before NewRing, once for each thing; two programs name them in the same order. After
// NewRing it panics. A sum keeps honest mistakes out, and no forger, who writes the sum that is
// wanted.
func (st *State) Of(name string, sum uint64) {
	if st.end != 0 {
		panic(fmt.Sprintf("save: BUG: Of(%q) after NewRing, in region %s", name, st.saved.Name()))
	}
	st.of = append(st.of, subject{jsonfile.Printable(name), sum})
}

// differsOf says in which subject two parts of that region differ first, or "".
func (p *partLayout) differsOf(file *partLayout) string {
	i, here, there := differIn(p.Of, file.Of, (*subject).String)
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("the state of region %s is of %s here, and of %s in the file", p.Region,
		cmp.Or(here, "nothing"), cmp.Or(there, "nothing"))
}

// differIn is the first place in which two lists differ, or -1, and what they have there as text; "" is
// nothing.
func differIn[T any](here, there []T, text func(*T) string) (i int, a, b string) {
	for i := range max(len(here), len(there)) {
		a, b = "", ""
		if i < len(here) {
			a = text(&here[i])
		}
		if i < len(there) {
			b = text(&there[i])
		}
		if a != b {
			return i, a, b
		}
	}
	return -1, "", ""
}

// subjects are those of all states of the ring, for people.
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

// subjectsSum is a sum of the subjects of all states, of which a delta has no room for more; 0
// where there is none.
func subjectsSum(parts []part) (sum uint32) {
	h := fnv.New32a()
	for i := range parts {
		for _, s := range parts[i].of {
			fmt.Fprintf(h, "%d %q %d\n", i, s.Name, s.Sum) // it never fails
			sum = max(h.Sum32(), 1)
		}
	}
	return sum
}
