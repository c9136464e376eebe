package flow_test

import (
	"errors"
	"hash/crc32"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
)

// faulty is a source in which a good one was changed, and what is said to it.
var faulty = map[string]struct {
	change func(s *flow.Source)
	says   string
	part   string
}{
	"no type": {func(s *flow.Source) { s.Nodes[1].Type = "brunch" },
		`node "way": no node is a "brunch"`, "type"},
	"no name": {func(s *flow.Source) { s.Nodes[1].Name = "" },
		`node 1 is called "": each has a name`, "name"},
	"a name twice": {func(s *flow.Source) { s.Nodes[2].Name = "begin" }, `node 2 is called "begin"`,
		"name"},
	"a name of bits": {func(s *flow.Source) { s.Nodes[2].Name = "\xff" }, `node 2 is called "\xff"`,
		"name"},
	"dangling": {func(s *flow.Source) { s.Nodes[1].List = then("way", "far") },
		`node "way": then leads to "far", and no node is called so`, "then"},
	"no port": {func(s *flow.Source) { s.Nodes[0].List[0].Links[0].Port = "open" },
		`node "begin": then leads to "open" of node "way", and a branch has the ports ["in"]`, "then"},
	"to an event": {func(s *flow.Source) { s.Nodes[1].List = then("begin") },
		`then leads to "" of node "begin", and an event has the ports []`, "then"},
	"no list": {func(s *flow.Source) { s.Nodes[0].List[0].Name = "else" },
		`node "begin": an event has no list "else" of links`, "else"},
	"a list twice": {func(s *flow.Source) {
		s.Nodes[0].List = append(s.Nodes[0].List,
			s.Nodes[0].List[0])
	},
		`list "then" is there twice`, "then"},
	"a list that isn't next": {func(s *flow.Source) { s.Nodes[3].List[1].Name = "3" },
		`node "turns": a sequence has its lists "1" to "2", and none "3"`, "3"},
	"no input": {func(s *flow.Source) { s.Nodes[1].In[0].Name = "of" },
		`node "way": a branch has no input "of"`, "of"},
	"an input twice": {func(s *flow.Source) {
		s.Nodes[1].In = append(s.Nodes[1].In,
			s.Nodes[1].In[0])
	},
		`input "if" is there twice`, "if"},
	"no variable": {func(s *flow.Source) { s.Nodes[1].In[0].Variable = "y" },
		`node "way": if: no variable "y"`, "if"},
	"wrong variable": {func(s *flow.Source) { s.Nodes[1].In[0].Variable = "n" },
		`node "way": if is a bool, variable "n" is an int`, "if"},
	"wrong constant": {func(s *flow.Source) {
		s.Nodes[1].In[0] = flow.Input{Name: "if",
			Constant: 3}
	}, `node "way": if: 3 is no bool`, "if"},
	"variable and constant": {func(s *flow.Source) { s.Nodes[1].In[0].Constant = true },
		`if has a variable and a constant`, "if"},
	"a variable as state": {func(s *flow.Source) {
		s.Nodes[4] = flow.Node{Name: "ask", Type: "once", In: []flow.Input{{Name: "done", Variable: "b"}}}
	}, `node "ask": done is a constant bool`, "done"},
	"no output": {func(s *flow.Source) { s.Nodes[4].Out[0].Name = "a" },
		`node "ask": an action has no output "a"`, "a"},
	"wrong output": {func(s *flow.Source) { s.Nodes[4].Out[0].Variable = "b" },
		`node "ask": x is an int, variable "b" is a bool`, "x"},
	"two writers": {func(s *flow.Source) {
		s.Nodes = append(s.Nodes, flow.Node{Name: "ask too", Type: "action", Of: "ask",
			Out: s.Nodes[4].Out})
	}, `node "ask too": variable "n" is written by node "ask" already; only set and add share one`,
		"x"},
	"set beside a writer": {func(s *flow.Source) {
		s.Nodes = append(s.Nodes, flow.Node{Name: "set", Type: "set",
			Out: []flow.Output{{Name: "to", Variable: "n"}}})
	}, `node "set": variable "n" is written by node "ask" already`, "to"},
	"a writer beside set": {func(s *flow.Source) {
		s.Nodes = append([]flow.Node{{Name: "set", Type: "set",
			Out: []flow.Output{{Name: "to", Variable: "n"}}}}, s.Nodes...)
	}, `node "ask": variable "n" is written by node "set" already`, "x"},
	"set of nothing": {func(s *flow.Source) {
		s.Nodes = append(s.Nodes, flow.Node{Name: "set", Type: "set",
			In: []flow.Input{{Name: "value", Constant: 1}}})
	}, `node "set": a set writes to a variable`, "to"},
	"add of a bool": {func(s *flow.Source) {
		s.Nodes = append(s.Nodes, flow.Node{Name: "add", Type: "add",
			Out: []flow.Output{{Name: "to", Variable: "b"}}})
	}, `node "add": no add is one of bool`, "type"},
	"no action": {func(s *flow.Source) { s.Nodes[4].Of = "shout" },
		`node "ask": the host has no action "shout"`, "of"},
	"no event": {func(s *flow.Source) { s.Nodes[0].Of = "ask" },
		`node "begin": the host has no event "ask"`, "of"},
	"of something": {func(s *flow.Source) { s.Nodes[1].Of = "ask" },
		`node "way": a branch is of nothing, not of "ask"`, "of"},
	"a key": {func(s *flow.Source) { s.Nodes[1].Key = 3 },
		`node "way": only an event has a key`, "key"},
	"a key of an action": {func(s *flow.Source) { s.Nodes[4].Key = 3 },
		`node "ask": only an event has a key`, "key"},
	"a key of a send": {func(s *flow.Source) {
		s.Nodes[4] = flow.Node{Name: "ask", Type: "send", Of: "near", Key: 3}
	}, `node "ask": the key of a send is an input`, "key"},
	"an event twice": {func(s *flow.Source) {
		s.Nodes = append(s.Nodes, flow.Node{Name: "begin too", Type: "event", Of: "near", Key: 3})
	}, `node "begin too": node "begin" is the event "near" of 3 already`, "of"},
	"a variable twice": {func(s *flow.Source) { s.Variables[1].Name = "b" },
		`variable 1 is called "b"`, ""},
	"a variable no type": {func(s *flow.Source) { s.Variables[2].Type = 9 },
		`variable "x" has no type`, ""},
	"a wrong value": {func(s *flow.Source) { s.Variables[1].Value = 0.5 },
		`variable "n": 0.5 is no int`, ""},
	"a large value": {func(s *flow.Source) { s.Variables[1].Value = int64(1 << 31) },
		`variable "n": 2147483648 is no int`, ""},
	"a huge value": {func(s *flow.Source) { s.Variables[2].Value = 1e39 },
		`variable "x": 1e+39 is no number`, ""},
	"a graph of bits": {func(s *flow.Source) { s.Name = "\xff" }, `graph "\xff": a name is UTF-8`,
		"name"},
}

