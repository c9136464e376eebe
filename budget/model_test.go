package budget_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// modelScope is what a scope must finalize.
type modelScope struct {
	ids  []int64
	full bool // a Try... met a full that nobody asked for
}

// modelStack is a plain model of an arena: open scopes with what they must finalize, and temporaries.
type modelStack struct {
	scopes []modelScope
	temp   modelScope
	tempOf int
}

func (m *modelStack) top() *modelScope { return &m.scopes[len(m.scopes)-1] }
func (m *modelStack) open()            { m.scopes = append(m.scopes, modelScope{}) }

func (m *modelStack) full() bool {
	return m.temp.full || slices.ContainsFunc(m.scopes, func(s modelScope) bool { return s.full })
}

// program is a random one: it does each thing to the budget and to the model, which says what must have run.
type program struct {
	t       *testing.T
	b       *budget.Budget
	random  *rand.Rand
	regions [3]modelStack
	loaded  [3]budget.Loaded[frog]
	alive   [3]bool
	frame   [2]modelStack
	turn    int
	pads    [2]modelStack
	tops    [2][]scope.Scope
	want    []int64
	id      int64
	fails   map[int64]bool
	log     []string

	loads, panics, exits int // that happened: a program that does nothing proves nothing
}

var regionNames = [3]string{"init", "systems", "level"}

func (p *program) chance(n int) bool { return p.random.IntN(n) == 0 }

