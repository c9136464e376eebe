package scope_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// container is what Array, Deque and Map share.
type container struct {
	name          string
	push, reserve func() bool
	pop           func() bool
	clear         func()
	len, cap, all func() int
	at            func()
}

// bytesOf are what n points take in each container.
var bytesOf = []func(n int) int{
	func(n int) int { return n * 8 },
	func(n int) int { return n * 8 },
	func(n int) int { // an entry has 4 bytes for the key and 4 for its hash
		cells := 1
		for cells*3 < n*4 {
			cells *= 2
		}
		return n*16 + (cells*4+15)/16*16
	},
}

// containers are one of each kind for n points. What push puts in is new to it.
func containers(s scope.Scope, n int) []container {
	array, deque, byID := points.Array(s, n), points.Deque(s, n), scope.NewMap(s, ids, points, n)
	next := int32(0)
	fresh := func() point { next++; return point{next, -next} }
	count := func(all func(func() bool)) (n int) {
		all(func() bool { n++; return true })
		return n
	}
	return []container{
		{"an Array", func() bool { return array.Push(fresh()) }, array.Reserve,
			func() bool { _, ok := array.Pop(); return ok }, array.Clear, array.Len, array.Cap,
			func() int { return count(func(f func() bool) { array.All()(func(int, *point) bool { return f() }) }) },
			func() { array.RemoveSwap(0) }},
		{"a Deque", func() bool { return deque.PushBack(fresh()) }, deque.Reserve,
			func() bool { _, ok := deque.PopFront(); return ok }, deque.Clear, deque.Len, deque.Cap,
			func() int { return count(func(f func() bool) { deque.All()(func(int, *point) bool { return f() }) }) },
			func() { deque.At(0) }},
		{"a Map", func() bool { p := fresh(); return byID.Set(p.X, p) }, byID.Reserve,
			func() bool { return byID.Delete(next) }, byID.Clear, byID.Len, byID.Cap,
			func() int { return count(func(f func() bool) { byID.All()(func(int32, *point) bool { return f() }) }) },
			func() { _ = *byID.Get(1) }},
	}
}

var ids = scope.Plain[int32]()

func TestContainersOwnNothingWhileEmpty(t *testing.T) {
	pad := open(t).Pad(0, 0)
	for i, n := range []int{0, 1, 2, 3, 4, 6, 7, 100, 768, 769} {
		for kind, bytes := range bytesOf {
			s := pad.Open("a")
			c := containers(s, n)[kind]
			before := pad.Stats()
			assert.False(t, c.pop())
			assert.Zero(t, c.len()+c.all())
			assert.Equal(t, n, c.cap())
			c.clear()
			assert.Panics(t, c.at)
			assert.Equal(t, before, pad.Stats(), c.name)
			assert.Zero(t, before.Used)
			for j := range n + 2 {
				want := bytes(n)
				if i%2 == 0 {
					assert.True(t, c.reserve())
				}
				assert.Equal(t, j < n, c.push(), "%s of %d", c.name, n)
				if n == 0 {
					want = 0
				}
				assert.EqualValues(t, want, pad.Stats().Used, "%s of %d takes all at once", c.name, n)
				assert.EqualValues(t, min(1, n), pad.Stats().Objects)
			}
			assert.Equal(t, []int{n, n, n}, []int{c.len(), c.cap(), c.all()})
			assert.NoError(t, s.Err(), "that %d are there already is nothing to remember", n)
			assert.True(t, c.reserve())
			c.clear()
			assert.Equal(t, []int{0, n, 0}, []int{c.len(), c.cap(), c.all()})
			assert.False(t, c.pop())
			assert.Equal(t, n > 0, c.push())
			assert.Equal(t, n > 0, c.pop())
			require.NoError(t, s.Close())
		}
	}
}

func TestContainersInAFullScope(t *testing.T) {
	pad := open(t).Pad(0, 0)
	for kind := range bytesOf {
		s := pad.Open("a")
		c := containers(s, padSize/8+1)[kind]
		before := pad.Stats()
		assert.False(t, c.push())
		assert.Equal(t, before, pad.Stats())
		assert.ErrorIs(t, s.Err(), scope.ErrFull)
		assert.ErrorContains(t, s.Err(), fmt.Sprintf(`scope "a" asked for %d bytes, 65536 of 65536 are free`, bytesOf[kind](padSize/8+1)))
		assert.False(t, c.reserve())
		assert.Zero(t, c.len()+c.all())
		require.ErrorIs(t, s.Close(), scope.ErrFull)

		s = pad.Open("a")
		c = containers(s, 100)[kind]
		child := s.Open("rest")
		filler := child.Bytes(padSize - bytesOf[kind](100) + 1)
		require.NoError(t, child.Close())
		s.Bytes(len(filler))
		assert.False(t, c.push(), "%s needs one byte more", c.name)
		assert.Equal(t, bytesOf[kind](100)-1, int(s.Free()))
		require.ErrorIs(t, s.Close(), scope.ErrFull)

		s = pad.Open("a")
		c = containers(s, 100)[kind]
		s.Bytes(len(filler) - 8 - bytesOf[kind](100)%8)
		assert.True(t, c.push(), "%s has room now", c.name)
		require.NoError(t, s.Close())
	}
}

