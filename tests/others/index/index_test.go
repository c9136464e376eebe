package index

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/others/row"
)

// release is false in builds whose instruments allocate.
const release = !arena_c.Checked && !arena_c.Asan && !arena_c.Race

// threads is enough for two threads that Go starts; it allocates 5,576 bytes for one.
const threads = 16 << 10

func open(t testing.TB, history bool) *regional {
	t.Helper()
	w, err := openRegion(history)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.close()) })
	return w
}

// model is the boxes of a tick, by number; its searches look at each.
type model map[uint32]Box

func (m model) near(area Box) (sum uint64) {
	for number, box := range m {
		if box.overlaps(area) {
			sum += uint64(number)
		}
	}
	return sum
}

// TestSearchesEqualAModel: in each tick of the ring a search finds the same boxes as a comparison
// with each box of that tick. An ID finds its box in the ticks in which it was in the grid.
func TestSearchesEqualAModel(t *testing.T) {
	w, r, ctx := open(t, true), rand.New(rand.NewPCG(1, 45)), context.Background()
	now, past := model{}, map[uint64]model{}
	area := func() Box {
		x, y, size := r.Int32N(side+200)-100, r.Int32N(side+200)-100, r.Int32N(1<<r.Int32N(16))
		return Box{x, y, x + size, y + size/2}
	}
	same := func(tick uint64, of model) {
		for range 40 {
			a := area()
			require.Equal(t, of.near(a), w.near(a), "tick %d: %v", tick, a)
		}
		for number := range uint32(200) {
			box, ok := w.grid.At(w.ids[number])
			of, live := of[number]
			require.Equal(t, live, ok, "tick %d: entity %d", tick, number)
			require.Equal(t, of, box)
		}
	}
	for tick := uint64(0); tick < 60; tick++ {
		for range 300 {
			number := r.Uint32N(600)
			box := place(number, r.Uint64())
			switch _, live := now[number]; {
			case !live:
				require.NoError(t, w.insert(number, box))
			case r.IntN(4) == 0:
				require.True(t, w.grid.Remove(w.ids[number]))
				require.False(t, w.grid.Remove(w.ids[number]), "twice")
				require.Error(t, w.move(number, box))
				delete(now, number)
				continue
			default:
				require.NoError(t, w.move(number, box))
			}
			now[number] = box
		}
		require.NoError(t, w.take(tick))
		past[tick] = model{}
		for number, box := range now {
			past[tick][number] = box
		}
		same(tick, now)
		back := tick - min(tick, r.Uint64N(ticks))
		require.NoError(t, w.ring.Restore(ctx, back))
		same(back, past[back])
		if r.IntN(3) != 0 { // else play goes on from the past
			require.NoError(t, w.ring.Restore(ctx, tick))
			same(tick, now)
			continue
		}
		now = model{}
		for number, box := range past[back] {
			now[number] = box
		}
	}
}

// TestRollbackEqualsStraightPlay: a machine that plays seven wrong ticks and goes back, each tick,
// has the hash of one that never did. One wrong tick that stays shows.
func TestRollbackEqualsStraightPlay(t *testing.T) {
	straight, back, ctx := open(t, true), open(t, true), context.Background()
	require.NoError(t, fill(straight))
	require.NoError(t, fill(back))
	step := func(w *regional, tick, input uint64) {
		t.Helper()
		_, err := play(w, tick+input)
		require.NoError(t, err)
		require.NoError(t, w.take(tick))
	}
	hash := func(w *regional, tick uint64) uint64 {
		h, err := w.ring.Hash(tick)
		require.NoError(t, err)
		return h
	}
	step(straight, 0, 0)
	step(back, 0, 0)
	for tick := uint64(1); tick < 9; tick++ {
		step(straight, tick, 0)
		for wrong := range uint64(3) {
			step(back, tick+wrong, 1000)
		}
		require.NoError(t, back.ring.Restore(ctx, tick-1))
		step(back, tick, 0)
		require.Equal(t, hash(straight, tick), hash(back, tick), "tick %d", tick)
	}
	step(straight, 9, 0)
	step(back, 9, 1000)
	require.NotEqual(t, hash(straight, 9), hash(back, 9))
	assert.Equal(t, uint64(0xed9fbbb78dec0977), hash(straight, 9), "the same in each build and on each machine")
}

// TestCosts: a tick with its snapshot and its looks back makes no Go allocation, the ring holds at
// most 1.3 times the bytes in use for each snapshot, and the plan has little more.
func TestCosts(t *testing.T) {
	w := open(t, true)
	require.NoError(t, fill(w))
	tick, shots := uint64(0), new([rays]shot)
	allocations := testing.AllocsPerRun(3, func() {
		if _, err := play(w, tick); err != nil {
			t.Error(err)
		}
		if err := w.take(tick); err != nil {
			t.Error(err)
		}
		if _, err := shoot(w, tick, shots); err != nil {
			t.Error(err)
		}
		tick++
	})
	if release {
		assert.Zero(t, allocations)
	}
	assert.LessOrEqual(t, float64(w.ring.Size()*(ticks+1)), 1.3*float64(ticks*w.inUse()))
	for _, b := range []*budget.Budget{w.b, open(t, false).b} {
		world := b.Report().Arenas[0]
		assert.Equal(t, "world", world.Name)
		assert.Less(t, world.Size-world.Used, uint64(64<<10), "the region has more than it needs")
	}
}

