package view

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope/flow"
)

var update = flag.Bool("update", false, "write testdata anew")

// door is a locked door that closes by itself.
var door = flow.Source{
	Name:      "door",
	Variables: []flow.Variable{{Name: "held", Type: flow.Int}, {Name: "moved", Type: flow.Bool, Value: false}},
	Nodes: []flow.Node{
		{Name: "used", Type: "event", Of: "line.used", Key: 12, Out: []flow.Output{{Name: "keys", Variable: "held"}},
			List: then("locked")},
		{Name: "locked", Type: "equal", In: []flow.Input{{Name: "a", Variable: "held"}, {Name: "b", Constant: 1}},
			List: append(then("open", "wait"), flow.List{Name: "else", Links: []flow.Link{{Node: "refuse"}}})},
		{Name: "open", Type: "action", Of: "door.open",
			In:  []flow.Input{{Name: "tag", Constant: 7}, {Name: "speed", Constant: 2}},
			Out: []flow.Output{{Name: "moved", Variable: "moved"}}},
		{Name: "wait", Type: "delay", In: []flow.Input{{Name: "ticks", Constant: 150}}, List: then("close")},
		{Name: "close", Type: "action", Of: "door.close", In: []flow.Input{{Name: "tag", Constant: 7}}},
		{Name: "refuse", Type: "action", Of: "sound.play",
			List: []flow.List{{Name: "then", Links: []flow.Link{{Node: "wait", Port: "cancel"}}}}},
		{Name: "again", Type: "timer", In: []flow.Input{{Name: "every", Variable: "held"}},
			List: then("again", "nowhere")},
	},
}

func then(nodes ...string) []flow.List {
	list := flow.List{Name: "then"}
	for _, n := range nodes {
		list.Links = append(list.Links, flow.Link{Node: n})
	}
	return []flow.List{list}
}

func TestDoor(t *testing.T) {
	for name, draw := range map[string]func(io.Writer, flow.Source) error{"door.svg": SVG, "door.dot": DOT} {
		var b bytes.Buffer
		require.NoError(t, draw(&b, door))
		if *update {
			require.NoError(t, os.WriteFile("testdata/"+name, b.Bytes(), 0o644))
		}
		text, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		assert.Equal(t, string(text), b.String())
	}
}

// TestRandomGraphs: any graph is a picture of valid XML. Boxes don't overlap and are inside the
// frame, and wires go from left to right.
func TestRandomGraphs(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		graph := flow.Source{Name: "</title>\x01\xff"}
		n := r.IntN(40)
		for i := range n {
			node := flow.Node{Name: fmt.Sprint("<node> ", i, "\x00"),
				Type: []string{"event", "action", "branch"}[r.IntN(3)]}
			for range r.IntN(3) {
				node.List = append(node.List, then(fmt.Sprint("<node> ", r.IntN(n), "\x00"))...)
			}
			if r.IntN(3) == 0 {
				node.In = append(node.In, flow.Input{Name: "in", Variable: fmt.Sprint("v", r.IntN(5))})
				node.Out = append(node.Out, flow.Output{Name: "out", Variable: fmt.Sprint("v", r.IntN(5))})
			}
			graph.Nodes = append(graph.Nodes, node)
		}
		p := pictureOf(graph)
		text := p.svg()
		width, height := pictureOf(graph).layOut()
		for i, a := range p.boxes {
			require.True(t, a.x >= margin && a.y >= head && a.x+a.w <= width-margin && a.y+a.h <= height, "%s", a.name)
			for _, b := range p.boxes[:i] {
				require.True(t, a.x >= b.x+b.w || b.x >= a.x+a.w || a.y >= b.y+b.h || b.y >= a.y+a.h,
					"seed %d: %s on %s", seed, a.name, b.name)
			}
		}
		for _, w := range p.wires {
			for i := range w.via[1:] {
				require.True(t, w.from == w.to || w.via[i].layer+1 == w.via[i+1].layer)
			}
		}
		require.Equal(t, text, pictureOf(graph).svg())
		checkXML(t, text)
	}
}

func checkXML(t *testing.T, text []byte) {
	t.Helper()
	for decoder := xml.NewDecoder(bytes.NewReader(text)); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

// TestLargeGraphs: a chain of many nodes, and a level's many short ones, are fast.
func TestLargeGraphs(t *testing.T) {
	chain, many := flow.Source{}, flow.Source{}
	for i := range 1000 {
		chain.Nodes = append(chain.Nodes, flow.Node{Name: fmt.Sprint(i), Type: "once", List: then(fmt.Sprint(i + 1))})
		many.Nodes = append(many.Nodes, flow.Node{Name: fmt.Sprint(i), Type: "once", List: then(fmt.Sprint(i ^ 1))})
	}
	require.NoError(t, SVG(io.Discard, chain))
	require.NoError(t, SVG(io.Discard, many))
	width, height := pictureOf(many).layOut()
	assert.Less(t, max(width, height), 2*min(width, height), "columns")
}

// TestTracePrints: control characters of a user's text don't reach the terminal.
func TestTracePrints(t *testing.T) {
	const odd = "\x1b[2J\n"
	ints := func(names ...string) (all []flow.Parameter) {
		for _, name := range names {
			all = append(all, flow.Parameter{Name: odd + name, Type: flow.Int})
		}
		return all
	}
	host, err := flow.HostOf(flow.Vocabulary{
		Actions: []flow.Signature{{Name: odd + "act", Parameters: ints("in", "constant")}},
		Events:  []flow.Signature{{Name: odd + "event", Parameters: ints("value")}}})
	require.NoError(t, err)
	data, _, err := flow.Compile(flow.Source{Name: odd,
		Variables: []flow.Variable{{Name: odd, Type: flow.Int}, {Name: odd + "set", Type: flow.Int}},
		Nodes: []flow.Node{
			{Name: odd + "1", Type: "event", Of: odd + "event",
				Out: []flow.Output{{Name: odd + "value", Variable: odd}}, List: then(odd + "2")},
			{Name: odd + "2", Type: "action", Of: odd + "act", In: []flow.Input{
				{Name: odd + "in", Variable: odd}, {Name: odd + "constant", Constant: 3}}, List: then(odd + "3")},
			{Name: odd + "3", Type: "set", In: []flow.Input{{Name: "value", Constant: 4}},
				Out: []flow.Output{{Name: "to", Variable: odd + "set"}}},
		}}, host.Vocabulary())
	require.NoError(t, err)
	b := budgettest.Open(t, budget.Plan{Name: "view", Scratch: budget.ScratchPlan{Workers: 1, Size: budget.MiB}})
	s := b.Scratch(0, 0).Open("level")
	level, err := host.Load(s, data, make([]byte, blob.ScratchSize(data)))
	require.NoError(t, err)
	level.Instances(1)
	var text bytes.Buffer
	runner, trace := host.NewRunner(s, new(struct{}), 10), NewTrace(&text)
	runner.Trace(trace.Step)
	runner.Begin()
	require.NoError(t, runner.FireNamed(level, level.New(), odd+"event", 0, int32(5)))
	runner.End()
	require.NoError(t, trace.Done())
	require.NoError(t, s.Close())
	assert.NotContains(t, text.String(), "\x1b")
	assert.Equal(t, 5, strings.Count(text.String(), "\n"), "graph, three nodes, a change: %s", text.String())
}
