package scope_test

import (
	"math/rand"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// TestListIsASlice fills lists of values of all sizes at random, among other allocations, and slices.
func TestListIsASlice(t *testing.T) {
	b := open(t)
	for seed := range int64(10) {
		listIsASlice(t, b, seed, func(r *rand.Rand) byte { return byte(r.Int()) })
		listIsASlice(t, b, seed, func(r *rand.Rand) point { return point{r.Int31(), r.Int31()} })
		listIsASlice(t, b, seed, func(r *rand.Rand) [3]uint16 { return [3]uint16{uint16(r.Int()), 1, uint16(r.Int())} })
		listIsASlice(t, b, seed, func(r *rand.Rand) [64]int64 { return [64]int64{r.Int63(), 63: r.Int63()} })
		listIsASlice(t, b, seed, func(r *rand.Rand) [1500]byte { return [1500]byte{byte(r.Int()), 1499: byte(r.Int())} })
		listIsASlice(t, b, seed, func(*rand.Rand) struct{} { return struct{}{} })
	}
}

func listIsASlice[T comparable](t *testing.T, b *budget.Budget, seed int64, value func(*rand.Rand) T) {
	t.Helper()
	random := rand.New(rand.NewSource(seed))
	s, other := b.Pad(0, 0).Open("a"), b.Pad(0, 1).Open("b")
	list, model, addresses := scope.Plain[T]().List(s), []T{}, []*T{}
	var zero T
	most := min(int(padSize/4/max(1, unsafe.Sizeof(zero))), 3000)
	for len(model) < most {
		switch random.Intn(8) {
		default:
			x := list.New()
			require.Equal(t, zero, *x, "zeroed")
			*x = value(random)
			model, addresses = append(model, *x), append(addresses, x)
		case 0, 1:
			xs := make([]T, random.Intn(5*(1+most/50)))
			for i := range xs {
				xs[i] = value(random)
			}
			list.Append(xs...)
			model = append(model, xs...)
		case 2:
			s.Bytes(random.Intn(3)) // something between the chunks
		}
		require.Equal(t, len(model), list.Len())
	}
	i := 0
	for at, x := range list.All() {
		require.Equal(t, i, at)
		require.Equal(t, model[i], *x)
		if len(addresses) > 0 && unsafe.Sizeof(zero) > 0 && x == addresses[0] {
			addresses = addresses[1:]
		}
		i++
	}
	require.Equal(t, len(model), i)
	if unsafe.Sizeof(zero) > 0 {
		require.Empty(t, addresses, "each is where New gave it, in order")
	}
	before := b.Pad(0, 1).Stats()
	got := list.Copy(other)
	after := b.Pad(0, 1).Stats()
	require.Equal(t, model, got)
	require.Equal(t, len(got), cap(got))
	require.EqualValues(t, 1, after.Objects-before.Objects, "one allocation")
	require.EqualValues(t, len(model)*int(unsafe.Sizeof(zero)), after.Used-before.Used)
	require.Equal(t, model, list.Copy(s), "or into its own scope")
	require.NoError(t, other.Close())
	require.NoError(t, s.Close())
}

func TestListOwnsNothingWhileEmpty(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("a")
	before := pad.Stats()
	list := points.List(s)
	list.Append()
	assert.Zero(t, list.Len())
	for range list.All() {
		t.Error("there is none")
	}
	assert.Equal(t, before, pad.Stats())
	assert.Zero(t, before.Used)
	empty := list.Copy(s)
	assert.NotNil(t, empty)
	assert.Empty(t, empty)
	assert.Zero(t, pad.Stats().Used)
	list.New()
	assert.EqualValues(t, 1024, pad.Stats().Used, "a word and 127 points")
	list.Append(make([]point, 126)...)
	assert.EqualValues(t, 1024, pad.Stats().Used)
	list.New()
	assert.EqualValues(t, 2048, pad.Stats().Used)
	s.Bytes(1)
	letters := scope.Plain[byte]().List(s)
	letters.New()
	assert.EqualValues(t, 2048+8+1024, pad.Stats().Used, "the word is aligned")
	require.NoError(t, s.Close())
}

func TestListInAFullScope(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("a")
	list := points.List(s)
	for list.TryNew() != nil {
	}
	assert.Equal(t, 64*127, list.Len())
	assert.ErrorIs(t, s.Err(), scope.ErrFull)
	const full = `budget "test": pad 0.0 is full: scope "a" asked for 1024 bytes, 0 of 65536 are free; held by a 65536; ` +
		`raise pads.size in the plan to 66560 or more`
	assert.PanicsWithError(t, full, func() { list.New() })
	assert.PanicsWithError(t, full, func() { list.Append(point{}) })
	assert.PanicsWithError(t, `budget "test": pad 0.0 is full: scope "a" asked for 65024 bytes, 0 of 65536 are free; held by a 65536; `+
		`raise pads.size in the plan to 130560 or more`, func() { list.Copy(s) })
	assert.Equal(t, 64*127, list.Len())
	require.ErrorIs(t, s.Close(), scope.ErrFull)

	s = pad.Open("a")
	list = points.List(s)
	s.Bytes(padSize - 2*1024)
	assert.Panics(t, func() { list.Append(make([]point, 300)...) })
	assert.Equal(t, 2*127, list.Len(), "what fitted before stays")
	require.ErrorIs(t, s.Close(), scope.ErrFull)
	assert.ErrorIs(t, pad.Do("b", func(s scope.Scope) error {
		list := points.List(s)
		for {
			list.New()
		}
	}), scope.ErrFull, "it unwinds")
}

// TestListInACoveredScope: it refuses at once, not only when the chunk is full.
func TestListInACoveredScope(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("a")
	list := points.List(s)
	list.New().X = 5
	child := s.Open("b")
	const covered = `scope: BUG: allocation in scope "a" of pad 0.0 while scope "b", opened in it, is open`
	assert.PanicsWithError(t, covered, func() { list.New() })
	assert.PanicsWithError(t, covered, func() { list.Append(point{}) })
	assert.PanicsWithError(t, covered, func() { list.Copy(s) })
	assert.Nil(t, list.TryNew())
	assert.ErrorContains(t, s.Err(), `in scope "a" of pad 0.0 while scope "b", opened in it, was open`)
	assert.Equal(t, 1, list.Len())
	for i, x := range list.All() {
		assert.Equal(t, []int{0, 5}, []int{i, int(x.X)})
	}
	assert.Equal(t, []point{{X: 5}}, list.Copy(child))
	require.NoError(t, child.Close())
	assert.NotNil(t, list.TryNew())
	assert.EqualValues(t, 1024, pad.Stats().Used, "the chunk goes on")
	require.Error(t, s.Close())
}

func TestListOfTemporaries(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("a")
	list := points.List(s.Temp())
	for i := range int32(3000) { // takes pieces
		list.New().X = i
		points.New(s)
	}
	for i, x := range list.All() {
		require.EqualValues(t, i, x.X)
	}
	assert.Equal(t, 3000, list.Len())
	require.NoError(t, s.Close())
	assert.Zero(t, list.Len())
}

func TestListDiesWithItsScope(t *testing.T) {
	b := open(t)
	s := b.Pad(0, 0).Open("a")
	list, other, empty := points.List(s), points.List(b.Pad(0, 1).Open("b")), points.List(s)
	list.New()
	other.New()
	into := b.Pad(1, 0).Open("into")
	require.NoError(t, s.Close())
	dead := func(l *scope.List[point], where string) {
		assert.Zero(t, l.Len())
		for range l.All() {
			t.Error("there is none")
		}
		assert.PanicsWithError(t, "scope: BUG: New in a List in "+where, func() { l.New() })
		assert.PanicsWithError(t, "scope: BUG: New in a List in "+where, func() { l.TryNew() })
		assert.PanicsWithError(t, "scope: BUG: New in a List in "+where, func() { l.Append(point{}) })
		assert.PanicsWithError(t, "scope: BUG: Copy of a List in "+where, func() { l.Copy(into) })
	}
	dead(&list, "a scope of pad 0.0 that is closed")
	dead(&empty, "a scope of pad 0.0 that is closed")
	b.Pad(0, 0).Open("again").Bytes(100)
	dead(&list, "a scope of pad 0.0 that is closed")
	assert.Equal(t, 1, other.Len())
	assert.PanicsWithError(t, "scope: BUG: a List in a scope of pad 0.0 that is closed", func() { points.List(s) })
	var undeclared scope.Maker[point]
	assert.PanicsWithError(t, "scope: BUG: a Maker that was never declared: make it with scope.Plain", func() { undeclared.List(into) })
	_ = b.Close()
	dead(&list, "a scope whose budget is closed")
	dead(&other, "a scope whose budget is closed")
}

func TestListWhileRanging(t *testing.T) {
	s := open(t).Pad(0, 0).Open("a")
	list := points.List(s)
	list.New()
	seen := 0
	for i, x := range list.All() {
		require.Equal(t, seen, i)
		x.X = int32(i)
		seen++
		if i < 999 { // over the ends of chunks
			list.New()
		}
	}
	assert.Equal(t, 1000, seen)
	for i := range list.All() {
		require.Less(t, i, 200)
		if i == 199 {
			require.NoError(t, s.Close()) // and there is nothing more
		}
	}
	for i := range list.All() {
		assert.Fail(t, "dead", i)
	}
}

// TestListOverWhatWasThere: a chunk is zeroed, also where others wrote before.
func TestListOverWhatWasThere(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("a")
	used := s.Bytes(8192)
	for i := range used {
		used[i] = 0xFF
	}
	require.NoError(t, s.Close())
	s = pad.Open("a")
	list := points.List(s)
	for range 300 {
		assert.Zero(t, *list.New())
	}
	require.NoError(t, s.Close())
}
