package flow_test

import (
	"hash/crc32"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/flow"
)

func TestThereAndBack(t *testing.T) {
	for _, source := range []flow.Source{good(), everything(), {}} {
		data := compile(t, source)
		back, vocabulary, err := flow.Decompile(data, scratch(data))
		require.NoError(t, err)
		again, _, err := flow.Compile(back, vocabulary)
		require.NoError(t, err)
		assert.Equal(t, data, again)
		assert.Equal(t, back, load(t, openScope(t), source, 0).Source())
	}
	back, _, err := flow.Decompile(compile(t, good()), scratch(compile(t, good())))
	require.NoError(t, err)
	assert.Equal(t, good().Nodes, back.Nodes)
}

// TestSameBytes: a blob, and the data after some events, are the same on each target.
func TestSameBytes(t *testing.T) {
	data := compile(t, everything())
	s := openScope(t)
	g, r := load(t, s, everything(), 1), books.NewRunner(s, &book{}, 1000)
	i := g.New()
	r.Begin()
	for range 10 {
		for _, n := range g.Source().Nodes {
			if n.Type == "event" {
				_ = near.Fire(r, g, i, n.Key, values{true, 1 << 40, 3, 0.1})
				_ = far.Fire(r, g, i, n.Key, values{false, 1 << 50, -3, 1e9})
			}
		}
		_ = r.Tick(g)
	}
	r.End()
	assert.Equal(t, []uint32{0x5283bd68, 0x7584aaca},
		[]uint32{crc32.ChecksumIEEE(data), crc32.ChecksumIEEE(flow.DataOf(g, i))})
}

func TestReport(t *testing.T) {
	source := good()
	source.Nodes = append(source.Nodes, flow.Node{Name: "wait", Type: "delay"},
		flow.Node{Name: "more", Type: "delay", List: then("wait")})
	data, report, err := flow.Compile(source, books.Vocabulary())
	require.NoError(t, err)
	assert.Equal(t, []flow.NodeSize{
		{"event", 1, 24 + 4 + 8 + 4*4, 0}, {"branch", 1, 12 + 8 + 8 + 2*8, 0},
		{"delay", 2, 2*(12+4+8) + 8, 8},
		{"sequence", 1, 12 + 12 + 2*8 + 2*8, 4}, {"action", 2, 2*(12+12) + 4*8 + 8 + 8 + 4*4, 0},
	}, report.Nodes)
	sum := 0
	for _, n := range report.Nodes {
		sum += n.Static
	}
	assert.Equal(t, sum, report.Static)
	assert.Equal(t, len(data), report.Blob)
	assert.Equal(t, 12, report.Values)
	assert.Equal(t, 8+12+12, report.Data)
}

// TestSizeIsEnough: at each alignment of the scope a graph takes at most Size, and at one alignment
// exactly Size.
func TestSizeIsEnough(t *testing.T) {
	s := openScope(t)
	data, _, err := flow.Compile(everything(), books.Vocabulary())
	require.NoError(t, err)
	for _, instances := range []int{0, 3} {
		size, err := flow.Size(data, scratch(data), instances)
		require.NoError(t, err)
		var most uint64
		for shift := range 64 {
			inner := s.Open("level")
			inner.BytesUnzeroed(64+shift, 64)
			free := inner.Free()
			g, err := books.Load(inner, data, scratch(data))
			require.NoError(t, err)
			g.Instances(instances)
			most = max(most, free-inner.Free())
			require.NoError(t, inner.Close())
		}
		assert.EqualValues(t, size, most)
	}
}

// TestClones: 10,000 instances take one blob, and exactly the bytes of their data and the pool's
// tables.
func TestClones(t *testing.T) {
	const n = 10_000
	s := openScope(t)
	data, report, err := flow.Compile(everything(), books.Vocabulary())
	require.NoError(t, err)
	one, err := flow.Size(data, scratch(data), 0)
	require.NoError(t, err)
	all, err := flow.Size(data, scratch(data), n)
	require.NoError(t, err)
	const header, books9 = 64, 9 * n
	assert.Equal(t, one+header+books9+n*report.Data+64-8, all)
	assert.Less(t, one, len(data)+64)
	free := s.Free()
	g, err := books.Load(s, data, scratch(data))
	require.NoError(t, err)
	g.Instances(n)
	assert.InDelta(t, all, free-s.Free(), 63, "the alignment")
	var list []flow.Instance
	for range n {
		i := g.New()
		require.True(t, g.Live(i))
		list = append(list, i)
	}
	assert.Zero(t, g.New())
	assert.Equal(t, report.Data, g.Data())
	r := books.NewRunner(s, &book{}, 100)
	r.Begin()
	for _, n := range g.Source().Nodes {
		if n.Type == "event" {
			_ = near.Fire(r, g, list[1], n.Key, values{B: true, D: 1<<64 - 1, A: -1, C: 3})
		}
	}
	r.End()
	assert.NotEqual(t, flow.DataOf(g, list[0]), flow.DataOf(g, list[1]))
	assert.Equal(t, flow.DataOf(g, list[0]), flow.DataOf(g, list[2]), "instances are apart")
	g.Free(list[1])
	assert.False(t, g.Live(list[1]))
	again := g.New()
	assert.NotEqual(t, list[1], again)
	assert.Equal(t, flow.DataOf(g, list[0]), flow.DataOf(g, again), "a copy of the template")
}

