package source_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/scope/flow/source"
	"github.com/upfront-mem/upfront/tests/step"
)

// shape is a node type with its inputs and outputs and their types, its lists and ports, as package
// flow's doc lists them. Operands without a type share one.
type shape struct{ name, in, out, lists, ports string }

var shapes = []shape{
	{"event", "", "keys:2", "then", ""},
	{"branch", "if:1", "", "then else", "in"},
	{"gate", "closed:1", "", "then", "in open close toggle"},
	{"once", "", "", "then", "in reset"},
	{"counter", "limit:2", "", "then", "in reset"},
	{"delay", "ticks:2", "", "then", "in cancel"},
	{"timer", "every:2", "", "then", "start stop"},
	{"sequence", "", "", "1 2 3", "in reset"},
	{"random", "", "", "1 2", "in"},
	{"set", "value:", "to:", "then", "in"},
	{"add", "value:", "to:", "then", "in"},
	{"equal", "a: b:", "", "then else", "in"},
	{"less", "a: b:", "", "then else", "in"},
	{"action", "tag:2 speed:3", "moved:1", "then", "in"},
	{"send", "key:2 keys:2", "", "then", "in"},
}

// randomGraph returns a graph that is correct, or almost: one part in many is random.
func randomGraph(r *rand.Rand) flow.Source {
	rarely := func() bool { return r.IntN(60) == 0 }
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	constants := [][]any{{true, false}, {int32(0), int32(7), int32(-1 << 31)}, {float32(0), float32(0.1), float32(-3)},
		{nil}}
	some := func(t flow.Type) any {
		if rarely() {
			t = flow.Type(1 + r.IntN(4))
		}
		list := constants[t-1]
		return list[r.IntN(len(list))]
	}
	graph := flow.Source{Name: one("", "level", "\u2028\"<"), Seed: r.Uint32N(2) * r.Uint32()}
	variable := func(name string, t flow.Type) string {
		v := flow.Variable{Name: name, Type: t}
		if r.IntN(2) == 0 {
			v.Value = some(t)
		}
		graph.Variables = append(graph.Variables, v)
		return name
	}
	for i := range 8 {
		variable(fmt.Sprint("v", i), flow.Type(1+i%4))
	}
	used := func(t flow.Type) string {
		if rarely() {
			return fmt.Sprint("v", r.IntN(9))
		}
		return fmt.Sprint("v", int(t)-1+4*r.IntN(2))
	}
	of := make([]shape, 1+r.IntN(12))
	for i := range of {
		of[i] = shapes[r.IntN(len(shapes))]
	}
	for i, shape := range of {
		n := flow.Node{Name: fmt.Sprint("n", i), Type: shape.name}
		operands := flow.Type(1 + r.IntN(4))
		typed := func(part string) (string, flow.Type) {
			name, t, _ := strings.Cut(part, ":")
			if t == "" {
				return name, operands
			}
			return name, flow.Type(t[0] - '0')
		}
		switch n.Type {
		case "event":
			n.Of, n.Key = "line.used", int32(i)
		case "send":
			n.Of = "line.used"
		case "action":
			n.Of = "door.open"
		case "add", "less":
			operands = flow.Int + flow.Type(r.IntN(2))
		}
		for _, part := range strings.Fields(shape.in) {
			name, t := typed(part)
			in := flow.Input{Name: name, Constant: some(t)}
			if r.IntN(2) == 0 && name != "closed" {
				in = flow.Input{Name: name, Variable: used(t)}
			}
			if in.Variable != "" || in.Constant != nil {
				n.In = append(n.In, in)
			}
		}
		for _, part := range strings.Fields(shape.out) {
			name, t := typed(part)
			out := flow.Output{Name: name}
			if n.Of == "" || rarely() {
				out.Variable = used(t)
			} else {
				out.Variable = variable(fmt.Sprint("out of ", n.Name), t)
			}
			n.Out = append(n.Out, out)
		}
		for _, name := range strings.Fields(shape.lists) {
			list := flow.List{Name: name}
			for range r.IntN(3) {
				to := r.IntN(len(of))
				link := flow.Link{Node: fmt.Sprint("n", to)}
				if ports := strings.Fields(of[to].ports); ports == nil && !rarely() {
					continue
				} else if r.IntN(4) == 0 {
					link.Port = one(append(ports, "in")...)
				}
				list.Links = append(list.Links, link)
			}
			n.List = append(n.List, list)
		}
		graph.Nodes = append(graph.Nodes, n)
	}
	return graph
}

// TestRandomGraphs: a graph survives its JSON, with the same faults or the same bytes, and its blob
// loads and is exported again.
func TestRandomGraphs(t *testing.T) {
	graphs := step.Pick[uint64](300, 3000, 100_000)
	host, err := flow.HostOf(doors)
	require.NoError(t, err)
	s := openScope(t)
	right := 0
	for seed := range graphs {
		graph := randomGraph(rand.New(rand.NewPCG(seed, 1)))
		want, _, direct := flow.Compile(graph, doors)
		text := source.Write(graph)
		got, _, through := source.Compile("x", text, doors)
		require.Equal(t, direct == nil, through == nil, "seed %d: %v; %v\n%s", seed, direct, through, text)
		if direct != nil {
			continue
		}
		right++
		require.Equal(t, want, got, "seed %d\n%s", seed, text)
		same(t, got)
		inner := s.Open("level")
		_, err := host.Load(inner, got, scratch(got))
		require.NoError(t, err)
		require.NoError(t, inner.Close())
	}
	assert.Greater(t, right, int(graphs/10), "graphs that are right")
	assert.Less(t, right, int(graphs*9/10))
}
