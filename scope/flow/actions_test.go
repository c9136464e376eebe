package flow_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope/flow"
)

func two() flow.Source {
	return flow.Source{Name: "two", Nodes: []flow.Node{
		{Name: "start", Type: "event", Of: "near", List: then("one", "other")},
		{Name: "one", Type: "action", Of: "do"}, {Name: "other", Type: "action", Of: "do"}}}
}

// TestPanicInTick: delays that a panic kept from running are due in the next tick.
func TestPanicInTick(t *testing.T) {
	s := openScope(t)
	soon := []flow.Input{{Name: "ticks", Constant: 1}}
	g := load(t, s, flow.Source{Name: "pond", Nodes: []flow.Node{
		{Name: "start", Type: "event", Of: "near", List: then("one", "other")},
		{Name: "one", Type: "delay", In: soon, List: then("do")},
		{Name: "other", Type: "delay", In: soon, List: then("tell")},
		{Name: "do", Type: "action", Of: "do"},
		{Name: "tell", Type: "action", Of: "note"},
	}}, 1)
	w := &book{inner: func() { panic("full") }}
	r := books.NewRunner(s, w, 10)
	i := g.New()
	r.Begin()
	require.NoError(t, near.Fire(r, g, i, 0, values{}))
	assert.PanicsWithValue(t, "full", func() { _ = r.Tick(g) })
	assert.Empty(t, w.lines)
	require.NoError(t, r.Tick(g))
	require.NoError(t, r.Tick(g))
	assert.Len(t, w.lines, 1)
}

// TestTraceEndsItself: a trace may stop itself in a step; the next event runs without it.
func TestTraceEndsItself(t *testing.T) {
	s := openScope(t)
	g := load(t, s, two(), 1)
	r := books.NewRunner(s, &book{}, 10)
	i := g.New()
	steps := 0
	r.Trace(func(flow.Step) {
		steps++
		r.Trace(nil)
	})
	r.Begin()
	for range 2 {
		require.NoError(t, near.Fire(r, g, i, 0, values{}))
		assert.Equal(t, 3, steps)
	}
}

// TestCloseInAction: an action that closes the scope of its graph or runner panics, before any read
// of its memory.
func TestCloseInAction(t *testing.T) {
	closed := "flow: BUG: an action closed the scope of its graph or runner: close it when the event has returned"
	for _, what := range []string{"graph", "runner", "sender"} {
		s := openScope(t)
		w := &book{}
		r := books.NewRunner(s, w, 10)
		level := load(t, s, flow.Source{Name: "level", Nodes: []flow.Node{
			{Name: "start", Type: "event", Of: "far", List: then("do")},
			{Name: "do", Type: "action", Of: "do"},
		}}, 1)
		r.SendTo(level, level.New())
		inner := s.Open("inner")
		source := two()
		if what == "sender" {
			source.Nodes[1] = flow.Node{Name: "one", Type: "send", Of: "far"}
		}
		g := load(t, inner, source, 1)
		if what == "runner" {
			r = books.NewRunner(inner, w, 10)
		}
		i := g.New()
		w.inner = func() {
			require.NoError(t, inner.Close())
			for b := s.BytesUnzeroed(1024, 8); len(b) > 0; b = b[1:] {
				b[0] = 0xff
			}
			w.inner = func() { t.Error("it went on") }
		}
		r.Begin()
		assert.PanicsWithValue(t, closed, func() { _ = near.Fire(r, g, i, 0, values{}) }, what)
	}
}

// TestRunnersInEachOther: an action may use another runner, but not in a graph that runs, because
// Free checks for one runner only.
func TestRunnersInEachOther(t *testing.T) {
	s := openScope(t)
	g, free := load(t, s, two(), 2), load(t, s, two(), 1)
	w := &book{}
	r, other := books.NewRunner(s, w, 10), books.NewRunner(s, &book{}, 10)
	i, j, k := g.New(), g.New(), free.New()
	r.Begin()
	other.Begin()
	busy := `flow: BUG: another runner is in graph "two": an action may not use it`
	w.inner = func() {
		require.NoError(t, near.Fire(other, free, k, 0, values{}))
		assert.PanicsWithValue(t, busy, func() { _ = near.Fire(other, g, j, 0, values{}) })
		assert.PanicsWithValue(t, busy, func() { _ = other.Tick(g) })
		assert.Panics(t, func() { g.Free(i) }, "it runs")
	}
	require.NoError(t, near.Fire(r, g, i, 0, values{}))
	require.NoError(t, near.Fire(other, g, j, 0, values{}))

	sends := two()
	sends.Nodes[2] = flow.Node{Name: "other", Type: "send", Of: "far"}
	sends.Nodes = append(sends.Nodes, flow.Node{Name: "far", Type: "event", Of: "far"})
	unit, level := load(t, s, sends, 1), load(t, s, flow.Source{Name: "level", Nodes: []flow.Node{
		{Name: "near", Type: "event", Of: "near", List: then("do")},
		{Name: "far", Type: "event", Of: "far", List: then("do")},
		{Name: "do", Type: "action", Of: "do"}}}, 1)
	main := level.New()
	other.SendTo(level, main)
	unitOne := unit.New()
	w.inner = func() {
		assert.PanicsWithValue(t, `flow: BUG: another runner is in graph "level": an action may not use it`,
			func() { _ = near.Fire(other, unit, unitOne, 0, values{}) })
	}
	require.NoError(t, near.Fire(r, level, main, 0, values{}))
	w.inner = nil
	require.NoError(t, near.Fire(other, unit, unitOne, 0, values{}))
	unit.Free(unitOne)
	level.Free(main)
}

// TestNoNumber: a sum that is NaN has the same bits on each processor.
func TestNoNumber(t *testing.T) {
	s := openScope(t)
	g := load(t, s, flow.Source{Name: "pond",
		Variables: []flow.Variable{{Name: "x", Type: flow.Number}, {Name: "y", Type: flow.Number}},
		Nodes: []flow.Node{
			{Name: "start", Type: "event", Of: "near", List: then("add"),
				Out: []flow.Output{{Name: "c", Variable: "y"}}},
			{Name: "add", Type: "add", In: []flow.Input{{Name: "value", Variable: "y"}},
				Out: []flow.Output{{Name: "to", Variable: "x"}}},
		}}, 1)
	r := books.NewRunner(s, &book{}, 10)
	i := g.New()
	r.Begin()
	for _, sign := range []int{1, -1} {
		require.NoError(t, near.Fire(r, g, i, 0, values{C: float32(math.Inf(sign))}))
	}
	x, _ := g.Value(i, 0).(float32)
	assert.Equal(t, uint32(0x7fc00000), math.Float32bits(x))
}

// TestManyLists: the lists of a node are found in constant time.
func TestManyLists(t *testing.T) {
	n := flow.Node{Name: "turns", Type: "sequence"}
	const lists = 300_000 // minutes, if each were searched among all
	for i := range lists {
		n.List = append(n.List, flow.List{Name: fmt.Sprint(lists - i)})
	}
	compile(t, flow.Source{Name: "pond", Nodes: []flow.Node{n}})
}