func good() flow.Source {
	return flow.Source{Name: "good",
		Variables: []flow.Variable{{Name: "b", Type: flow.Bool}, {Name: "n", Type: flow.Int},
			{Name: "x", Type: flow.Number}},
		Nodes: []flow.Node{
			{Name: "begin", Type: "event", Of: "near", Key: 3,
				Out: []flow.Output{{Name: "b", Variable: "b"}}, List: then("way")},
			{Name: "way", Type: "branch", In: []flow.Input{{Name: "if", Variable: "b"}},
				List: []flow.List{to("then", "ask"), to("else", "turns")}},
			{Name: "tell", Type: "action", Of: "note", In: []flow.Input{{Name: "a", Variable: "n"}}},
			{Name: "turns", Type: "sequence", List: []flow.List{to("1", "ask"), to("2", "tell")}},
			{Name: "ask", Type: "action", Of: "ask", Out: []flow.Output{{Name: "x", Variable: "n"}},
				List: then("tell")},
		}}
}

func TestFaults(t *testing.T) {
	compile(t, good())
	for name, c := range faulty {
		t.Run(name, func(t *testing.T) {
			source := good()
			c.change(&source)
			data, _, err := flow.Compile(source, books.Vocabulary())
			assert.Nil(t, data)
			assert.ErrorContains(t, err, c.says)
			assert.Contains(t, parts(t, err), c.part)
		})
	}
	all := good()
	faulty["dangling"].change(&all)
	faulty["no input"].change(&all)
	faulty["wrong output"].change(&all)
	faulty["a wrong value"].change(&all)
	_, _, err := flow.Compile(all, books.Vocabulary())
	assert.Equal(t, []string{"", "of", "then", "x"}, parts(t, err), "in the order of the source")
}