func TestContainersOfHugeCounts(t *testing.T) {
	s := open(t).Pad(0, 0).Open("a")
	huge := points.Array(s, math.MaxInt/2+1)
	assert.False(t, huge.Push(point{}))
	require.ErrorIs(t, s.Err(), scope.ErrFull)
	ring := points.Deque(s, math.MaxInt/4+1)
	assert.False(t, ring.Reserve())
	byID := scope.NewMap(s, ids, points, 1<<28)
	assert.False(t, byID.Set(1, point{}))
	assert.ErrorContains(t, s.Close(), "asked for 6442450944 bytes")
}

func TestContainersOfNothing(t *testing.T) {
	pad := open(t).Pad(0, 0)
	s := pad.Open("a")
	empties := scope.Plain[struct{}]()
	const many = math.MaxInt/2 + 1
	array, deque, list := empties.Array(s, many), empties.Deque(s, many+5), empties.List(s)
	for range 5000 {
		assert.True(t, array.Push(struct{}{}))
		assert.True(t, deque.PushFront(struct{}{}))
		list.New()
	}
	assert.True(t, deque.PushBack(struct{}{}))
	_, ok := deque.PopFront()
	assert.True(t, ok)
	assert.Len(t, array.Slice(), 5000)
	assert.Equal(t, []int{5000, many + 5}, []int{deque.Len(), deque.Cap()})
	assert.Less(t, pad.Stats().Used, uint64(100), "the words of the list's chunks")
	assert.Len(t, list.Copy(s), 5000)
	set := scope.NewMap(s, ids, empties, 3)
	none := scope.NewMap(s, empties, empties, 1)
	assert.True(t, set.Set(1, struct{}{}))
	assert.True(t, none.Set(struct{}{}, struct{}{}))
	assert.True(t, none.Set(struct{}{}, struct{}{}), "the same")
	assert.Equal(t, []int{1, 1}, []int{set.Len(), none.Len()})
	require.NoError(t, s.Close())
}

func TestContainersInCoveredAndFrozenScopes(t *testing.T) {
	b := open(t)
	pad := b.Pad(0, 0)
	for kind := range bytesOf {
		s := pad.Open("a")
		child := s.Open("child")
		c, other := containers(s, 3)[kind], containers(s, 3)[kind] // made while it is covered: they take nothing
		assert.False(t, c.push())
		assert.False(t, c.reserve())
		want := fmt.Sprintf(`scope: BUG: allocation of %d bytes in scope "a" of pad 0.0 while scope "child", opened in it, was open`,
			bytesOf[kind](3))
		assert.EqualError(t, s.Err(), want)
		require.NoError(t, child.Close())
		assert.True(t, c.push())
		assert.True(t, other.reserve())
		child = s.Open("child")
		works(t, c, 1)
		works(t, other, 0)
		require.NoError(t, child.Close())
		assert.EqualError(t, s.Close(), want)

		type nothing struct{}
		var frozen scope.Scope
		_, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*nothing, error) {
			c, other, frozen = containers(s, 3)[kind], containers(s, 3)[kind], s
			s.Defer(func() { works(t, c, 3) }) // also while the finalizers run
			require.True(t, c.reserve())
			return nil, nil
		})
		require.NoError(t, err)
		works(t, c, 0)
		assert.ErrorContains(t, recovered(func() { other.push() }),
			`scope "level" of region level, which is frozen since its load returned; Reserve the bytes before`)
		assert.NoError(t, frozen.Err())
		require.NoError(t, b.Region("level").Rewind(t.Context()))
	}
}

// works fills a container of 3, of which some are in use.
func works(t *testing.T, c container, used int) {
	t.Helper()
	for i := used; i < 3; i++ {
		assert.True(t, c.push(), c.name)
	}
	assert.False(t, c.push(), c.name)
	assert.Equal(t, []int{3, 3, 3}, []int{c.len(), c.cap(), c.all()}, c.name)
}

