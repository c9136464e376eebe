package merge

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/tests/step"
)

// part is a node in the plain model of a graph: its fields, as "in.tag", and its lists of links.
type part struct {
	name   string
	fields map[string]string // JSON
	lists  map[string][]string
}

// place is a part, a part's field or list, or a place in a list.
type place struct {
	part, key string
	gap       int // before the link of this index in base
}

// edits is all that one person did to a graph.
type edits struct {
	set    map[place]string // fields; "" removes one
	remove map[place]bool   // parts
	add    map[place]string // parts with one field
	unlink map[place]bool
	insert map[place]string
	turn   map[place]bool // lists whose first link goes to the end
	last   string         // a part that goes to the end
}

func newEdits() edits {
	return edits{map[place]string{}, map[place]bool{}, map[place]string{}, map[place]bool{}, map[place]string{},
		map[place]bool{}, ""}
}

// readParts reads the nodes of a graph by encoding/json alone.
func readParts(t *testing.T, data []byte) (list []part) {
	var graph struct{ Nodes json.RawMessage }
	must(t, json.Unmarshal(data, &graph))
	for name, value := range members(t, graph.Nodes) {
		p := part{name, map[string]string{}, map[string][]string{}}
		for key, value := range members(t, value) {
			switch {
			case key == "in" || key == "out":
				for name, value := range members(t, value) {
					p.fields[key+"."+name] = string(value)
				}
			case slices.Contains(notLists, key):
				p.fields[key] = string(value)
			default:
				var list []json.RawMessage
				if json.Unmarshal(value, &list) != nil {
					list = []json.RawMessage{value}
				}
				for _, link := range list {
					p.lists[key] = append(p.lists[key], string(link))
				}
			}
		}
		list = append(list, p)
	}
	return list
}

// members yields the members of an object in order.
func members(t *testing.T, object json.RawMessage) func(func(string, json.RawMessage) bool) {
	return func(yield func(string, json.RawMessage) bool) {
		d := json.NewDecoder(strings.NewReader(string(object)))
		_, _ = d.Token()
		for d.More() {
			name, err := d.Token()
			must(t, err)
			var value json.RawMessage
			must(t, d.Decode(&value))
			if !yield(name.(string), value) {
				return
			}
		}
	}
}

// write writes parts as a graph, with random space.
func write(r *rand.Rand, list []part) string {
	space := func() string { return []string{"", "", " ", "\n  ", "\n\t"}[r.IntN(5)] }
	object := func(keys map[string]string) string {
		var text []string
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			text = append(text, fmt.Sprintf("%s%q:%s%s", space(), key, space(), keys[key]))
		}
		r.Shuffle(len(text), func(i, j int) { text[i], text[j] = text[j], text[i] })
		return "{" + strings.Join(text, space()+",") + space() + "}"
	}
	var nodes []string
	for _, p := range list {
		keys, inner := map[string]string{}, map[string]map[string]string{"in": {}, "out": {}}
		for key, value := range p.fields {
			if of, name, found := strings.Cut(key, "."); found {
				inner[of][name] = value
			} else {
				keys[key] = value
			}
		}
		for key, fields := range inner {
			if len(fields) != 0 {
				keys[key] = object(fields)
			}
		}
		for key, list := range p.lists {
			keys[key] = "[" + space() + strings.Join(list, ","+space()) + space() + "]"
			if len(list) == 1 && r.IntN(2) == 0 {
				keys[key] = list[0]
			}
		}
		nodes = append(nodes, fmt.Sprintf("%s%q: %s", space(), p.name, object(keys)))
	}
	return `{"version": 1, "name": "E1M1", "nodes": {` + strings.Join(nodes, ",") + "}}" + space()
}