func (p *program) say(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

// run says that the model's finalizers run now, newest first; whether one of them fails.
func (p *program) run(s *modelScope) (fails bool) {
	for _, id := range slices.Backward(s.ids) {
		p.want = append(p.want, id)
		fails = fails || p.fails[id]
	}
	*s = modelScope{}
	return fails
}

func (p *program) closeTo(m *modelStack, depth int) (fails bool) {
	for len(m.scopes) > depth {
		if m.tempOf == len(m.scopes) {
			fails = p.closeTemp(m) || fails
		}
		fails = p.run(m.top()) || fails
		m.scopes = m.scopes[:len(m.scopes)-1]
	}
	return fails
}

func (p *program) closeTemp(m *modelStack) bool {
	m.tempOf = 0
	return p.run(&m.temp)
}

func (p *program) emptyFrom(index int) (fails bool) {
	for i := 2; i >= index; i-- {
		p.alive[i] = false
		fails = p.closeTo(&p.regions[i], 0) || fails
	}
	return fails
}

// check compares everything that can be seen from outside.
func (p *program) check() {
	p.t.Helper()
	require.Equal(p.t, p.want, ran, "what ran, in order: %q", p.log)
	require.NoError(p.t, p.b.CheckAll(), "%q", p.log)
	r := p.b.Report()
	var finalizers uint64
	for _, x := range slices.Concat(r.Regions, r.Beside) {
		finalizers += x.Finalizers
		require.Equal(p.t, x.Size, x.Used+x.Free)
	}
	require.EqualValues(p.t, len(p.want), finalizers)
	for i := range p.loaded {
		require.Equal(p.t, p.alive[i], p.loaded[i].Get() != nil, "%s: %q", regionNames[i], p.log)
		if len(p.regions[i].scopes) == 0 {
			require.Zero(p.t, r.Regions[i].Used, "%s: %q", regionNames[i], p.log)
		}
	}
	for i := range p.pads {
		require.Equal(p.t, len(p.pads[i].scopes), p.b.Pad(i, 0).Depth(), "%q", p.log)
	}
}

// make makes one thing with a finalizer, of any kind, that fails now and then.
func (p *program) make(s scope.Scope, m *modelScope) {
	p.id++
	id, do := p.id, int64(0)
	if p.chance(8) {
		do = 1 + p.random.Int64N(2)
		p.fails[id] = true
	}
	m.ids = append(m.ids, id)
	switch p.random.IntN(4) {
	case 0:
		newMark(s, id, do)
	case 1:
		_, err := marks.Make(s, func(m *mark) error { m.ID, m.Do = id, do; return nil })
		require.NoError(p.t, err)
	case 2:
		delete(p.fails, id)
		s.Own(&closer{id})
	default:
		s.Defer(func() {
			ran = append(ran, id)
			if do != 0 {
				panic("deferred")
			}
		})
	}
}

// inScope does one thing to the topmost scope of an arena.
func (p *program) inScope(s scope.Scope, m *modelStack) {
	switch p.random.IntN(6) {
	case 0, 1:
		p.make(s, m.top())
	case 2:
		if m.tempOf == 0 {
			m.tempOf = len(m.scopes)
		}
		p.make(s.Temp(), &m.temp)
	case 3:
		frogs.Slice(s, p.random.IntN(50))
	case 4:
		if p.chance(12) {
			m.top().full = true
			require.Nil(p.t, frogs.TrySlice(s, 1<<20))
		}
	default:
		s.Temp().Bytes(p.random.IntN(3000))
		if m.tempOf == 0 {
			m.tempOf = len(m.scopes)
		}
	}
}

func newProgram(t *testing.T, seed uint64) *program {
	plan := small()
	plan.Limits.Held = 1000
	for i := range plan.Regions {
		plan.Regions[i].Size = 512 * budget.KiB
	}
	plan.Frame.Size, plan.Pads.Size = 512*budget.KiB, 512*budget.KiB
	p := &program{t: t, b: open(t, plan), random: rand.New(rand.NewPCG(seed, 1)), fails: map[int64]bool{}}
	p.frame[0].open()
	return p
}

// step does one thing at play.
func (p *program) step() {
	switch p.random.IntN(8) {
	case 0, 1, 2:
		index := p.random.IntN(3)
		p.say("load %s", regionNames[index])
		p.loads++
		panics, exits := p.panics, p.exits
		o := attempt(func() error { _ = p.load(index, p.b.Region(regionNames[index])); return nil })
		require.False(p.t, o.panicked != nil && p.panics == panics || o.exited && p.exits == exits, "%v: %q", o, p.log)
	case 3:
		index := p.random.IntN(3)
		p.say("rewind %s", regionNames[index])
		fails := p.emptyFrom(index)
		require.Equal(p.t, fails, p.b.Region(regionNames[index]).Rewind(background) != nil, "%q", p.log)
	case 4:
		p.say("turn")
		full := p.frame[p.turn].full()
		p.turn = 1 - p.turn
		fails := p.closeTo(&p.frame[p.turn], 0)
		p.frame[p.turn].open()
		err := p.b.NextFrame()
		require.Equal(p.t, fails || full, err != nil, "%q", p.log)
		require.Equal(p.t, full, errors.Is(err, budget.ErrFull), "%q", p.log)
	case 5:
		p.say("frame")
		p.inScope(p.b.Frame(), &p.frame[p.turn])
	default:
		p.pad(p.random.IntN(2))
	}
}

// pad opens a scope on a pad, or works in the topmost one, or closes it. A load that fails leaves it alone.
func (p *program) pad(index int) {
	m, pad := &p.pads[index], p.b.Pad(index, 0)
	if len(m.scopes) == 0 || len(m.scopes) < 6 && p.chance(4) {
		p.say("pad %d opens", index)
		p.tops[index] = append(p.tops[index][:len(m.scopes)], pad.Open(fmt.Sprint("at ", len(m.scopes))))
		m.open()
		return
	}
	top := p.tops[index][len(m.scopes)-1]
	if p.chance(2) {
		p.say("pad %d works", index)
		p.inScope(top, m)
		return
	}
	p.say("pad %d closes", index)
	p.close(top, m)
}

// close closes the topmost scope as its user does: what a Try... met there comes back.
func (p *program) close(s scope.Scope, m *modelStack) {
	full := m.top().full || m.tempOf == len(m.scopes) && m.temp.full
	fails := p.closeTo(m, len(m.scopes)-1)
	err := s.Close()
	require.Equal(p.t, fails || full, err != nil, "%q", p.log)
	require.Equal(p.t, full, errors.Is(err, budget.ErrFull), "%q", p.log)
}

func TestModel(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() || instrumented {
		seeds = 60
	}
	var loads, panics, exits, finalizers int
	for seed := range seeds {
		p := newProgram(t, seed)
		for range 60 {
			p.step()
			p.check()
			if t.Failed() {
				t.Fatalf("seed %d: %q", seed, p.log)
			}
		}
		p.emptyFrom(0)
		for _, m := range []*modelStack{&p.frame[0], &p.frame[1], &p.pads[0], &p.pads[1]} {
			p.closeTo(m, 0)
		}
		_ = p.b.Close()
		require.Equal(t, p.want, ran, "seed %d, at Close: %q", seed, p.log)
		loads, panics, exits, finalizers = loads+p.loads, panics+p.panics, exits+p.exits, finalizers+len(ran)
	}
	t.Logf("%d loads, %d panics, %d exits, %d finalizers", loads, panics, exits, finalizers)
	require.Positive(t, min(loads, panics, exits, finalizers), "programs that do nothing prove nothing")
}