// TestSend: the level runs a unit's send before the links of the send.
func TestSend(t *testing.T) {
	s := openScope(t)
	a := func(n int) []flow.Input { return []flow.Input{{Name: "a", Constant: n}} }
	level := load(t, s, flow.Source{Name: "level",
		Variables: []flow.Variable{{Name: "who", Type: flow.Handle}}, Nodes: []flow.Node{
			{Name: "died", Type: "event", Of: "far", Key: 4,
				Out: []flow.Output{{Name: "d", Variable: "who"}}, List: then("one", "two")},
			{Name: "one", Type: "action", Of: "note", In: append(a(1),
				flow.Input{Name: "d", Variable: "who"})},
			{Name: "two", Type: "action", Of: "note", In: a(2)},
		}}, 1)
	unit := load(t, s, flow.Source{Name: "unit",
		Variables: []flow.Variable{{Name: "me", Type: flow.Handle}}, Nodes: []flow.Node{
			{Name: "hurt", Type: "event", Of: "near", Out: []flow.Output{{Name: "d", Variable: "me"}},
				List: then("die", "last")},
			{Name: "die", Type: "send", Of: "far", In: []flow.Input{{Name: "key", Constant: 4},
				{Name: "d", Variable: "me"}}, List: then("first")},
			{Name: "first", Type: "action", Of: "note", In: a(3)},
			{Name: "last", Type: "action", Of: "note", In: a(4)},
		}}, 2)
	w := &book{}
	r := books.NewRunner(s, w, 100)
	frog := unit.New()
	hurt := func() []string {
		w.lines = nil
		r.Begin()
		require.NoError(t, near.Fire(r, unit, frog, 0, values{D: 77}))
		r.End()
		return w.lines
	}
	assert.Equal(t, []string{"3 false 0 0", "4 false 0 0"}, hurt(), "no level yet")
	main := level.New()
	r.SendTo(level, main)
	both := []string{"1 false 0 77", "2 false 0 0", "3 false 0 0", "4 false 0 0"}
	assert.Equal(t, both, hurt())
	var steps []string
	r.Trace(func(step flow.Step) {
		steps = append(steps, step.Graph.Name()+" "+step.Graph.Source().Nodes[step.Node].Name)
	})
	assert.Equal(t, both, hurt())
	assert.Equal(t, []string{"unit hurt", "unit die", "level one", "level two", "unit first",
		"unit last"}, steps)
	level.Free(main)
	assert.Equal(t, both[2:], hurt(), "the level's is gone")
}

// TestFreeOfSender: an instance that is freed while the level runs its send ends there.
func TestFreeOfSender(t *testing.T) {
	s := openScope(t)
	g := load(t, s, flow.Source{Name: "pond", Nodes: []flow.Node{
		{Name: "hurt", Type: "event", Of: "near", List: then("die", "tell")},
		{Name: "wait", Type: "event", Of: "near", Key: 1, List: then("delay", "delay too")},
		{Name: "delay", Type: "delay", In: []flow.Input{{Name: "ticks", Constant: 1}}, List: then("die")},
		{Name: "delay too", Type: "delay", In: []flow.Input{{Name: "ticks", Constant: 1}},
			List: then("tell")},
		{Name: "die", Type: "send", Of: "far", List: then("tell")},
		{Name: "died", Type: "event", Of: "far", List: then("do")},
		{Name: "do", Type: "action", Of: "do"},
		{Name: "tell", Type: "action", Of: "note"},
	}}, 2)
	w := &book{}
	r := books.NewRunner(s, w, 10)
	r.SendTo(g, g.New())
	i := g.New()
	w.inner = func() { g.Free(i) }
	r.Begin()
	require.NoError(t, near.Fire(r, g, i, 0, values{}))
	assert.Empty(t, w.lines)
	i = g.New()
	require.NoError(t, near.Fire(r, g, i, 1, values{}))
	require.NoError(t, r.Tick(g))
	assert.Empty(t, w.lines)
	assert.False(t, g.Live(i))
	r.End()
}