// apply does the edits of both, and in the same way those of one.
func apply(base []part, both ...edits) (result []part) {
	any := func(has func(edits) bool) bool { return slices.ContainsFunc(both, has) }
	var last []part
	for _, was := range base {
		if any(func(e edits) bool { return e.remove[place{part: was.name}] }) {
			continue
		}
		p := part{was.name, maps.Clone(was.fields), map[string][]string{}}
		for _, e := range both {
			for at, value := range e.set {
				switch {
				case at.part != p.name:
				case value == "":
					delete(p.fields, at.key)
				default:
					p.fields[at.key] = value
				}
			}
		}
		for key, links := range was.lists {
			if list := linksOf(was, key, links, both...); len(list) != 0 {
				p.lists[key] = list
			}
		}
		if any(func(e edits) bool { return e.last == p.name }) {
			last = append(last, p)
		} else {
			result = append(result, p)
		}
	}
	result = append(result, last...)
	added := map[string]bool{}
	for _, e := range both {
		for at, value := range e.add {
			if !added[at.part] {
				added[at.part] = true
				result = append(result, part{at.part, map[string]string{"action": value}, nil})
			}
		}
	}
	return result
}

func linksOf(p part, key string, links []string, both ...edits) (list []string) {
	var end []string
	for gap := range len(links) + 1 {
		for _, e := range both {
			if link := e.insert[place{p.name, key, gap}]; link != "" && !slices.Contains(list, link) {
				list = append(list, link)
			}
		}
		at := place{p.name, key, gap}
		switch {
		case gap == len(links) || slices.ContainsFunc(both, func(e edits) bool { return e.unlink[at] }):
		case gap == 0 && slices.ContainsFunc(both, func(e edits) bool { return e.turn[at] }):
			end = []string{links[0]}
		default:
			list = append(list, links[gap])
		}
	}
	return append(list, end...)
}

// touch reports whether two people's edits touch: on a key, a part, or a place in a list.
func touch(base []part, a, b edits) bool {
	differ := func(a, b map[place]string) bool {
		for at, value := range a {
			if other, both := b[at]; both && other != value {
				return true
			}
		}
		return false
	}
	if differ(a.set, b.set) || differ(a.add, b.add) {
		return true
	}
	var left []string // parts that stay
	for _, p := range base {
		at := place{part: p.name}
		switch {
		case a.remove[at] && b.remove[at]:
			continue
		case a.remove[at] && b.edits(p), b.remove[at] && a.edits(p):
			return true
		case a.remove[at] || b.remove[at]:
			continue
		}
		left = append(left, p.name)
		for key, links := range p.lists {
			if touchLists(p, key, links, a, b) {
				return true
			}
		}
	}
	moves := func(e edits) bool { return slices.Contains(left, e.last) && left[len(left)-1] != e.last }
	return moves(a) && moves(b) && a.last != b.last
}

// edits reports whether the edits change a part.
func (e edits) edits(p part) bool {
	of := func(at place) bool { return at.part == p.name }
	for _, keys := range [][]place{slices.Collect(maps.Keys(e.set)), slices.Collect(maps.Keys(e.unlink)),
		slices.Collect(maps.Keys(e.insert)), slices.Collect(maps.Keys(e.turn))} {
		if slices.ContainsFunc(keys, of) {
			return true
		}
	}
	return false
}

func touchLists(p part, key string, links []string, a, b edits) bool {
	rank := make([]int, len(links)+1) // links before a gap that stay
	stay := 0
	for gap := range rank {
		rank[gap] = stay
		if at := (place{p.name, key, gap}); gap < len(links) && !a.unlink[at] && !b.unlink[at] {
			stay++
		}
	}
	turned := stay > 1 && rank[1] == 1 // if the first link stays, and has where to go
	for from := range rank {
		ofA := a.insert[place{p.name, key, from}]
		for to := range rank {
			ofB := b.insert[place{p.name, key, to}]
			switch {
			case turned && (b.turn[place{p.name, key, 0}] && ofA != "" || a.turn[place{p.name, key, 0}] && ofB != ""):
				return true
			case ofA == "" || ofB == "":
			case ofA == ofB && rank[from] != rank[to], ofA != ofB && rank[from] == rank[to]:
				return true
			}
		}
	}
	return false
}

