package merge

import (
	"encoding/json"
	"slices"
	"sort"
)

// Kind is the kind of a change.
type Kind string

// The kinds.
const (
	Added   Kind = "added"
	Gone    Kind = "gone"
	Moved   Kind = "moved"
	Changed Kind = "changed"
)

// Change is one difference between two files. A part that was added or removed is one change.
type Change struct {
	Kind Kind   `json:"kind"`
	Path string `json:"path"` // nodes.open.in.tag; a link has the path of its list
	// From and To are the values as in the files. An added value has no From, and a removed value
	// has no To. A moved part has neither.
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
	// Was and At are the places among the siblings in A and in B, from 1, if their order counts.
	Was   int `json:"was,omitempty"`
	At    int `json:"at,omitempty"`
	LineA int `json:"line_a,omitempty"`
	LineB int `json:"line_b,omitempty"`
}

// Diff returns the changes that turn A into B. Changes of an object or list are in A's order, and
// additions follow. To apply the changes of a list, first remove the members that are gone or
// moved. Then insert the moved and added members at At, the lowest At first.
func Diff(a, b *Tree) []Change { return diff(a.root, b.root, nil) }

func diff(a, b *node, list []Change) []Change {
	if !a.branch || !b.branch {
		if !same(a, b) {
			list = append(list, Change{Kind: Changed, Path: a.path(), From: a.json(), To: b.json(), LineA: a.line,
				LineB: b.line})
		}
		return list
	}
	ofA, ofB := a.byName(), b.byName()
	placeB := map[string]int{}
	for i, m := range b.members {
		placeB[m.name] = i + 1
	}
	stay := map[string]bool{}
	for _, name := range unmoved(a.members, placeB) {
		stay[name] = true
	}
	ordered := a.shape != fields
	for i, m := range a.members {
		to, was, at := ofB[m.name], 0, 0
		if ordered {
			was, at = i+1, placeB[m.name]
		}
		if to == nil {
			list = append(list, Change{Kind: Gone, Path: m.path(), From: m.json(), Was: was, LineA: m.line})
			continue
		}
		if ordered && !stay[m.name] {
			c := Change{Kind: Moved, Path: m.path(), Was: was, At: at, LineA: m.line, LineB: to.line}
			if a.shape == links {
				c.From, c.To = m.json(), to.json()
			}
			list = append(list, c)
		}
		list = diff(m, to, list)
	}
	for i, m := range b.members {
		if ofA[m.name] == nil {
			c := Change{Kind: Added, Path: m.path(), To: m.json(), LineB: m.line}
			if ordered {
				c.At = i + 1
			}
			list = append(list, c)
		}
	}
	return list
}

// json returns the value as in its file.
func (n *node) json() json.RawMessage { return json.RawMessage(n.text) }

// unmoved returns the names of the most members that have one order in both files: a longest
// increasing subsequence of their places in the other one.
func unmoved(members []*node, place map[string]int) []string {
	type end struct{ place, index int }
	var ends []end // of the best sequence of each length
	before := make([]int, len(members))
	for i, m := range members {
		at := place[m.name]
		if at == 0 {
			continue
		}
		k := sort.Search(len(ends), func(k int) bool { return ends[k].place >= at })
		before[i] = -1
		if k > 0 {
			before[i] = ends[k-1].index
		}
		if k == len(ends) {
			ends = append(ends, end{})
		}
		ends[k] = end{place: at, index: i}
	}
	var names []string
	if len(ends) != 0 {
		for i := ends[len(ends)-1].index; i >= 0; i = before[i] {
			names = append(names, members[i].name)
		}
	}
	slices.Reverse(names)
	return names
}
