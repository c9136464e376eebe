package fight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/others/row"
	"github.com/upfront-mem/upfront/tests/step"
)

// release is false in builds whose instruments allocate.
const release = !arena_c.Checked && !arena_c.Asan && !arena_c.Race

// threads is enough for two threads that Go starts; it allocates 5,576 bytes for one.
const threads = 16 << 10

func open(t testing.TB) *regional {
	t.Helper()
	g, err := openRegion(regionSize)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.b.Close()) })
	return g
}

// TestBothPlayTheSame: the two programs are one game.
func TestBothPlayTheSame(t *testing.T) {
	a, b := newHand(), open(t)
	for frame := range uint64(10000) {
		in := [2]Input{input(0, frame), input(1, frame)}
		a.step(in)
		b.step(in)
		require.Equal(t, a.seen(), b.seen(), "frame %d", frame)
	}
	assert.NotEmpty(t, a.rounds, "the game ends no round")
	assert.Positive(t, a.fighters[0].Supers+a.fighters[1].Supers)
	b.Shake++
	assert.NotEqual(t, a.seen(), b.seen())
}

// parts returns the first frame at which a session's sum differs from that of straight play, or in
// which the session panics. It returns -1 if there is none.
func parts(t testing.TB, a, b fight, frames uint64) (bad int) {
	t.Helper()
	sums := make([]uint64, 0, frames)
	require.NoError(t, straight(a, frames, func(frame uint64) error {
		sum, err := a.sum(frame)
		sums = append(sums, sum)
		return err
	}))
	last := 0
	defer func() {
		if recover() != nil {
			bad = last
		}
	}()
	differs := errors.New("it differs")
	err := session(b, frames, func(frame uint64) error {
		last = int(frame)
		if sum, err := b.sum(frame); err != nil || sum != sums[frame] {
			return errors.Join(err, differs)
		}
		return nil
	})
	if err != nil {
		require.Equal(t, differs.Error(), err.Error())
		return last
	}
	return -1
}

// TestSessionsEqualStraightPlay: a session that guesses wrong and goes back in each frame has the
// sums of a machine that never does. A restore that does nothing shows at once.
func TestSessionsEqualStraightPlay(t *testing.T) {
	assert.Equal(t, -1, parts(t, &byHand{hand: newHand()}, &byHand{hand: newHand()}, 3000))
	assert.Equal(t, -1, parts(t, open(t), open(t), 3000))
	assert.Positive(t, parts(t, open(t), stuck{open(t)}, 100))
}

// stuck never goes back.
type stuck struct{ *regional }

func (stuck) restore(uint64) error { return nil }

// forgetful is a game by hand whose clone forgets a field: it shares that field's memory with the
// original.
type forgetful struct {
	*byHand
	forget func(to, from *hand)
}

func (g forgetful) take(frame uint64) error {
	err := g.byHand.take(frame)
	g.forget(g.past[frame%8], g.hand)
	return err
}

func (g forgetful) restore(frame uint64) error {
	err := g.byHand.restore(frame)
	g.forget(g.hand, g.past[frame%8])
	return err
}

// fields are the lines of the clone, and how each is forgotten.
var fields = map[string]func(to, from *hand){
	"shots":  func(to, from *hand) { to.shots = from.shots },
	"sparks": func(to, from *hand) { to.sparks = from.sparks },
	"props":  func(to, from *hand) { to.props = from.props },
	"events": func(to, from *hand) { to.events = from.events },
	"rounds": func(to, from *hand) { to.rounds = from.rounds },
	"path": func(to, from *hand) {
		for i := range to.shots {
			to.shots[i].path = from.shots[i].path
		}
	},
	"inputs":  of(func(to, from *handFighter) { to.inputs = from.inputs }),
	"combo":   of(func(to, from *handFighter) { to.combo = from.combo }),
	"buffs":   of(func(to, from *handFighter) { to.buffs = from.buffs }),
	"trail":   of(func(to, from *handFighter) { to.trail = from.trail }),
	"targets": of(func(to, from *handFighter) { to.targets = from.targets }),
	"last":    of(func(to, from *handFighter) { to.last = from.last }),
}