// randomEdits returns up to six edits that don't touch one another.
func randomEdits(r *rand.Rand, base []part) edits {
	e := newEdits()
	done := map[string]bool{}
	for range 1 + r.IntN(6) {
		p := base[r.IntN(min(len(base), 12))] // a few, so that some edits touch
		at := place{part: p.name}
		keys := slices.Sorted(maps.Keys(p.lists))
		switch r.IntN(7) {
		case 0:
			if !e.edits(p) {
				e.remove[at] = true
			}
		case 1:
			e.add[place{part: fmt.Sprint("new", r.IntN(4))}] = []string{`"door.open"`, `"door.close"`}[r.IntN(2)]
		case 2:
			if e.last == "" && !e.remove[at] {
				e.last = p.name
			}
		case 3, 4:
			if all := slices.Sorted(maps.Keys(p.fields)); !e.remove[at] {
				at.key = []string{"in.extra", "out.extra", all[r.IntN(len(all))]}[r.IntN(3)]
				e.set[at] = []string{"1", "2.5", "true", ""}[r.IntN(4)]
				if at.key == "out.extra" || e.set[at] == "" && !strings.Contains(at.key, ".") {
					e.set[at] = `"held"`
				}
				if strings.HasSuffix(at.key, ".extra") && e.set[at] == "" {
					e.set[at] = "7"
				}
			}
		default:
			if len(keys) == 0 || e.remove[at] {
				continue
			}
			at.key = keys[r.IntN(len(keys))]
			links := p.lists[at.key]
			whole := fmt.Sprint(at)
			switch r.IntN(4) {
			case 0:
				if !done[whole] && len(links) > 1 {
					e.turn[at], done[whole] = true, true
				}
			case 1:
				if at.gap = r.IntN(len(links)); !e.turn[place{p.name, at.key, 0}] {
					e.unlink[at], done[whole] = true, true
				}
			default:
				link := fmt.Sprintf(`"added %d"`, r.IntN(3))
				if at.gap = r.IntN(len(links) + 1); !done[whole] {
					e.insert[at], done[whole] = link, true
				}
			}
		}
	}
	return e
}

// randomBase returns some nodes of the level in a random order. The first twelve have longer lists.
func randomBase(r *rand.Rand, level []part) []part {
	base := slices.Clone(level)
	r.Shuffle(len(base), func(i, j int) { base[i], base[j] = base[j], base[i] })
	base = base[:40]
	for i, p := range base[:12] {
		lists := map[string][]string{}
		for _, key := range slices.Sorted(maps.Keys(p.lists)) {
			for k := range 1 + r.IntN(4) {
				lists[key] = append(lists[key],
					[]string{fmt.Sprintf(`"to %d"`, k), fmt.Sprintf(`{"to %d": "reset"}`, k)}[r.IntN(2)])
			}
		}
		base[i].lists = lists
	}
	return base
}

func parsed(t *testing.T, text string) *Tree {
	t.Helper()
	tree, err := Parse("file", []byte(text), Graph)
	must(t, err)
	return tree
}

// TestModel: the merge of two people's edits is one's edits and then the other's, and a conflict
// exactly where they touch. The changes from one version to another, applied, give the other.
func TestModel(t *testing.T) {
	data, err := os.ReadFile("testdata/E1M1.json")
	must(t, err)
	level := readParts(t, data)
	clear, conflicts := 0, 0
	for seed := range step.Pick[uint64](200, 1000, 10_000) {
		r := rand.New(rand.NewPCG(seed, 48))
		base := randomBase(r, level)
		a, b := randomEdits(r, base), randomEdits(r, base)
		if r.IntN(8) == 0 {
			b = a
		}
		ofA, ofB := apply(base, a), apply(base, b)
		treeA, treeB := parsed(t, write(r, ofA)), parsed(t, write(r, ofB))
		changes := Diff(treeA, treeB)
		if got, want := plainText(applied(t, ofA, changes)), plainText(ofB); got != want {
			t.Fatalf("seed %d: %+v\n%s\n%s", seed, changes, got, want)
		}
		got, list := Merge(parsed(t, write(r, base)), treeA, treeB)
		if touch(base, a, b) {
			if conflicts++; len(list) == 0 {
				t.Fatalf("seed %d: no conflict:\n%v\n%v", seed, a, b)
			}
			continue
		}
		clear++
		want, have := plainText(apply(base, a, b)), plainText(readParts(t, got))
		if len(list) != 0 || want != have {
			t.Fatalf("seed %d: %v\n%v\n%v\n%s\n%s\n%s", seed, list, a, b, got, want, have)
		}
	}
	if clear < conflicts/4 || conflicts < clear/4 {
		t.Errorf("%d merges, %d conflicts", clear, conflicts)
	}
}

