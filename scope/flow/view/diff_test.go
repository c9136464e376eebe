package view

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope/flow"
)

// rebuilt is a version of door with each kind of difference.
var rebuilt = flow.Source{
	Name: "door",
	Seed: 7,
	Variables: []flow.Variable{{Name: "held", Type: flow.Int}, {Name: "moved", Type: flow.Bool, Value: true},
		{Name: "opened", Type: flow.Int}},
	Nodes: []flow.Node{
		{Name: "used", Type: "event", Of: "line.used", Key: 14, Out: []flow.Output{{Name: "keys", Variable: "held"}},
			List: then("locked")},
		{Name: "locked", Type: "greater", In: []flow.Input{{Name: "a", Variable: "opened"}, {Name: "b", Constant: 1}},
			List: append(then("wait", "open"), flow.List{Name: "else", Links: []flow.Link{{Node: "refuse"}}})},
		{Name: "open", Type: "action", Of: "door.open",
			In:  []flow.Input{{Name: "tag", Constant: 7}, {Name: "speed", Constant: 3}},
			Out: []flow.Output{{Name: "moved", Variable: "moved"}}, List: then("shout")},
		{Name: "shout", Type: "action", Of: "sound.play", In: []flow.Input{{Name: "id", Constant: 34}}},
		{Name: "wait", Type: "delay", In: []flow.Input{{Name: "ticks", Constant: 150}}, List: then("close")},
		{Name: "close", Type: "action", Of: "door.close", In: []flow.Input{{Name: "tag", Constant: 7}}},
		{Name: "refuse", Type: "action", Of: "sound.play",
			List: []flow.List{{Name: "then", Links: []flow.Link{{Node: "wait"}}}}},
	},
}

func TestDiffGolden(t *testing.T) {
	none := flow.Source{Name: "door"}
	for name, pair := range map[string][2]flow.Source{
		"diff": {door, rebuilt}, "diff-same": {door, door}, "diff-new": {none, door}, "diff-gone": {door, none},
	} {
		var b bytes.Buffer
		require.NoError(t, Diff(&b, pair[0], pair[1]))
		name = "testdata/" + name + ".svg"
		if *update {
			require.NoError(t, os.WriteFile(name, b.Bytes(), 0o644))
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, string(text), b.String())
	}
}

// TestDiffRandom draws random pairs of versions. Of some, names are duplicate and hostile. The
// picture is valid XML, its boxes don't overlap, and its marks are those of a plain model and of
// the pair the other way around.
func TestDiffRandom(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		hostile := seed%3 == 0
		a := randomGraph(r, hostile)
		b := edited(r, a)
		if seed%2 == 0 {
			b = randomGraph(r, hostile)
		}
		p := diffOf(a, b)
		text := string(p.svg())
		checkXML(t, []byte(text))
		require.Equal(t, text, string(diffOf(a, b).svg()))
		for i, x := range p.boxes {
			for _, y := range p.boxes[:i] {
				require.True(t, x.x >= y.x+y.w || y.x >= x.x+x.w || x.y >= y.y+y.h || y.y >= x.y+x.h,
					"seed %d: %s on %s", seed, x.name, y.name)
			}
		}
		for _, w := range p.wires {
			box, atEnd := w.labelled()
			require.True(t, w.from == w.to || atEnd && box.before >= w.noteWidth() || !atEnd &&
				box.after >= w.noteWidth(), "seed %d: no room for %s", seed, w.label)
		}
		boxes, wires := marksOf(p)
		for m, word := range marks {
			legend := 1
			if mark(m) == same {
				legend = 2
			}
			require.Equal(t, legend+boxes[m]+wires[m], strings.Count(text, `<g class="`+word+`">`), "seed %d", seed)
		}
		backBoxes, backWires := marksOf(diffOf(b, a))
		require.Equal(t, [4]int{boxes[same], boxes[gone], boxes[added], boxes[changed]}, backBoxes, "seed %d", seed)
		require.Equal(t, [4]int{wires[same], wires[gone], wires[added], wires[changed]}, backWires, "seed %d", seed)
		boxes, wires = marksOf(diffOf(a, a))
		require.Equal(t, []int{0, 0, 0, 0, 0, 0}, append(boxes[added:], wires[added:]...),
			"seed %d: a version differs from itself", seed)
		if !hostile {
			checkModel(t, a, b, p)
		}
	}
}

func marksOf(p *picture) (boxes, wires [4]int) {
	for _, b := range p.boxes {
		boxes[b.mark]++
	}
	for _, w := range p.wires {
		wires[w.mark]++
	}
	return boxes, wires
}

