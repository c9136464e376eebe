package flow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/tests/step"
)

type pair struct {
	*testing.T
	r      *rand.Rand
	p      play
	real   *book
	runner *flow.Runner
	graphs []*flow.Graph
	models []*model
	live   []map[flow.Instance]*instance // of each graph
	lines  int
	errors int
}

// TestRandomGraphs: random graphs and operations do the same in the runner and in the model.
func TestRandomGraphs(t *testing.T) {
	rounds := step.Pick(100, 1500, 200_000)
	took := map[string]int{}
	outer := openScope(t)
	for seed := range uint64(rounds) {
		s := outer.Open("round")
		checkModel(t, s, seed, took)
		require.NoError(t, s.Close())
		if t.Failed() {
			t.Logf("seed %d", seed)
			return
		}
	}
	for _, what := range []string{"lines", "asked", "errors", "sent"} {
		assert.NotZero(t, took[what], what)
	}
}

func checkModel(t *testing.T, s scope.Scope, seed uint64, took map[string]int) {
	r := rand.New(rand.NewPCG(seed, 1))
	x := &pair{T: t, r: r, real: &book{}}
	x.p = play{world: &book{}, limit: 1 + r.IntN(60)}
	x.runner = books.NewRunner(s, x.real, x.p.limit)
	for i := range 2 {
		source := randomSource(r, []string{"level", "unit"}[i], 1+r.IntN(30))
		x.graphs = append(x.graphs, load(t, s, source, 3))
		x.models = append(x.models, modelOf(source))
		x.live = append(x.live, map[flow.Instance]*instance{})
		x.make(i)
		for _, n := range source.Nodes {
			if n.Type == "send" {
				took["sent"]++
			}
		}
	}
	if r.IntN(4) != 0 {
		for h, i := range x.live[0] {
			x.p.level = i
			x.runner.SendTo(x.graphs[0], h)
		}
	}
	if r.IntN(3) == 0 {
		x.runner.Trace(func(step flow.Step) { took["steps"]++ })
	}
	for range 60 {
		if x.act(); t.Failed() {
			return
		}
	}
	took["lines"] += x.lines
	took["asked"] += int(x.real.asked)
	took["errors"] += x.errors
}

func (x *pair) make(graph int) {
	h := x.graphs[graph].New()
	require.Equal(x, len(x.live[graph]) < 3, h != 0)
	if h != 0 {
		i := x.models[graph].instance()
		x.live[graph][h] = i
		if x.r.IntN(3) == 0 {
			i.random = x.r.Uint32()
			x.graphs[graph].Seed(h, i.random)
		}
	}
}

func (x *pair) instances(graph int) []flow.Instance {
	var all []flow.Instance
	for h := range x.live[graph] {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b flow.Instance) int { return int(uint32(a)) - int(uint32(b)) })
	return all
}

func (x *pair) act() {
	graph := x.r.IntN(2)
	all := x.instances(graph)
	var want, got string
	x.runner.Begin()
	x.p.steps = 0
	switch what := x.r.IntN(10); {
	case what == 0:
		x.make(graph)
	case what == 1 && graph == 1 && len(all) > 0:
		h := all[x.r.IntN(len(all))]
		x.graphs[graph].Free(h)
		delete(x.live[graph], h)
		assert.False(x, x.graphs[graph].Live(h))
	case what < 4:
		got = text(x.runner.Tick(x.graphs[graph]))
		for _, h := range all {
			if errors := x.p.tick(x.live[graph][h]); len(errors) > 0 && want == "" {
				want = errors[0]
			}
		}
	case len(all) > 0:
		h := all[x.r.IntN(len(all))]
		want, got = x.fire(graph, h)
	}
	x.runner.End()
	assert.Equal(x, want, got)
	assert.Equal(x, x.p.world.lines, x.real.lines)
	x.lines += len(x.real.lines)
	x.real.lines, x.p.world.lines = nil, nil
	for graph, live := range x.live {
		for h, i := range live {
			for n, v := range x.models[graph].source.Variables {
				want, got := i.values[v.Name], x.graphs[graph].Value(h, n)
				// NaN isn't equal to itself.
				if want != got && fmt.Sprint(want) != fmt.Sprint(got) {
					x.Errorf("graph %d, %s: %v, not %v", graph, v.Name, got, want)
				}
			}
		}
	}
}

func (x *pair) fire(graph int, h flow.Instance) (want, got string) {
	key, v := int32(x.r.IntN(16)), values{x.r.IntN(2) == 0, x.r.Uint64(), int32(x.r.IntN(4)),
		float32(x.r.IntN(4))}
	for _, n := range x.models[graph].source.Nodes { // mostly an existing one
		if n.Type == "event" && x.r.IntN(2) == 0 {
			key = n.Key
		}
	}
	event, name := near, "near"
	if x.r.IntN(2) == 0 {
		event, name = far, "far"
	}
	got = text(event.Fire(x.runner, x.graphs[graph], h, key, v))
	i := x.live[graph][h]
	if begun, ok := x.p.fire(i, name, key, map[string]any{"a": v.A, "b": v.B, "c": v.C,
		"d": v.D}); !ok {
		want = x.p.tooMany(i, begun)
		x.errors++
	}
	return want, got
}

func text(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}