// TestCycle: an event that never ends returns an error, and the next one runs.
func TestCycle(t *testing.T) {
	s := openScope(t)
	g := load(t, s, flow.Source{Name: "mill", Nodes: []flow.Node{
		{Name: "start", Type: "event", Of: "near", List: then("tell")},
		{Name: "tell", Type: "action", Of: "note", List: then("round", "round")},
		{Name: "round", Type: "branch", List: []flow.List{to("else", "tell", "round")}},
		{Name: "other", Type: "event", Of: "far", List: then("wait")},
		{Name: "wait", Type: "delay", In: []flow.Input{{Name: "ticks", Constant: 1}}, List: then("tell")},
	}}, 2)
	w := &book{}
	r := books.NewRunner(s, w, 1000)
	i, j := g.New(), g.New()
	r.Begin()
	defer r.End()
	err := near.Fire(r, g, i, 0, values{})
	assert.EqualError(t, err,
		`flow: graph "mill": "start": no end after 1000 steps; node "tell" is next: is it in a cycle?`)
	var steps *flow.StepsError
	require.ErrorAs(t, err, &steps)
	assert.Equal(t, &flow.StepsError{Graph: "mill", Began: "start", Node: "tell", Steps: 1000}, steps)
	assert.NotEmpty(t, w.lines)
	for _, i := range []flow.Instance{i, j} {
		require.NoError(t, far.Fire(r, g, i, 0, values{}))
	}
	err = r.Tick(g)
	require.ErrorAs(t, err, &steps)
	assert.Equal(t, "wait", steps.Began)
	require.NoError(t, r.Tick(g))
	require.NoError(t, near.Fire(r, g, i, 7, values{}), "nobody hears it")
}

// TestTickAfterCycle: after steps run out in the level, the unit's other delays run in the unit.
func TestTickAfterCycle(t *testing.T) {
	s := openScope(t)
	level := load(t, s, flow.Source{Name: "level", Nodes: []flow.Node{
		{Name: "mill", Type: "event", Of: "far", List: then("round")},
		{Name: "round", Type: "branch", List: []flow.List{to("else", "round")}},
	}}, 1)
	one := []flow.Input{{Name: "ticks", Constant: 1}}
	a := flow.Variable{Name: "a", Type: flow.Int}
	unit := load(t, s, flow.Source{Name: "unit", Variables: []flow.Variable{a}, Nodes: []flow.Node{
		{Name: "start", Type: "event", Of: "near", List: then("first", "second")},
		{Name: "first", Type: "delay", In: one, List: then("send")},
		{Name: "second", Type: "delay", In: one, List: then("add")},
		{Name: "send", Type: "send", Of: "far"},
		{Name: "add", Type: "add", In: []flow.Input{{Name: "value", Constant: 1}},
			Out: []flow.Output{{Name: "to", Variable: "a"}}},
	}}, 2)
	r := books.NewRunner(s, &book{}, 10)
	main, i, j := level.New(), unit.New(), unit.New()
	r.SendTo(level, main)
	r.Begin()
	require.NoError(t, near.Fire(r, unit, i, 0, values{}))
	require.NoError(t, near.Fire(r, unit, j, 0, values{}))
	assert.EqualError(t, r.Tick(unit),
		`flow: graph "unit": "first": no end after 10 steps; node "round" is next: is it in a cycle?`)
	r.End()
	assert.Equal(t, []any{int32(1), int32(1)}, []any{unit.Value(i, 0), unit.Value(j, 0)})
	for _, i := range []flow.Instance{i, j} {
		unit.Free(i)
	}
	level.Free(main)
}

// TestNothingElse: an event or a tick allocates nothing on the Go heap and calls no C.
func TestNothingElse(t *testing.T) {
	s := openScope(t)
	w := &quiet{}
	r := quietHost.NewRunner(s, w, 1000)
	data := compile(t, everything())
	g, err := quietHost.Load(s, data, scratch(data))
	require.NoError(t, err)
	g.Instances(100)
	level := g.New()
	r.SendTo(g, level)
	var keys []int32
	for _, n := range g.Source().Nodes {
		if n.Type == "event" {
			keys = append(keys, n.Key)
		}
	}
	round := func() {
		r.Begin()
		i := g.New()
		for _, key := range keys {
			err1 := quietNear.Fire(r, g, i, key, values{B: true, D: 9, A: 3, C: 1})
			err2 := quietFar.Fire(r, g, i, key, values{B: true, D: 9, A: 3, C: 1})
			if err1 != nil || err2 != nil {
				panic("a cycle") // an error allocates
			}
		}
		if err := r.Tick(g); err != nil {
			panic(err)
		}
		g.Free(i)
		r.End()
	}
	round()
	if !arena_c.Crossing {
		before := runtime.NumCgoCall()
		round()
		assert.Zero(t, runtime.NumCgoCall()-before)
	}
	if !arena_c.Race && !arena_c.Asan {
		assert.Zero(t, testing.AllocsPerRun(100, round))
	}
	assert.NotZero(t, w.notes)
}

type quiet struct{ notes int }

var (
	quietHost = flow.NewHost[quiet]()
	quietNear = flow.NewEvent[values](quietHost, "near")
	quietFar  = flow.NewEvent[values](quietHost, "far")
	_         = flow.NewAction(quietHost, "note", func(_ *flow.Runner, w *quiet,
		_ *note) {
		w.notes++
	})
	_ = flow.NewAction(quietHost, "ask", func(r *flow.Runner, _ *quiet,
		p *ask) {
		p.Y.Set(r, true)
	})
)
