package merge

import (
	"encoding/json"
	"slices"
	"strings"
)

// Conflict is a value that two versions changed differently, or an order of members.
type Conflict struct {
	Path string `json:"path"` // nodes.open.in.tag
	// Order reports that the order of the members conflicts, not a value.
	Order bool `json:"order,omitempty"`
	// The three values as in the files, or the names in order, and their lines. A missing value is
	// nil, with line 0.
	Base     json.RawMessage `json:"base,omitempty"`
	A        json.RawMessage `json:"a,omitempty"`
	B        json.RawMessage `json:"b,omitempty"`
	LineBase int             `json:"line_base,omitempty"`
	LineA    int             `json:"line_a,omitempty"`
	LineB    int             `json:"line_b,omitempty"`
}

// Merge returns A with the changes that B made to base. Text that B didn't change is as in A. If
// both changed a value differently, the result has A's value, and Merge returns a conflict. These
// are conflicts:
//
//   - two values of one key
//   - a part, or a plan's frame, scratch or c_heap, that one removed and the other changed
//   - two different parts of one name that both added
//   - two orders of the parts or links that all three have
//   - links or regions that both added at one place, or that one added while the other moved some,
//     because no order is better than another
//   - two changes of one list, if a version has a link in it twice
func Merge(base, a, b *Tree) ([]byte, []Conflict) {
	switch {
	case base.text == a.text:
		return []byte(b.text), nil
	case base.text == b.text, a.text == b.text:
		return []byte(a.text), nil
	}
	var m merger
	root := m.merge(base.root, a.root, b.root)
	at := strings.Index(a.text, a.root.text)
	return []byte(a.text[:at] + root.render() + a.text[at+len(a.root.text):]), m.conflicts
}

type merger struct{ conflicts []Conflict }

func (m *merger) conflict(order bool, base, a, b *node) *node {
	c := Conflict{Order: order}
	for _, v := range []struct {
		n    *node
		text *json.RawMessage
		line *int
	}{{base, &c.Base, &c.LineBase}, {b, &c.B, &c.LineB}, {a, &c.A, &c.LineA}} {
		if v.n == nil {
			continue
		}
		c.Path, *v.text, *v.line = v.n.path(), v.n.json(), v.n.line
		if order && v.n.shape != links {
			*v.text = v.n.nameList()
		}
	}
	m.conflicts = append(m.conflicts, c)
	return a
}

// nameList returns the names of the members as JSON.
func (n *node) nameList() json.RawMessage {
	names := n.names()
	for i, name := range names {
		names[i] = quote(name)
	}
	return json.RawMessage("[" + strings.Join(names, ", ") + "]")
}

// merge merges one value. A nil node is a value that a version lacks.
func (m *merger) merge(base, a, b *node) *node {
	switch {
	case same(a, b), same(base, b):
		return a
	case m.within(base, a, b):
		return m.members(base, a, b)
	case same(base, a):
		return b
	}
	return m.conflict(false, base, a, b)
}

// within reports whether the members of three values are merged, one by one: of objects and lists
// that all have, and of keys such as "in", also if some lack them.
func (m *merger) within(base, a, b *node) bool {
	lacks := false
	for _, n := range []*node{base, a, b} {
		if n == nil {
			lacks = true
		} else if !n.branch || n.repeats {
			return false
		}
	}
	one := a
	if one == nil {
		one = b
	}
	return one != nil && (!lacks || one.parent != nil && one.parent.shape == fields && !one.whole)
}

// members merges the members of three objects or lists.
func (m *merger) members(base, a, b *node) *node {
	like := a
	if a == nil || len(a.members) == 0 && b != nil {
		like = b
	}
	ofBase, ofA, ofB := base.byName(), a.byName(), b.byName()
	merged := map[string]*node{}
	done := map[string]bool{}
	for _, list := range []*node{base, a, b} {
		if list == nil {
			continue
		}
		for _, of := range list.members {
			if done[of.name] {
				continue
			}
			done[of.name] = true
			if one := m.merge(ofBase[of.name], ofA[of.name], ofB[of.name]); one != nil {
				merged[of.name] = one
			}
		}
	}
	if len(merged) == 0 && (a == nil || b == nil) {
		return nil
	}
	result := *like
	result.text, result.members, result.like = "", nil, like
	names, clear := order(like.shape, merged, base.names(), a.names(), b.names(), false)
	if !clear {
		m.conflict(true, base, a, b)
		names, _ = order(like.shape, merged, base.names(), a.names(), b.names(), true)
	}
	for _, name := range names {
		result.members = append(result.members, merged[name])
	}
	if a != nil && slices.Equal(result.members, a.members) {
		return a
	}
	return &result
}

