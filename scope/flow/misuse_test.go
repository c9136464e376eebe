package flow_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/flow"
)

// TestMisuse: each misuse panics with its text, and the runner still works.
func TestMisuse(t *testing.T) {
	s := openScope(t)
	g := load(t, s, flow.Source{Name: "pond", Nodes: []flow.Node{
		{Name: "start", Type: "event", Of: "near", List: then("do")},
		{Name: "do", Type: "action", Of: "do"},
	}}, 2)
	w := &book{}
	r := books.NewRunner(s, w, 10)
	i := g.New()
	fire := func() { _ = near.Fire(r, g, i, 0, values{}) }
	assert.PanicsWithValue(t, "flow: BUG: Fire outside of its phase: call Begin first", fire)
	assert.PanicsWithValue(t, "flow: BUG: Tick outside of its phase: call Begin first",
		func() { _ = r.Tick(g) })
	assert.PanicsWithValue(t, "flow: BUG: End outside of its phase: call Begin first", r.End)
	r.Begin()
	assert.PanicsWithValue(t, "flow: BUG: Begin twice", r.Begin)
	again := " while an event runs: an action may not call it, nor another goroutine; a graph fires by a node \"send\""
	for what, do := range map[string]func(){"Fire": fire, "Tick": func() { _ = r.Tick(g) },
		"End": r.End, "Begin": r.Begin, "SendTo": func() { r.SendTo(g, i) }} {
		w.inner = do
		assert.PanicsWithValue(t, "flow: BUG: "+what+again, fire)
	}
	w.inner = func() { g.Free(i) }
	assert.PanicsWithValue(t,
		`flow: BUG: Free of an instance of graph "pond" while it runs: free it when its event has returned`, fire)
	w.inner = func() { runtime.Goexit() }
	r.End()
	done := make(chan bool)
	go func() { defer close(done); r.Begin(); fire() }()
	<-done
	w.inner = nil
	r.End()
	r.Begin()
	fire()

	inside, other := make(chan bool), make(chan any)
	w.inner = func() { close(inside); <-other }
	go func() {
		<-inside
		defer func() { other <- recover() }()
		fire()
	}()
	fire()
	w.inner = nil
	if arena_c.Checked {
		var wait sync.WaitGroup
		for what, do := range map[string]func(){"Fire": fire, "Tick": func() { _ = r.Tick(g) }} {
			wait.Go(func() {
				assert.PanicsWithValue(t, "flow: BUG: "+what+" in another goroutine than Begin: give each goroutine "+
					"its own runner, or call Begin and End there", do)
			})
			wait.Wait()
		}
		fire() // the runner still works
	}
	r.End()

	g.Free(i)
	assert.PanicsWithValue(t, `flow: BUG: Free of an instance of graph "pond": freed already`,
		func() { g.Free(i) })
	assert.PanicsWithValue(t, `flow: BUG: Value of an instance of graph "pond", which isn't live`,
		func() { g.Value(i, 0) })
	r.Begin()
	assert.EqualError(t, near.Fire(r, g, i, 0,
		values{}), `flow: the instance of graph "pond" isn't live`)
	assert.PanicsWithValue(t, "flow: BUG: an event of another host",
		func() { _ = quietNear.Fire(r, g, i, 0, values{}) })
	r.End()
	none := load(t, s, flow.Source{Name: "none"}, 0)
	assert.Zero(t, none.New())
	assert.PanicsWithValue(t, `flow: BUG: Free of an instance of graph "none", which has none`,
		func() { none.Free(i) })
	foreign := quietHost.NewRunner(s, &quiet{}, 1)
	assert.PanicsWithValue(t, `flow: BUG: a runner of another host than that of graph "pond"`,
		func() { _ = foreign.Tick(g) })
	assert.PanicsWithValue(t, "flow: BUG: NewRunner with 0 steps: give 1 to 67108864", func() {
		books.NewRunner(s, w, 0)
	})
	assert.PanicsWithValue(t, "flow: BUG: NewRunner with 268435456 steps: give 1 to 67108864",
		func() { books.NewRunner(s, w, 1<<28) }, "its stack would wrap where an int has 32 bits")
	assert.PanicsWithValue(t, "flow: BUG: a graph with -1 instances: give 0 to 2147483648",
		func() { load(t, s, good(), -1) })
}

func TestZeros(t *testing.T) {
	s := openScope(t)
	var (
		h flow.Host[book]
		g flow.Graph
		r flow.Runner
		e flow.Event[values]
	)
	real := books.NewRunner(s, &book{}, 1)
	live := load(t, s, flow.Source{Name: "live"}, 1)
	for says, do := range map[string][]func(){
		"flow: BUG: a zero Host: NewHost makes one": {
			func() { h.Vocabulary() }, func() { _, _ = h.Load(s, nil, nil) },
			func() { h.NewRunner(s, nil, 1) },
			func() { flow.NewEvent[values](&h, "e") },
			func() { flow.NewAction(&h, "a", func(*flow.Runner, *book, *note) {}) },
		},
		"flow: BUG: a zero Graph: Load of a Host makes one": {
			func() { g.Instances(1) },
			func() { g.New() }, func() { g.Free(1) }, func() { g.Live(1) }, func() { g.Seed(1, 1) },
			func() { g.Value(1, 1) },
			func() { g.Data() }, func() { g.Source() }, func() { _ = g.Name() },
			func() { _ = real.Tick(&g) },
			func() { real.SendTo(&g, 1) }, func() { _ = near.Fire(real, &g, 1, 1, values{}) },
		},
		"flow: BUG: a zero Runner: NewRunner of a Host makes one": {
			r.Begin, r.End, func() { _ = r.Tick(live) }, func() { r.SendTo(live, 1) },
			func() { _ = near.Fire(&r, live, 1, 1, values{}) },
			func() { _ = r.FireNamed(live, 1, "near", 1) },
		},
		"flow: BUG: a zero Event: NewEvent makes one": {func() {
			_ = e.Fire(real, live, 1, 1,
				values{})
		}},
	} {
		for i, do := range do {
			assert.PanicsWithValue(t, says, do, "%s %d", says, i)
		}
	}
	assert.False(t, live.Live(0))
	assert.PanicsWithValue(t, `flow: BUG: Instances of graph "live" twice`,
		func() { live.Instances(1) })
}

// TestEnds: a graph and a runner panic after their scope has closed.
func TestEnds(t *testing.T) {
	s := openScope(t)
	inner := s.Open("level")
	g := load(t, inner, good(), 1)
	i := g.New()
	r := books.NewRunner(inner, &book{}, 10)
	r.Begin()
	require.NoError(t, inner.Close())
	for _, do := range []func(){func() { g.New() }, func() { g.Free(i) }, func() { g.Value(i, 0) }} {
		assert.PanicsWithValue(t, "flow: BUG: a Graph whose scope has closed", do)
	}
	other := load(t, s, good(), 1)
	fires := func(r *flow.Runner, g *flow.Graph) func() {
		return func() {
			_ = near.Fire(r, g, i, 3,
				values{})
		}
	}
	for _, do := range []func(){r.Begin, r.End, fires(r, g), fires(r, other),
		func() { _ = r.Tick(other) }} {
		assert.PanicsWithValue(t, "flow: BUG: a Runner whose scope has closed", do)
	}
	r = books.NewRunner(s, &book{}, 10)
	r.Begin()
	assert.PanicsWithValue(t, "flow: BUG: a Graph whose scope has closed", fires(r, g))
	r.SendTo(other, other.New())
	assert.PanicsWithValue(t, "flow: BUG: a Graph whose scope has closed", func() { r.SendTo(g, i) })
}