// checkModel compares marks with those of sets of texts. pre: names are unique, and short.
func checkModel(t *testing.T, a, b flow.Source, p *picture) {
	t.Helper()
	type set map[string]bool
	model := func(g flow.Source) (nodes map[string]string, wires set) {
		nodes, wires = map[string]string{}, set{}
		for _, n := range g.Nodes {
			values := []string{}
			for _, in := range n.In {
				values = append(values, fmt.Sprint("in ", in))
				if in.Variable != "" {
					wires[n.Name+" in "+in.Name+in.Variable] = true
				}
			}
			for _, out := range n.Out {
				values = append(values, fmt.Sprint("out ", out))
				wires[n.Name+" out "+out.Name+out.Variable] = true
			}
			slices.Sort(values)
			nodes[n.Name] = fmt.Sprint(n.Type, n.Of, n.Key, values)
			for _, list := range n.List {
				for _, l := range list.Links {
					wires[n.Name+" "+list.Name+" "+l.Node+" "+l.Port] = true
				}
			}
		}
		return nodes, wires
	}
	nodesA, wiresA := model(a)
	nodesB, wiresB := model(b)
	for _, box := range p.boxes {
		if box.kind == variableBox {
			continue
		}
		from, inA := nodesA[box.name]
		to, inB := nodesB[box.name]
		want := same
		switch {
		case !inA:
			want = added
		case !inB:
			want = gone
		case from != to:
			want = changed
		}
		require.Equal(t, want, box.mark, "%s: %s, %s", box.name, from, to)
	}
	_, wires := marksOf(p)
	count := [4]int{}
	for w := range wiresB {
		if wiresA[w] {
			count[same]++
		} else {
			count[added]++
		}
	}
	for w := range wiresA {
		if !wiresB[w] {
			count[gone]++
		}
	}
	wires[same], wires[changed] = wires[same]+wires[changed], 0
	require.Equal(t, count, wires)
}

// randomGraph returns a graph. All links lead to nodes, and the nodes, values and links of one that
// isn't hostile are unique.
func randomGraph(r *rand.Rand, hostile bool) flow.Source {
	g := flow.Source{Name: "g", Seed: uint32(r.IntN(2))}
	name := func(word string, i int) string {
		if hostile {
			return fmt.Sprint("</g>\xff\x00→ ", word, i/2)
		}
		return fmt.Sprint(word, i)
	}
	for i := range r.IntN(5) {
		g.Variables = append(g.Variables, flow.Variable{Name: name("v", i), Type: flow.Type(r.IntN(6)),
			Value: []any{nil, 1, true}[r.IntN(3)]})
	}
	nodes := r.IntN(20)
	for i := range nodes {
		n := flow.Node{Name: name("n", i), Type: []string{"event", "action", "branch", "x"}[r.IntN(4)]}
		if n.Type == "event" || n.Type == "action" {
			n.Of = []string{"x", "door.open", "a name that is longer than half of a line"}[r.IntN(3)]
		}
		if n.Type == "event" {
			n.Key = int32(r.IntN(3))
		}
		for k := range r.IntN(4) {
			in := flow.Input{Name: name("in", k), Constant: []any{1, 2.5, true, "</svg>", []int{1}}[r.IntN(5)]}
			if r.IntN(2) == 0 {
				in = flow.Input{Name: in.Name, Variable: name("v", r.IntN(6))}
			}
			n.In = append(n.In, in)
		}
		if r.IntN(3) == 0 {
			n.Out = []flow.Output{{Name: "in0", Variable: name("v", r.IntN(6))}}
		}
		for _, list := range []string{"then", "else"} {
			var links []flow.Link
			for _, to := range r.Perm(nodes)[:r.IntN(min(3, nodes)+1)] {
				links = append(links, flow.Link{Node: name("n", to), Port: []string{"", "cancel"}[r.IntN(2)]})
			}
			n.List = append(n.List, flow.List{Name: list, Links: links})
		}
		g.Nodes = append(g.Nodes, n)
	}
	return g
}

// edited returns a graph with other values of a few nodes, with its nodes in another order, and
// with a copy of a node.
func edited(r *rand.Rand, g flow.Source) flow.Source {
	g.Nodes = slices.Clone(g.Nodes)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		switch r.IntN(8) {
		case 0:
			n.In = nil
		case 1:
			if n.Type == "event" {
				n.Key++
			}
		case 2:
			n.List = slices.Clone(n.List)
			n.List[0].Links = slices.Clone(n.List[0].Links)
			slices.Reverse(n.List[0].Links)
		case 3:
			n.Type, n.Of, n.Key = "event", "x", 1
		case 4:
			n.Out = append(slices.Clone(n.Out), flow.Output{Name: "new", Variable: "v1"})
		}
	}
	r.Shuffle(len(g.Nodes), func(i, j int) { g.Nodes[i], g.Nodes[j] = g.Nodes[j], g.Nodes[i] })
	if len(g.Nodes) > 2 {
		n := g.Nodes[0]
		n.Name = "new"
		g.Nodes = append(g.Nodes[1:], n)
	}
	return g
}