// names returns the names of the members.
func (n *node) names() (names []string) {
	if n != nil {
		for _, m := range n.members {
			names = append(names, m.name)
		}
	}
	return names
}

// order returns the merged names in order, and whether no other order is as good. It takes the
// order of the version that moved members, and adds the other's own members, each after the one
// that it follows there. For members whose order has no meaning, any order is good; parts may be
// added at one place. If asA, it takes the order of A.
func order(s shape, merged map[string]*node, base, a, b []string, asA bool) (names []string, clear bool) {
	inBase, inA, inB := set(base), set(a), set(b)
	all := func(name string) bool { return inBase[name] && inA[name] && inB[name] }
	was, ofA, ofB := keep(base, all), keep(a, all), keep(b, all)
	movedA, movedB := !slices.Equal(was, ofA), !slices.Equal(was, ofB)
	clear = s == fields || !movedA || !movedB || slices.Equal(ofA, ofB)
	strict := s == items || s == links
	if strict {
		new := func(name string) bool { return !inBase[name] }
		both := func(name string) bool { return inA[name] && inB[name] }
		switch {
		case movedA && len(keep(b, new)) != 0, movedB && len(keep(a, new)) != 0:
			clear = false
		case !movedA && !movedB:
			clear = slices.Equal(keep(a, both), keep(b, both))
		}
	}
	present := func(name string) bool { return merged[name] != nil }
	first, second := keep(a, present), keep(b, present)
	inSecond := inB
	if movedB && !movedA && !asA {
		first, second, inSecond = second, first, inA
	}
	place := map[string]int{}
	for i, name := range first {
		place[name] = i + 1
	}
	after := make([][]string, len(first)+1) // members of the second alone, by the place before them
	at := 0
	for _, name := range second {
		if place[name] != 0 {
			at = place[name]
		} else {
			after[at] = append(after[at], name)
		}
	}
	var waiting []string
	for i, own := range after {
		waiting = append(waiting, own...)
		if i == len(first) {
			break
		}
		if name := first[i]; !inBase[name] && !inSecond[name] {
			// the first's own goes before those of the second
			clear = clear && (!strict || len(waiting) == 0)
		} else {
			names, waiting = append(names, waiting...), nil
		}
		names = append(names, first[i])
	}
	return append(names, waiting...), clear
}

func set(names []string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

// keep returns the names that a condition holds for.
func keep(names []string, is func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !is(name) })
}

// spacing returns the space before the first member of a merged value, and before others without
// their own.
func (n *node) spacing() (first, next string) {
	like := n
	if n.like != nil && len(n.like.members) != 0 {
		like = n.like
	}
	first, next = like.members[0].lead, " "
	switch {
	case len(like.members) > 1:
		next = like.members[1].lead
	case strings.Contains(first, "\n"):
		next = first
	}
	return first, next
}

// render returns the text of a value. Text of members that weren't changed is as in their files.
func (n *node) render() string {
	if n.text != "" || !n.branch {
		return n.text
	}
	open, end := "{", "}"
	if n.list {
		open, end = "[", "]"
	}
	if len(n.members) == 0 {
		return open + end
	}
	first, next := n.spacing()
	had := n.like.byName()
	var b strings.Builder
	b.WriteString(open)
	for i, m := range n.members {
		lead, head := next, m.head
		if was := had[m.name]; was != nil {
			head = was.head
			if was != n.like.members[0] {
				lead = was.lead
			}
		}
		if i == 0 {
			lead = first
		} else {
			b.WriteString(",")
		}
		b.WriteString(lead + head + m.render())
	}
	b.WriteString(n.tail + end)
	return b.String()
}
