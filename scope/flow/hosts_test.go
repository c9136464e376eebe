package flow_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
)

// TestHosts: a bad declaration panics, and an error names an action or event that isn't declared.
func TestHosts(t *testing.T) {
	s := openScope(t)
	data := compile(t, good())
	load := func(h *flow.Host[book]) error {
		_, err := h.Load(s, data, scratch(data))
		return err
	}
	h := flow.NewHost[book]()
	assert.EqualError(t, load(h), `flow: graph "good": the host has no action "note"`)
	flow.NewAction(h, "note", func(*flow.Runner, *book, *note) {})
	flow.NewAction(h, "ask", func(*flow.Runner, *book, *struct{ A flow.In[int32] }) {})
	assert.EqualError(t, load(h),
		`flow: graph "good": action "ask": the host has [a int], the graph [a int x out int y out bool z out number w out handle]`)
	type embedded struct{ flow.In[int32] }
	says := func(text string, do func()) {
		t.Helper()
		defer func() { assert.Contains(t, recover(), text) }()
		do()
	}
	says(`a parameter is a flow.In or flow.Out of bool`,
		func() { flow.NewAction(h, "x", func(*flow.Runner, *book, *struct{ A int32 }) {}) })
	says(`a parameter is a flow.In`,
		func() { flow.NewAction(h, "x", func(*flow.Runner, *book, *struct{ A embedded }) {}) })
	says(`action "x" has no function`, func() { flow.NewAction[book, note](h, "x", nil) })
	says(`event "x": int32 is no struct`, func() { flow.NewEvent[int32](h, "x") })
	says(`a value is a bool`, func() { flow.NewEvent[struct{ A int }](h, "x") })
	says(`action "note": names are UTF-8`,
		func() { flow.NewAction(h, "note", func(*flow.Runner, *book, *note) {}) })
	says(`a value may not be called key`, func() { flow.NewEvent[struct{ Key bool }](h, "x") })
	says(`event "": names are UTF-8`, func() { flow.NewEvent[values](h, "") })
	says(`parameter "a": names are UTF-8`, func() { flow.NewEvent[struct{ A, a int32 }](h, "x") })
	_, err := flow.HostOf(flow.Vocabulary{Events: []flow.Signature{{Name: "e",
		Parameters: []flow.Parameter{{"a", flow.Int, true}}}}})
	assert.EqualError(t, err, `flow: event "e", parameter "a": a out int`)
}

func TestTools(t *testing.T) {
	s := openScope(t)
	data := compile(t, good())
	_, vocabulary, err := flow.Decompile(data, scratch(data))
	require.NoError(t, err)
	h, err := flow.HostOf(vocabulary)
	require.NoError(t, err)
	g, err := h.Load(s, data, scratch(data))
	require.NoError(t, err)
	g.Instances(1)
	r := h.NewRunner(s, nil, 10)
	var steps []int
	r.Trace(func(step flow.Step) { steps = append(steps, step.Node) })
	r.Begin()
	i := g.New()
	require.NoError(t, r.FireNamed(g, i, "near", 3, true))
	assert.Equal(t, []int{0, 1, 4, 2}, steps)
	assert.Equal(t, true, g.Value(i, 0))
	assert.EqualError(t, r.FireNamed(g, i, "further", 3), `flow: the host has no event "further"`)
	assert.EqualError(t, r.FireNamed(g, i, "near", 3, 1), `flow: event "near": b: 1 is no bool`)
	assert.EqualError(t, r.FireNamed(g, i, "near", 3, true, 0, 0, 0, 0),
		`flow: event "near" has 4 values, not 5`)
	r.End()
}

func TestCut(t *testing.T) {
	s := openScope(t)
	data := compile(t, good())
	for n := range len(data) {
		_, err := books.Load(s, data[:n], make([]byte, 1<<14))
		require.Error(t, err)
	}
	type other struct{ Frogs int32 }
	others := blob.Of[other]()
	w := others.Writer(make([]byte, 256))
	foreign, err := w.Finish(blob.Put(w, other{}))
	require.NoError(t, err)
	_, err = books.Load(s, foreign, make([]byte, 1<<14))
	assert.ErrorContains(t, err, `flow: blob: of other types: here "root", there "other"`)
}

func TestFull(t *testing.T) {
	s := openScope(t)
	data := compile(t, good())
	err := s.Do("small", func(s scope.Scope) error {
		g, err := books.Load(s, data, scratch(data))
		require.NoError(t, err)
		g.Instances(1 << 20)
		return err
	})
	assert.True(t, errors.Is(err, scope.ErrFull))
	err = s.Do("smaller", func(s scope.Scope) error {
		g, err := books.Load(s, data, scratch(data))
		require.NoError(t, err)
		g.Instances(1 << 30)
		return err
	})
	assert.True(t, errors.Is(err, scope.ErrFull))
}

// TestNamesOfFields: a field's name becomes lower case with underscores, words of capitals
// included.
func TestNamesOfFields(t *testing.T) {
	type fields struct {
		ID, HasKey, PlayerID, HTTPPort, X, A1B int32
	}
	h := flow.NewHost[struct{}]()
	flow.NewEvent[fields](h, "e")
	var names []string
	for _, p := range h.Vocabulary().Events[0].Parameters {
		names = append(names, p.Name)
	}
	assert.Equal(t, []string{"id", "has_key", "player_id", "http_port", "x", "a1_b"}, names)
}
