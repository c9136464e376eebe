package save_test

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// looked is a state with all kinds of values that a View shows.
type looked struct {
	region budget.Region
	state  *save.State
	ring   *save.Ring
	hall   *hall
	lamps  []lamp
	nodes  []node
	actors scope.HandlePool[actor]
	flies  scope.Pool[fly]
	other  scope.Pool[fly] // after the state
	best   arena.Handle[actor]
	verify func(save.View) error
	asked  int
}

func newLooked(t testing.TB) *looked {
	b := open(t, twoRegions())
	l := &looked{region: b.Region("level")}
	base := l.region.Base()
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		byteMaker.Slice(s, 100)
		l.state, l.hall = save.Begin(l.region, s, hallMaker)
		l.actors, l.flies = actorMaker.HandlePool(s, 4), flyMaker.Pool(s, 4)
		l.lamps, l.nodes = lampMaker.Slice(s, 6), nodeMaker.Slice(s, 3)
		l.hall.Name = scope.StringOf(s, base, "ada")
		l.hall.Lamps, l.hall.First = arena.SliceOf(base, l.lamps), arena.PtrTo(base, &l.nodes[1])
		l.state.Verify(func(v save.View) error {
			l.asked++
			if l.verify == nil {
				return nil
			}
			return l.verify(v)
		})
		l.ring = save.NewRing(s, 3, l.state)
		l.other = flyMaker.Pool(s, 1)
	})
	for i := range l.lamps {
		l.lamps[i] = lamp{int16(i), 1}
	}
	l.nodes[1].Value = 5
	for range 3 {
		l.flies.Get()
		_, h := l.actors.Get()
		l.best = h
	}
	l.flies.Put(l.flies.At(1))
	l.flies.At(2).At = 22
	l.actors.At(l.best).Mode = 9
	l.hall.Best = l.best
	require.NoError(t, l.ring.Take(1))
	return l
}

// apply makes the ring take snapshot 1 from outside, after the state has changed.
func (l *looked) apply(t testing.TB) error {
	require.NoError(t, l.ring.Take(2))
	delta, err := l.ring.Delta(nil, 2, 1)
	require.NoError(t, err)
	_, err = l.ring.Apply(delta)
	return err
}

// TestView: a View shows the snapshot, not the current state.
func TestView(t *testing.T) {
	l := newLooked(t)
	l.hall.Tick, l.hall.Lamps, l.hall.First, l.hall.Name = 7, arena.Slice[lamp]{}, arena.Ptr[node]{},
		arena.String{}
	l.lamps[3].Level, l.nodes[1].Value = 70, 6
	l.actors.Put(l.best)
	_, again := l.actors.Get()
	l.flies.Put(l.flies.At(2))
	l.flies.Get().At = 33
	l.verify = func(v save.View) error {
		root := save.At(v, l.hall)
		assert.EqualValues(t, 0, root.Tick)
		assert.NotSame(t, l.hall, root)
		assert.Equal(t, "ada", save.GetString(v, root.Name))
		lamps := save.GetSlice(v, root.Lamps)
		assert.Equal(t, []lamp{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}}, lamps)
		assert.Equal(t, lamps, save.SliceAt(v, l.lamps))
		assert.Equal(t, lamps[2:4], save.SliceAt(v, l.lamps[2:4]))
		assert.Nil(t, save.SliceAt(v, l.lamps[:0]))
		assert.EqualValues(t, 5, real(save.Get(v, root.First).Value))
		assert.EqualValues(t, 5, real(save.At(v, &l.nodes[1]).Value))
		assert.Nil(t, save.Get(v, save.At(v, &l.nodes[1]).Next))
		assert.Nil(t, save.GetSlice(v, l.hall.Lamps), "nil")
		var places []int
		for i, f := range save.All(v, l.flies) {
			places = append(places, i)
			if i == 2 {
				assert.EqualValues(t, 22, f.At)
			}
		}
		assert.Equal(t, []int{0, 2}, places)
		for range save.All(v, l.flies) {
			break
		}
		var handles []arena.Handle[actor]
		for h, a := range save.AllHandles(v, l.actors) {
			handles = append(handles, h)
			if h == root.Best {
				assert.EqualValues(t, 9, a.Mode)
			}
		}
		assert.Len(t, handles, 3)
		for range save.AllHandles(v, l.actors) {
			break
		}
		assert.Contains(t, handles, l.best)
		assert.Contains(t, handles, root.Best)
		assert.NotContains(t, handles, again)
		return nil
	}
	require.NoError(t, l.apply(t))
	assert.Equal(t, 1, l.asked)
	assert.EqualValues(t, 33, l.flies.At(2).At)
}