// TestTooLarge: an instance has a bound, beyond which pools would have fewer chunks than are asked for.
func TestTooLarge(t *testing.T) {
	if testing.Short() || arena_c.Race || arena_c.Asan {
		t.Skip("two million variables")
	}
	large := flow.Source{Name: "large"}
	for i := range 2<<20 + 1 {
		large.Variables = append(large.Variables, flow.Variable{Name: strconv.Itoa(i), Type: flow.Handle})
	}
	_, _, err := flow.Compile(large, books.Vocabulary())
	assert.EqualError(t, err, `flow: graph "large": an instance has 16777232 bytes, more than 16777216`)
}

// parts are those of the faults.
func parts(t *testing.T, err error) (parts []string) {
	var several interface{ Unwrap() []error }
	require.ErrorAs(t, err, &several)
	for _, err := range several.Unwrap() {
		var f *flow.Fault
		require.ErrorAs(t, err, &f)
		parts = append(parts, f.Part)
	}
	return parts
}

// TestThereAndBack: what a blob was compiled of is in it.
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

// TestSameBytes: what is compiled, and what it becomes in play, is the same on each target.
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

// TestClones: 10,000 instances are one blob, and exactly the bytes of their data beside the pool's
// books.
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
	assert.Equal(t, one+header+books9+n*report.Data, all)
	assert.Less(t, one, len(data)+64)
	free := s.Free()
	g, err := books.Load(s, data, scratch(data), n)
	require.NoError(t, err)
	assert.InDelta(t, all, free-s.Free(), 63, "what aligns it")
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

// TestSend: what a unit sends is done in the level before what follows the send.
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

// TestFreeOfSender: an instance that is freed where what it sent is done ends there.
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

// TestCycle: an event that never ends ends with an error, and the next one runs.
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
	assert.EqualError(t, err, `flow: graph "mill": "start": no end after 1000 steps; node "tell" is next: is it in a cycle?`)
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

// TestTickAfterCycle: when steps run out in the level, what else is due in the unit runs in the unit.
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