func of(forget func(to, from *handFighter)) func(to, from *hand) {
	return func(to, from *hand) {
		for i := range to.fighters {
			forget(to.fighters[i], from.fighters[i])
		}
	}
}

// TestForgottenFields: if a clone by hand forgets a field, a test of synchrony with wrong guesses
// in each frame finds the fault in the first frames, late, or after minutes of play.
func TestForgottenFields(t *testing.T) {
	found := map[string]int{}
	for name, forget := range fields {
		found[name] = parts(t, &byHand{hand: newHand()}, forgetful{&byHand{hand: newHand()}, forget}, 3000)
	}
	for _, name := range slices.SortedFunc(maps.Keys(found), func(a, b string) int { return found[a] - found[b] }) {
		t.Logf("%-8s first differs in frame %d", name, found[name])
	}
	soon, late, never := 0, 0, 0
	for _, frame := range found {
		switch {
		case frame < 0:
			never++
		case frame < 100:
			soon++
		case frame > 800:
			late++
		}
	}
	assert.Equal(t, [...]int{7, 4, 1}, [...]int{soon, late, never})
}

// TestForgottenForMinutes: the 17th round takes the first one's place, in memory that the clones
// share if rounds is forgotten. The fault shows then, and not before.
func TestForgottenForMinutes(t *testing.T) {
	step.Needs(t, step.Gate)
	forgets := forgetful{&byHand{hand: newHand()}, fields["rounds"]}
	frame := parts(t, &byHand{hand: newHand()}, forgets, 40000)
	t.Logf("rounds first differs in frame %d", frame)
	assert.Greater(t, frame, 20000)
	assert.Equal(t, -1, parts(t, &byHand{hand: newHand()}, &byHand{hand: newHand()}, 40000), "the control")
}

// TestTheRegionForgetsNothing: each number of the state, in arrays, pools and containers, is in the
// hash, and a Restore brings it back. The numbers are found by reflection, so a new field is tried,
// too.
func TestTheRegionForgetsNothing(t *testing.T) {
	g := open(t)
	for frame := uint64(0); g.shots.Live() == 0 || g.sparks.Live() == 0 || g.buffs[0].Len() == 0 ||
		g.trails[0].Len() == 0 || g.events.Len() == 0 || g.combos[0].Len() == 0; frame++ {
		g.step([2]Input{input(0, frame), input(1, frame)})
		for i := range g.fighters { // so that all lists have values at once
			f := &g.fighters[i]
			f.Meter, f.Timers[Cooldown], f.Health = 1000, 0, f.Health-1
		}
		require.Less(t, frame, uint64(100000))
	}
	require.NoError(t, g.take(1))
	hash := func(frame uint64) uint64 {
		h, err := g.sum(frame)
		require.NoError(t, err)
		return h
	}
	tried := 0
	try := func(what string, change func()) {
		change()
		require.NoError(t, g.take(2))
		assert.NotEqual(t, hash(1), hash(2), what)
		require.NoError(t, g.restore(1))
		require.NoError(t, g.take(2))
		assert.Equal(t, hash(1), hash(2), what)
		tried++
	}
	numbers(reflect.ValueOf(g.state), "state", func(path string, v reflect.Value) {
		try(path, func() { flip(v) })
	})
	assert.Greater(t, tried, 400)
	for handle, s := range g.shots.All() {
		numbers(reflect.ValueOf(s), "shot", func(path string, v reflect.Value) { try(path, func() { flip(v) }) })
		try("a shot", func() { g.shots.Put(handle) })
		break
	}
	for _, s := range g.sparks.All() {
		numbers(reflect.ValueOf(s), "spark", func(path string, v reflect.Value) { try(path, func() { flip(v) }) })
		try("a spark", func() { g.sparks.Put(s) })
		break
	}
	try("a shot", func() { g.shots.Get() })
	try("a spark", func() { g.sparks.Get() })
	try("events", func() { g.events.At(0).At++ })
	try("events", func() { g.events.Clear() })
	try("rounds", func() { g.rounds.Push(Round{}) })
	for i := range g.combos {
		try("combo", func() { g.combos[i].Push(Hit{}) })
		try("buffs", func() { g.buffs[i].Push(Buff{}) })
		try("trail", func() { g.trails[i].PushFront(Point{}) })
	}
	try("combo", func() { g.combos[0].At(0).Damage++ })
	try("buffs", func() { g.buffs[0].At(0).Left++ })
	try("trail", func() { g.trails[0].At(0).Y++ })
}

