package lua_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/arena/with/lua"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
)

type (
	frogID uint64
	tag    int32
)

// jump has a parameter of each type and direction.
type jump struct {
	Wet    flow.In[bool]
	To     flow.Out[tag]
	Far    flow.In[tag]
	Speed  flow.In[float32]
	Dry    flow.Out[bool]
	Frog   flow.In[frogID]
	Height flow.Out[float32]
	Next   flow.Out[frogID]
}

type level struct {
	script *lua.State
	notes  []int32
}

type noted struct{ To flow.In[int32] }

type start struct {
	Far  int32
	Frog frogID
}

var (
	levels  = flow.NewHost[level]()
	started = flow.NewEvent[start](levels, "start")
	_       = lua.Action[level, jump](levels, "jump", "jump", func(w *level) *lua.State { return w.script })
	_       = flow.NewAction(levels, "note", func(r *flow.Runner, w *level, p *noted) {
		w.notes = append(w.notes, p.To.Get(r))
	})
)

// jumps returns a graph in which a jump and its successor are one of two sequences.
func jumps() flow.Source {
	in := []flow.Input{{Name: "far", Variable: "far"}, {Name: "frog", Variable: "frog"},
		{Name: "wet", Constant: true}, {Name: "speed", Constant: 0.5}}
	out := []flow.Output{{Name: "to", Variable: "to"}, {Name: "dry", Variable: "dry"},
		{Name: "height", Variable: "height"}, {Name: "next", Variable: "next"}}
	to := []flow.Input{{Name: "to", Variable: "to"}}
	then := func(nodes ...string) []flow.List {
		l := flow.List{Name: "then"}
		for _, n := range nodes {
			l.Links = append(l.Links, flow.Link{Node: n})
		}
		return []flow.List{l}
	}
	return flow.Source{Name: "pond",
		Variables: []flow.Variable{{Name: "far", Type: flow.Int}, {Name: "frog", Type: flow.Handle},
			{Name: "to", Type: flow.Int, Value: -1}, {Name: "dry", Type: flow.Bool},
			{Name: "height", Type: flow.Number, Value: -1.5}, {Name: "next", Type: flow.Handle}},
		Nodes: []flow.Node{
			{Name: "begin", Type: "event", Of: "start", List: then("leap", "tell"),
				Out: []flow.Output{{Name: "far", Variable: "far"}, {Name: "frog", Variable: "frog"}}},
			{Name: "leap", Type: "action", Of: "jump", In: in, Out: out, List: then("landed")},
			{Name: "landed", Type: "action", Of: "note", In: to},
			{Name: "tell", Type: "action", Of: "note", In: to},
		}}
}

// pond is a level with an instance of that graph.
type pond struct {
	*level
	graph    *flow.Graph
	instance flow.Instance
	runner   *flow.Runner
}

func newPond(t *testing.T, steps int64) *pond {
	t.Helper()
	p := &pond{level: &level{script: newState(t, steps)}}
	s := openScope(t, size).Open("level")
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	data, _, err := flow.Compile(jumps(), levels.Vocabulary())
	require.NoError(t, err)
	p.graph, err = levels.Load(s, data, make([]byte, blob.ScratchSize(data)))
	require.NoError(t, err)
	p.graph.Instances(1)
	p.instance = p.graph.New()
	p.runner = levels.NewRunner(s, p.level, 100)
	p.runner.Begin()
	return p
}

func (p *pond) fire(far int32, frog frogID) error {
	return started.Fire(p.runner, p.graph, p.instance, 0, start{far, frog})
}

func (p *pond) outputs() (all []any) {
	for i := 2; i < 6; i++ {
		all = append(all, p.graph.Value(p.instance, i))
	}
	return all
}

// TestAction: a function of a script gets a node's inputs and returns its outputs.
func TestAction(t *testing.T) {
	p := newPond(t, 0)
	require.NoError(t, p.script.Run("pond.lua", `
		function jump(wet, far, speed, frog)
			assert(wet == true and speed == 0.5 and math.type(speed) == "float")
			return far + 1, not wet, far * speed, frog + 1
		end`))
	require.NoError(t, p.fire(6, 1<<63|5))
	assert.Equal(t, []any{int32(7), false, float32(3), uint64(1<<63 | 6)}, p.outputs())
	assert.Equal(t, []int32{7, 7}, p.notes)
	require.NoError(t, p.script.Run("pond.lua", "function jump() return -5, true, 2, 0 end"))
	require.NoError(t, p.fire(6, 0))
	assert.Equal(t, []any{int32(-5), true, float32(2), uint64(0)}, p.outputs(), "a number may be an integer")
}