// TestNothingElse: play takes nothing from Go's heap and calls no C.
func TestNothingElse(t *testing.T) {
	s := openScope(t)
	w := &quiet{}
	r := quietHost.NewRunner(s, w, 1000)
	data := compile(t, everything())
	g, err := quietHost.Load(s, data, scratch(data), 100)
	require.NoError(t, err)
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
				panic("a cycle") // an error is on Go's heap
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

// TestMisuse: what a program must not do is refused, in words, and the runner goes on.
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
	assert.PanicsWithValue(t, `flow: BUG: Free of an instance of graph "pond" while it runs: free it when its event has returned`, fire)
	w.inner = func() { runtime.Goexit() }
	done := make(chan bool)
	go func() { defer close(done); fire() }()
	<-done
	w.inner = nil
	fire()

	inside, other := make(chan bool), make(chan any)
	w.inner = func() { close(inside); <-other }
	go func() {
		<-inside
		defer func() { other <- recover() }()
		fire()
	}()
	var wait sync.WaitGroup
	wait.Go(fire)
	wait.Wait()
	w.inner = nil
	r.End()

	g.Free(i)
	assert.PanicsWithValue(t, `flow: BUG: Free of an instance of graph "pond": put twice`,
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
	assert.PanicsWithValue(t, "flow: BUG: a runner with 0 steps", func() { books.NewRunner(s, w, 0) })
	assert.PanicsWithValue(t, "flow: BUG: a runner with 268435456 steps",
		func() { books.NewRunner(s, w, 1<<28) }, "its stack would wrap where an int has 32 bits")
	assert.PanicsWithValue(t, "flow: BUG: a graph with -1 instances",
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
			func() { h.Vocabulary() }, func() { _, _ = h.Load(s, nil, nil, 1) },
			func() { h.NewRunner(s, nil, 1) },
			func() { flow.NewEvent[values](&h, "e") },
			func() { flow.NewAction(&h, "a", func(*flow.Runner, *book, *note) {}) },
		},
		"flow: BUG: a zero Graph: Load of a Host makes one": {
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
}

// TestEnds: a graph and a runner are told that their scope has closed.
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

// TestHosts: what can't be declared stops the program; what a graph needs that a host hasn't is
// named.
func TestHosts(t *testing.T) {
	s := openScope(t)
	data := compile(t, good())
	load := func(h *flow.Host[book]) error {
		_, err := h.Load(s, data, scratch(data), 1)
		return err
	}
	h := flow.NewHost[book]()
	assert.EqualError(t, load(h), `flow: graph "good": the host has no action "note"`)
	flow.NewAction(h, "note", func(*flow.Runner, *book, *note) {})
	flow.NewAction(h, "ask", func(*flow.Runner, *book, *struct{ A flow.In[int32] }) {})
	assert.EqualError(t, load(h), `flow: graph "good": action "ask": the host has [a int], the graph [a int x out int y out bool z out number w out handle]`)
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
	says(`action "note": each has a name`,
		func() { flow.NewAction(h, "note", func(*flow.Runner, *book, *note) {}) })
	says(`a value may not be called key`, func() { flow.NewEvent[struct{ Key bool }](h, "x") })
	says(`event "": each has a name`, func() { flow.NewEvent[values](h, "") })
	says(`parameter "a": each has a name`, func() { flow.NewEvent[struct{ A, a int32 }](h, "x") })
	_, err := flow.HostOf(flow.Vocabulary{Events: []flow.Signature{{Name: "e",
		Parameters: []flow.Parameter{{"a", flow.Int, true}}}}})
	assert.EqualError(t, err, `flow: event "e", parameter "a": a out int`)
}

// TestTools: a graph runs without the program that it is of.
func TestTools(t *testing.T) {
	s := openScope(t)
	data := compile(t, good())
	_, vocabulary, err := flow.Decompile(data, scratch(data))
	require.NoError(t, err)
	h, err := flow.HostOf(vocabulary)
	require.NoError(t, err)
	g, err := h.Load(s, data, scratch(data), 1)
	require.NoError(t, err)
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

// TestCut: bytes that are no graph, or not all of one, are refused.
func TestCut(t *testing.T) {
	s := openScope(t)
	data := compile(t, good())
	for n := range len(data) {
		_, err := books.Load(s, data[:n], make([]byte, 1<<14), 1)
		require.Error(t, err)
	}
	type other struct{ Frogs int32 }
	others := blob.Of[other]()
	w := others.Writer(make([]byte, 256))
	foreign, err := w.Finish(blob.Put(w, other{}))
	require.NoError(t, err)
	_, err = books.Load(s, foreign, make([]byte, 1<<14), 1)
	assert.ErrorContains(t, err, `flow: blob: of other types: here "root", there "other"`)
}

// TestFull: a scope without room for a graph unwinds.
func TestFull(t *testing.T) {
	s := openScope(t)
	data := compile(t, good())
	err := s.Do("small", func(s scope.Scope) error {
		_, err := books.Load(s, data, scratch(data), 1<<20)
		return err
	})
	assert.True(t, errors.Is(err, scope.ErrFull))
	err = s.Do("smaller", func(s scope.Scope) error {
		_, err := books.Load(s, data, scratch(data), 1<<30)
		return err
	})
	assert.True(t, errors.Is(err, scope.ErrFull))
}