func TestContainersDieWithTheirScope(t *testing.T) {
	b := open(t)
	pad := b.Pad(0, 0)
	for kind := range bytesOf {
		for used := range 2 {
			s := pad.Open("a")
			c := containers(s, 3)[kind]
			for range used {
				c.push()
			}
			require.NoError(t, s.Close())
			isDead(t, c, "in a scope of pad 0.0 that is closed")
			s = pad.Open("a")
			s.Bytes(100)
			isDead(t, c, "in a scope of pad 0.0 that is closed")
			require.NoError(t, s.Close())

			s = pad.Open("a")
			c = containers(s.Temp(), 3)[kind]
			for range used {
				assert.True(t, c.push())
			}
			require.NoError(t, s.Close())
			isDead(t, c, "in a scope of pad 0.0 that is closed")
		}
	}
	s := pad.Open("a")
	full := containers(s, 1)
	for _, c := range full {
		c.push()
	}
	_ = b.Close()
	for _, c := range full {
		isDead(t, c, "in a scope whose budget is closed")
	}
	next := open(t).Pad(0, 0).Open("a")
	next.Bytes(1000)
	for _, c := range full {
		isDead(t, c, "closed")
	}
}

// isDead says that there is nothing to read, and that who writes is told.
func isDead(t *testing.T, c container, where string) {
	t.Helper()
	c.clear()
	assert.False(t, c.pop())
	assert.Equal(t, []int{0, 0, 0}, []int{c.len(), c.cap(), c.all()}, c.name)
	assert.Panics(t, c.at)
	for _, write := range []func() bool{c.push, c.reserve} {
		func() {
			defer func() {
				misuse, ok := recover().(*scope.Misuse)
				require.True(t, ok, "a misuse")
				assert.True(t, errors.Is(misuse, scope.ErrClosed))
				assert.Contains(t, misuse.Error(), " "+c.name+" in a scope ")
				assert.Contains(t, misuse.Error(), where)
			}()
			write()
		}()
	}
}

func TestContainersRefuse(t *testing.T) {
	s := open(t).Pad(0, 0).Open("a")
	for want, misuse := range map[string]func(){
		"an Array of -1 elements":                                           func() { points.Array(s, -1) },
		fmt.Sprintf("a Deque of %d elements", math.MinInt):                  func() { points.Deque(s, math.MinInt) },
		"a Map of -1 elements":                                              func() { scope.NewMap(s, ids, points, -1) },
		"a Map of 268435457 elements: at most 268435456":                    func() { scope.NewMap(s, ids, points, 1<<28+1) },
		fmt.Sprintf("a Map of %d elements: at most 268435456", math.MaxInt): func() { scope.NewMap(s, ids, points, math.MaxInt) },
		"a Maker that was never declared: make it with scope.Plain": func() {
			var m scope.Maker[point]
			m.Array(s, 1)
		},
	} {
		assert.PanicsWithError(t, "scope: BUG: "+want, misuse)
	}
	var m scope.Maker[int32]
	for _, misuse := range []func(){func() { m.List(s) }, func() { m.Deque(s, 1) }, func() { scope.NewMap(s, m, points, 1) },
		func() { scope.NewMap(s, points, m, 1) }} {
		assert.PanicsWithError(t, "scope: BUG: a Maker that was never declared: make it with scope.Plain", misuse)
	}
	require.NoError(t, s.Close())
	const closed = " in a scope of pad 0.0 that is closed"
	assert.PanicsWithError(t, "scope: BUG: an Array"+closed, func() { points.Array(s, 1) })
	assert.PanicsWithError(t, "scope: BUG: a Deque"+closed, func() { points.Deque(s, 1) })
	assert.PanicsWithError(t, "scope: BUG: a Map"+closed, func() { scope.NewMap(s, ids, points, 1) })
	assert.PanicsWithError(t, "scope: BUG: a List"+closed, func() { points.List(s) })
}

func TestContainersMakeNoGoAllocation(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' checks allocate")
	}
	pad := open(t).Pad(0, 0)
	sum := int32(0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s := pad.Open("a")
		array, deque, list := points.Array(s, 8), points.Deque(s, 8), points.List(s)
		for i := range int32(8) {
			array.Push(point{i, i})
			deque.PushFront(point{i, i})
			list.New().X = i
			list.Append(point{i, i}, point{})
		}
		array.RemoveSwap(2)
		for _, p := range array.All() {
			sum += p.X
		}
		for _, p := range deque.All() {
			sum += p.X
		}
		for _, p := range list.All() {
			sum += p.X
		}
		pond := list.Copy(s)
		last, _ := array.Pop()
		first, _ := deque.PopFront()
		sum += last.X + first.X + array.At(1).X + deque.At(1).X + pond[1].X
		_ = s.Close()
	}))
	assert.NotZero(t, sum)
	assert.NoError(t, pad.Open("b").Close())
}