// TestViewOfLinks: a link that leads elsewhere has no value in a View.
func TestViewOfLinks(t *testing.T) {
	l := newLooked(t)
	link := func(stored, count uint64) (s arena.Slice[lamp]) {
		*(*[2]uint64)(unsafe.Pointer(&s)) = [2]uint64{stored, count}
		return s
	}
	first := storedOf(l.region, l.hall)
	end := first + l.state.Size()&^3
	l.verify = func(v save.View) error {
		for _, nothing := range [][2]uint64{{0, 1}, {1, 1}, {first - 4, 2}, {end, 1}, {end - 4, 2},
			{first + 1, 1}, {1 << 40, 1}, {first, 1 << 62}, {1<<64 - 1, 1}, {first, 1 << 63}} {
			assert.Nil(t, save.GetSlice(v, link(nothing[0], nothing[1])), nothing)
		}
		assert.Len(t, save.GetSlice(v, link(end-4, 1)), 1)
		assert.Len(t, save.GetSlice(v, link(first, 2)), 2)
		return nil
	}
	require.NoError(t, l.apply(t))
	assert.Equal(t, 1, l.asked)
}

// TestVerifyRefuses: a function's error is the error of Apply and Read, and nothing changes.
func TestVerifyRefuses(t *testing.T) {
	l := newLooked(t)
	no := errors.New("a hall of no lamps")
	var file bytes.Buffer
	require.NoError(t, l.ring.Write(&file, 1))
	before := save.Image(l.ring, 1)
	l.hall.Tick++
	l.verify = func(save.View) error { return no }
	l.state.Verify(func(save.View) error { panic("it isn't asked any more") })
	err := l.apply(t)
	require.ErrorIs(t, err, no)
	require.EqualError(t, err, "save: a delta for region level, byte 64: it makes a state that this program can't "+
		"produce: region level, snapshot 1: a hall of no lamps")
	_, err = l.ring.Read(&file)
	require.ErrorIs(t, err, no)
	require.ErrorContains(t, err, "a state that this program can't produce: region level, snapshot 1: ")
	assert.Equal(t, 2, l.asked)
	assert.Equal(t, before, save.Image(l.ring, 1))
	assert.EqualValues(t, 1, l.hall.Tick)
	require.NoError(t, l.ring.Restore(background, 1), "Take made it: nobody is asked")
	assert.Equal(t, 2, l.asked)
}

// TestVerifyPanics: a function's panic reaches the program, and nothing changes.
func TestVerifyPanics(t *testing.T) {
	l := newLooked(t)
	before := save.Image(l.ring, 1)
	l.hall.Tick++
	var kept save.View
	l.verify = func(v save.View) error {
		kept = v
		panic("index out of range")
	}
	require.PanicsWithValue(t, "index out of range", func() { _ = l.apply(t) })
	assert.Equal(t, before, save.Image(l.ring, 1))
	const late = "save: BUG: a View is used outside of its function of State.Verify"
	require.PanicsWithValue(t, late, func() { save.At(kept, l.hall) })
	require.PanicsWithValue(t, late, func() { save.At(save.View{}, l.hall) })
	require.PanicsWithValue(t, late, func() {
		for range save.All(kept, l.flies) {
		}
	})
}

// TestViewMisuse: a value outside the state has no copy in a snapshot.
func TestViewMisuse(t *testing.T) {
	l := newLooked(t)
	var elsewhere hall
	l.verify = func(v save.View) error {
		const no = " isn't into the state of region level"
		require.PanicsWithValue(t, "save: BUG: At: the pointer"+no, func() { save.At(v, &elsewhere) })
		require.PanicsWithValue(t, "save: BUG: At: the pointer"+no, func() { save.At[hall](v, nil) })
		require.PanicsWithValue(t, "save: BUG: SliceAt: the pointer"+no, func() {
			save.SliceAt(v, unsafe.Slice(l.hall, 1000))
		})
		require.PanicsWithValue(t, "save: BUG: All: the pool isn't in the state of region level", func() {
			for range save.All(v, l.other) {
			}
		})
		require.PanicsWithValue(t, "save: BUG: AllHandles: the pool isn't in the state of region level", func() {
			for range save.AllHandles(v, scope.HandlePool[actor]{}) {
			}
		})
		if arena_c.Checked {
			save.At(v, l.hall).Tick = 8
		}
		return nil
	}
	if !arena_c.Checked {
		require.NoError(t, l.apply(t))
		return
	}
	require.PanicsWithValue(t, "save: BUG: a function of State.Verify wrote to the snapshot, which "+
		"it may only read", func() { _ = l.apply(t) })
}

// TestVerifyAllocatesNothing: only the function itself may allocate.
func TestVerifyAllocatesNothing(t *testing.T) {
	if arena_c.Checked || arena_c.Crossing || arena_c.Race {
		t.Skip("only a release build allocates nothing: go test ./budget/save runs it")
	}
	l := newLooked(t)
	l.hall.Tick++
	require.NoError(t, l.ring.Take(2))
	delta, err := l.ring.Delta(nil, 2, 1)
	require.NoError(t, err)
	sum := 0
	l.verify = func(v save.View) error {
		for _, x := range save.GetSlice(v, save.At(v, l.hall).Lamps) {
			sum += int(x.Level)
		}
		for i := range save.All(v, l.flies) {
			sum += i
		}
		for _, a := range save.AllHandles(v, l.actors) {
			sum += int(a.Mode)
		}
		return nil
	}
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		if _, err := l.ring.Apply(delta); err != nil {
			panic(err)
		}
	}))
	assert.NotZero(t, sum)
}