// plainText writes parts for a comparison. Added parts, whose order has no meaning, come last.
func plainText(list []part) string {
	var text, added []string
	for _, p := range list {
		for key, links := range p.lists {
			if len(links) == 0 {
				delete(p.lists, key)
			}
		}
		one := fmt.Sprint(p.name, p.fields, p.lists)
		if strings.HasPrefix(p.name, "new") {
			added = append(added, one)
		} else {
			text = append(text, one)
		}
	}
	slices.Sort(added)
	return strings.Join(append(text, added...), "\n")
}

// applied applies changes to the plain model.
func applied(t *testing.T, list []part, changes []Change) []part {
	var come []Change // to places in B, in order
	for i, p := range list {
		list[i] = part{p.name, maps.Clone(p.fields), maps.Clone(p.lists)}
	}
	index := func(name string) int { return slices.IndexFunc(list, func(p part) bool { return p.name == name }) }
	moved := map[string]part{}
	links := map[place][]Change{}
	for _, c := range changes {
		path := split(t, c.Path)
		switch i := index(path[1]); {
		case len(path) == 2 && (c.Kind == Gone || c.Kind == Moved):
			moved[path[1]] = list[i]
			list = slices.Delete(list, i, i+1)
			if c.Kind == Moved {
				come = append(come, c)
			}
		case len(path) == 2:
			come = append(come, c)
			text := fmt.Sprintf(`{"nodes": {%q: %s}}`, path[1], c.To)
			moved[path[1]] = readParts(t, []byte(text))[0]
		}
	}
	slices.SortFunc(come, func(a, b Change) int { return a.At - b.At })
	for _, c := range come {
		name := split(t, c.Path)[1]
		list = slices.Insert(list, c.At-1, moved[name])
	}
	for _, c := range changes {
		path := split(t, c.Path)
		if len(path) == 2 {
			continue
		}
		p, key := list[index(path[1])], path[2]
		isList := c.Was+c.At != 0
		switch {
		case isList:
			at := place{part: path[1], key: key}
			links[at] = append(links[at], c)
		case len(path) == 4 && c.Kind == Gone:
			delete(p.fields, key+"."+path[3])
		case len(path) == 4:
			p.fields[key+"."+path[3]] = string(c.To)
		case c.Kind == Gone:
			delete(p.fields, key)
			delete(p.lists, key)
			maps.DeleteFunc(p.fields, func(name, _ string) bool { return strings.HasPrefix(name, key+".") })
		default:
			text := fmt.Sprintf(`{"nodes": {"x": {%q: %s}}}`, key, c.To)
			now := readParts(t, []byte(text))[0]
			maps.Copy(p.fields, now.fields)
			maps.Copy(p.lists, now.lists)
		}
	}
	for at, changes := range links {
		p := list[index(at.part)]
		now := slices.Clone(p.lists[at.key])
		for _, c := range changes {
			if c.Kind != Added {
				i := slices.Index(now, string(c.From))
				now = slices.Delete(now, i, i+1)
			}
		}
		slices.SortFunc(changes, func(a, b Change) int { return a.At - b.At })
		for _, c := range changes {
			if c.Kind != Gone {
				now = slices.Insert(now, c.At-1, string(c.To))
			}
		}
		p.lists[at.key] = now
	}
	return list
}

// split returns the names of a path.
func split(t *testing.T, path string) (names []string) {
	for path != "" {
		name, rest, _ := strings.Cut(path, ".")
		if path[0] == '"' {
			quoted, err := strconv.QuotedPrefix(path)
			must(t, err)
			name, err = strconv.Unquote(quoted)
			must(t, err)
			rest = strings.TrimPrefix(path[len(quoted):], ".")
		}
		names, path = append(names, name), rest
	}
	return names
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