// TestActionFails: an error in a script fails its node alone. The error names the node, its outputs
// stay unchanged, no node after it runs, and the level goes on.
func TestActionFails(t *testing.T) {
	p := newPond(t, 100_000)
	is := func(target error) func(error) { return func(err error) { require.ErrorIs(t, err, target) } }
	says := func(text string) func(error) { return func(err error) { require.ErrorContains(t, err, text) } }
	require.NoError(t, p.script.Func("drink", func([]any) ([]any, error) { return nil, errPond }))
	for _, bad := range []struct {
		script string
		check  func(error)
	}{
		{"function jump() " + grow + " end", is(scope.ErrFull)},
		{"function jump() while true do end end", is(lua.ErrSteps)},
		{"function jump() drink() end", is(errPond)},
		{"function jump() error('no frog') end", says(`lua: state "frogs": bad:1: no frog`)},
		{"jump = nil", says("attempt to call a nil value")},
		{"function jump() return 1, true, 2 end", says("jump returned 3 values, and its action has 4 outputs")},
		{"function jump() return 1, true, 2, 3, 4 end", says("jump returned 5 values")},
		{"function jump() return 1, true, 2, {} end", says("value 4 is a table")},
		{"function jump() return 'x', true, 2, 3 end", says("jump returned x for to out int")},
		{"function jump() return 1.5, true, 2, 3 end", says("jump returned 1.5 for to out int")},
		{"function jump() return 1 << 31, true, 2, 3 end", says("jump returned 2147483648 for to out int")},
		{"function jump() return 1, 1, 2, 3 end", says("jump returned 1 for dry out bool")},
		{"function jump() return 1, true, '2', 3 end", says("jump returned 2 for height out number")},
		{"function jump() return 1, true, 2, nil end", says("jump returned <nil> for next out handle")},
	} {
		require.NoError(t, p.script.Run("good", "kept = nil; function jump(_, far) return far, true, 2, 3 end"))
		require.NoError(t, p.fire(1, 0))
		before := p.outputs()
		require.NoError(t, p.script.Run("bad", bad.script))
		p.notes = nil
		err := p.fire(2, 0)
		var failed *flow.ActionError
		require.ErrorAs(t, err, &failed, bad.script)
		require.Equal(t, [3]string{"pond", "begin", "leap"}, [3]string{failed.Graph, failed.Began, failed.Node})
		bad.check(err)
		require.Equal(t, before, p.outputs(), bad.script)
		require.Equal(t, []int32{1}, p.notes, "the other thing that is linked to the event")
	}
	p.script = nil
	assert.ErrorContains(t, p.fire(3, 0), "the world has no state")
}

func TestActionAfterItsScope(t *testing.T) {
	p := newPond(t, 0)
	l, inner := openState(t, lua.Plan{Name: "gone", Size: size})
	require.NoError(t, inner.Close())
	p.script = l
	assert.ErrorIs(t, p.fire(1, 0), scope.ErrClosed)
	assert.Equal(t, []int32{-1}, p.notes)
}

func TestActionMakesNoGarbage(t *testing.T) {
	p := newPond(t, 0)
	p.notes = make([]int32, 0, 1<<12)
	require.NoError(t, p.script.Run("pond.lua", "function jump(_, far) return far, true, 2, 3 end"))
	allocs := testing.AllocsPerRun(100, func() { require.NoError(t, p.fire(1, 2)) })
	if judged {
		assert.Zero(t, allocs)
	}
}

// TestActionDeclared: an action that a call can't serve panics at its declaration.
func TestActionDeclared(t *testing.T) {
	h := flow.NewHost[level]()
	script := func(w *level) *lua.State { return w.script }
	assert.Panics(t, func() { lua.Action[level, struct{ X flow.In[int32] }](h, "", "f", script) })
	type many struct {
		A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P, Q flow.In[int32]
	}
	assert.PanicsWithValue(t, `lua: action "many": more than 16 inputs or outputs`,
		func() { lua.Action[level, many](h, "many", "f", script) })
}