// TestBounds: each bound refuses with its number, and boxes at the world's edge fit.
func TestBounds(t *testing.T) {
	w := open(t, true)
	require.NoError(t, fill(w))
	_, err := w.grid.Insert(1, Box{})
	require.EqualError(t, err, "index: 20000 of 20000 boxes are in the grid; make it with a larger n")
	w.remove(7)
	require.NoError(t, w.insert(7, Box{}))
	for tick := range uint64(9) {
		require.NoError(t, w.take(tick))
	}
	require.EqualError(t, w.ring.Restore(context.Background(), 0), "save: region world: the ring of 8 doesn't hold "+
		"snapshot 0; make it larger in NewRing; it holds: 1 2 3 4 5 6 7 8")
	const most = side - 1
	for _, box := range []Box{{-1, 0, 0, 0}, {0, -1, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, reach + 1, 0},
		{0, 0, 0, reach + 1}, {most, 0, most + 1, 0}, {0, most, 0, most + 1}, {-1 << 31, 0, 1<<31 - 1, 0}} {
		require.ErrorContains(t, w.move(7, box), "outside the world", "%v", box)
		require.Equal(t, Box{}, w.at(7))
	}
	for _, box := range []Box{{0, 0, reach, reach}, {most, most, most, most}} {
		require.NoError(t, w.move(7, box))
	}
	_, err = w.grid.Insert(1, Box{1, 0, 0, 0})
	require.ErrorContains(t, err, "outside the world")
}

// TestForgedFiles: a file with a circle, an entity in a wrong cell, in no list or in two, or a free
// chunk in a list is refused. An honest one is read.
func TestForgedFiles(t *testing.T) {
	to := open(t, true)
	for text, forge := range map[string]func(g *Grid, e, last, dead *entity){
		"":                      func(*Grid, *entity, *entity, *entity) {},
		"has no end":            func(g *Grid, e, _, _ *entity) { e.next = arena.PtrTo(g.base, e) },
		"has the box":           func(_ *Grid, e, _, _ *entity) { e.cell ^= 1 },
		"in cell 0 has the box": func(_ *Grid, _, last, _ *entity) { last.box.MaxX = side },
		"isn't in the list":     func(g *Grid, e, _, _ *entity) { g.unlink(e) },
		"of cell 4095": func(_ *Grid, e, _, _ *entity) {
			e.box, e.cell = Box{side - 1, side - 1, side - 1, side - 1}, 4095
		},
		"20000 entities are in":     func(g *Grid, _, last, dead *entity) { last.next = arena.PtrTo(g.base, dead) },
		"in the list of cell 1":     func(g *Grid, e, last, _ *entity) { g.first[last.cell+1] = g.first[e.cell] },
		"snapshot 1: index: entity": func(_ *Grid, e, _, _ *entity) { e.box = Box{1, 1, 0, 0} },
	} {
		from := open(t, true)
		require.NoError(t, fill(from))
		g := from.grid
		dead := g.entities.At(from.ids[1])
		from.remove(1)
		last := g.first[0].Get(g.base)
		for !last.next.IsNil() {
			last = last.next.Get(g.base)
		}
		forge(g, g.entities.At(from.ids[0]), last, dead)
		require.NoError(t, from.take(1))
		var file bytes.Buffer
		require.NoError(t, from.ring.Write(&file, 1))
		_, err := to.ring.Read(&file)
		if text == "" {
			require.NoError(t, err)
			require.NoError(t, to.ring.Restore(context.Background(), 1))
			assert.Equal(t, from.near(Box{0, 0, side, side}), to.near(Box{0, 0, side, side}))
			continue
		}
		assert.ErrorContains(t, err, text)
	}
}

// TestPrograms: a game sees and hits the same in the region and in the tree, each with history. In
// a world without history the shots hit something else. Only the tree's history makes garbage.
func TestPrograms(t *testing.T) {
	var rows []row.Row
	var sums []uint64
	for _, open := range []func() (world, error){
		func() (world, error) { return openRegion(true) },
		func() (world, error) { return openRegion(false) },
		func() (world, error) { return openTree(true), nil },
	} {
		m := &row.Meter{}
		sum, err := run(m, true, open)
		require.NoError(t, err)
		require.NotEmpty(t, m.Row.Bound)
		rows, sums = append(rows, m.Row), append(sums, sum)
	}
	assert.Equal(t, sums[0], sums[2])
	assert.NotEqual(t, sums[0], sums[1])
	if release {
		assert.Less(t, rows[0].Garbage, uint64(threads))
		assert.Less(t, rows[1].Garbage, uint64(threads))
	}
	assert.Greater(t, rows[2].Garbage, uint64(1<<30))
}