// numbers calls visit for each number that v leads to.
func numbers(v reflect.Value, path string, visit func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		numbers(v.Elem(), path, visit)
	case reflect.Array:
		for i := range v.Len() {
			numbers(v.Index(i), fmt.Sprintf("%s[%d]", path, i), visit)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Field(i)
			if !f.CanSet() { // a field that another package couldn't write
				f = reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
			}
			numbers(f, path+"."+v.Type().Field(i).Name, visit)
		}
	default:
		visit(path, v)
	}
}

func flip(v reflect.Value) {
	if v.CanInt() {
		v.SetInt(^v.Int())
	} else {
		v.SetUint(^v.Uint())
	}
}

// TestSameBytesEverywhere: the hash is equal in each build and on each machine.
func TestSameBytesEverywhere(t *testing.T) {
	g := open(t)
	require.NoError(t, session(g, 1000, func(uint64) error { return nil }))
	hash, err := g.sum(1000)
	require.NoError(t, err)
	assert.Equal(t, uint64(0x3c07228eaa599d43), hash)
}

// TestFigures: the figures of the package comment.
func TestFigures(t *testing.T) {
	count := 0
	numbers(reflect.ValueOf(&Fighter{}), "", func(string, reflect.Value) { count += 2 })
	numbers(reflect.ValueOf(&Match{}), "", func(string, reflect.Value) { count++ })
	assert.Equal(t, 300, count, "numbers of two fighters and a match")
	assert.Equal(t, 7, ours())
	assert.Equal(t, 82, lines(cloneCode))
	assert.Len(t, fields, 12)
	g := open(t)
	assert.Equal(t, 9792, g.ring.Size())
}

// TestNoGarbage: a session makes no Go allocation.
func TestNoGarbage(t *testing.T) {
	games := []*regional{open(t), open(t)}
	allocations := testing.AllocsPerRun(1, func() {
		g := games[0]
		games = games[1:]
		assert.NoError(t, session(g, 200, func(frame uint64) error {
			_, err := g.sum(frame)
			return err
		}))
	})
	if release {
		assert.Zero(t, allocations)
	}
}

// TestBounds: a full pool and a full list refuse, play goes on, and the error of a region that is
// too small has its size.
func TestBounds(t *testing.T) {
	g := open(t)
	for range mostShots {
		s, _ := g.shots.Get()
		require.NotNil(t, s)
	}
	s, none := g.shots.Get()
	require.Nil(t, s)
	require.Nil(t, g.shots.At(none))
	for range mostRounds {
		require.True(t, g.rounds.Push(Round{}))
	}
	g.Clock = 1
	g.step([2]Input{})
	assert.Equal(t, 1, g.rounds.Len(), "a new page of rounds")
	_, err := openRegion(regionSize / 2)
	require.ErrorContains(t, err, "raise regions[0].size in the plan to ")
	for frame := range uint64(9) {
		require.NoError(t, g.take(frame))
	}
	require.ErrorContains(t, g.restore(0), "it holds: 1 2 3 4 5 6 7 8")
}

// TestPrograms: the two programs end with the same fight, and only the clones make garbage.
func TestPrograms(t *testing.T) {
	for _, p := range Programs() {
		m := &row.Meter{}
		require.NoError(t, p.Run(context.Background(), m, true), p.Name)
		require.NotEmpty(t, m.Row.Bound)
	}
	region, hand := &row.Meter{}, &row.Meter{}
	a, b := open(t), &byHand{hand: newHand()}
	require.NoError(t, measure(region, a, 300))
	require.NoError(t, measure(hand, b, 300))
	assert.Equal(t, a.seen(), b.seen())
	if release {
		assert.Less(t, region.Row.Garbage, uint64(threads))
	}
	assert.Greater(t, hand.Row.Garbage, uint64(1<<20))
}
