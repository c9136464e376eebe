package flow_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope/flow"
)

var errPond = errors.New("the pond is dry")

// TestFail: no link of a failed action's node runs, all others do, and the error names the node.
func TestFail(t *testing.T) {
	for _, traced := range []bool{false, true} {
		s := openScope(t)
		g := load(t, s, flow.Source{Name: "pond", Nodes: []flow.Node{
			{Name: "start", Type: "event", Of: "near", List: then("do", "again", "tell")},
			{Name: "do", Type: "action", Of: "do", List: then("never")},
			{Name: "again", Type: "action", Of: "do", List: then("never")},
			{Name: "never", Type: "action", Of: "note"},
			{Name: "tell", Type: "action", Of: "note"},
		}}, 1)
		w := &book{}
		r := books.NewRunner(s, w, 10)
		i := g.New()
		if traced {
			r.Trace(func(flow.Step) {})
		}
		r.Begin()
		times := 0
		w.inner = func() {
			if times++; times == 1 {
				r.Fail(errPond)
			} else {
				r.Fail(errors.New("another"))
			}
		}
		err := near.Fire(r, g, i, 0, values{})
		var failed *flow.ActionError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, []string{"pond", "start", "do"}, []string{failed.Graph, failed.Began, failed.Node})
		assert.ErrorIs(t, err, errPond)
		assert.EqualError(t, failed,
			`flow: graph "pond": "start": the action of node "do" failed: the pond is dry`)
		assert.Equal(t, 2, times)
		assert.Len(t, w.lines, 1, "what is linked to the event, and not what follows what failed")

		w.inner = nil
		require.NoError(t, near.Fire(r, g, i, 0, values{}), "the next event has nothing of it")
		assert.Len(t, w.lines, 4)
	}
}

// TestFailInTick: an action of the level fails that a delay's send runs. The steps run out after
// it, and the error has both.
func TestFailInTick(t *testing.T) {
	s := openScope(t)
	level := load(t, s, flow.Source{Name: "level", Nodes: []flow.Node{
		{Name: "far", Type: "event", Of: "far", List: then("do")},
		{Name: "do", Type: "action", Of: "do", List: then("never")},
		{Name: "never", Type: "action", Of: "note"},
	}}, 1)
	g := load(t, s, flow.Source{Name: "pond", Nodes: []flow.Node{
		{Name: "start", Type: "event", Of: "near", List: then("soon")},
		{Name: "soon", Type: "delay", In: []flow.Input{{Name: "ticks", Constant: 1}},
			List: then("send", "loop")},
		{Name: "send", Type: "send", Of: "far"},
		{Name: "loop", Type: "action", Of: "note", List: then("loop")},
	}}, 1)
	w := &book{}
	r := books.NewRunner(s, w, 10)
	r.SendTo(level, level.New())
	i := g.New()
	w.inner = func() { r.Fail(errPond) }
	r.Begin()
	require.NoError(t, near.Fire(r, g, i, 0, values{}))
	err := r.Tick(g)
	var failed *flow.ActionError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, []string{"pond", "soon", "do"}, []string{failed.Graph, failed.Began, failed.Node})
	assert.ErrorIs(t, failed, errPond)
	var steps *flow.StepsError
	require.ErrorAs(t, err, &steps)
	assert.Equal(t, "loop", steps.Node)
	assert.Len(t, w.lines, 8, "all steps but send and do")
	require.NoError(t, r.Tick(g))
}

// TestFailMisused: Fail panics when no action runs, and an action that fails and then panics leaves
// no error.
func TestFailMisused(t *testing.T) {
	s := openScope(t)
	g := load(t, s, two(), 1)
	w := &book{}
	r := books.NewRunner(s, w, 10)
	i := g.New()
	nowhere := "flow: BUG: Fail where no action runs"
	assert.PanicsWithValue(t, nowhere, func() { r.Fail(errPond) })
	r.Begin()
	assert.PanicsWithValue(t, nowhere, func() { r.Fail(errPond) })
	w.inner = func() {
		r.Fail(errPond)
		panic("and panics")
	}
	assert.PanicsWithValue(t, "and panics", func() { _ = near.Fire(r, g, i, 0, values{}) })
	w.inner = func() { assert.PanicsWithValue(t, "flow: BUG: Fail of nil", func() { r.Fail(nil) }) }
	require.NoError(t, near.Fire(r, g, i, 0, values{}))
	assert.Panics(t, func() { new(flow.Runner).Fail(errPond) })
}
