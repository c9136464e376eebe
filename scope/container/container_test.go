package container_test

import (
	"container/list"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

type point struct{ X, Y int32 }

var (
	points = scope.Plain[point]()
	ids    = scope.Plain[int32]()
)

const scratchSize = 64 * budget.KiB

// instrumented says that a sanitizer's runtime allocates for itself.
const instrumented = arena_c.Race || arena_c.Asan

var plan = budget.Plan{Name: "test", Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB}},
	Scratch: budget.ScratchPlan{Workers: 2, Size: scratchSize}}

func open(t testing.TB) *budget.Budget { return budgettest.Open(t, plan) }

// kind is one of the containers, of points, as the tests that hold for each see it.
type kind struct {
	name, push string
	bytes      func(n int) int // that n points take
	make       func(s scope.Scope, n int) box
}

// box is a container. What push puts in is new to it.
type box struct {
	push, pop     func() bool
	clear         func()
	len, cap, all func() int
	first         func() *point // the oldest, nil or a panic when there is none
}

func cells(n int) int {
	cells := 1
	for cells*3 < n*4 {
		cells *= 2
	}
	return cells
}

const longest = 3 // bytes of the keys of a StringMap: numbers in hexadecimal

var kinds = []kind{
	{"List", "Push to a List", func(n int) int { return 8 * n }, func(s scope.Scope, n int) box {
		l, next := container.NewList(s, points, n), int32(0)
		return box{func() bool { next++; return l.Push(point{next, -next}) },
			func() bool { _, ok := l.Pop(); return ok }, l.Clear, l.Len, l.Cap, func() int { return count(l.All()) },
			func() *point { return l.At(0) }}
	}},
	{"Deque", "PushBack to a Deque", func(n int) int { return 8 * n }, func(s scope.Scope, n int) box {
		d, next := container.NewDeque(s, points, n), int32(0)
		return box{func() bool { next++; return d.PushBack(point{next, -next}) },
			func() bool { _, ok := d.PopBack(); return ok }, d.Clear, d.Len, d.Cap, func() int { return count(d.All()) },
			func() *point { return d.At(0) }}
	}},
	{"Map", "Set in a Map", func(n int) int { return 8*cells(n) + (4*n+7)/8*8 + 8*n }, func(s scope.Scope, n int) box {
		m, next := container.NewMap(s, ids, points, n), int32(0)
		return box{func() bool { next++; return m.Set(next, point{next, -next}) },
			func() bool { return m.Delete(int32(m.Len())) }, func() { m.Clear(); next = 0 }, m.Len, m.Cap,
			func() int { return count(m.All()) }, func() *point { return m.Get(1) }}
	}},
	{"StringMap", "Set in a StringMap", func(n int) int { return 8*cells(n) + 8*n + 8*n + longest*n }, func(s scope.Scope, n int) box {
		m, next := container.NewStringMap(s, points, n, longest), 0
		key := func(i int) string { return strconv.FormatInt(int64(i), 16) }
		return box{func() bool { next++; return m.Set(key(next), point{int32(next), int32(-next)}) == nil },
			func() bool { return m.Delete(key(m.Len())) }, func() { m.Clear(); next = 0 }, m.Len, m.Cap,
			func() int { return count(m.All()) }, func() *point { return m.Get("1") }}
	}},
}

func count[K any](all func(func(K, *point) bool)) (n int) {
	all(func(K, *point) bool { n++; return true })
	return n
}

func TestBytesAreTakenAtOnce(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for _, k := range kinds {
		for _, n := range []int{0, 1, 2, 3, 4, 6, 7, 100, 768, 769} {
			s := scratch.Open("a")
			c := k.make(s, n)
			for i := range n + 2 {
				assert.Equal(t, []int{min(i, n), n, min(i, n)}, []int{c.len(), c.cap(), c.all()})
				assert.EqualValues(t, k.bytes(n), scratch.Stats().Used, "%s of %d", k.name, n)
				if arena_c.Checked { // others don't count
					assert.EqualValues(t, 1, scratch.Stats().Objects, "one allocation")
				}
				assert.Equal(t, i < n, c.push(), "%s of %d", k.name, n)
			}
			assert.NoError(t, s.Err(), "that %d are in it is nothing to remember", n)
			c.clear()
			assert.Equal(t, []int{0, n, 0}, []int{c.len(), c.cap(), c.all()})
			assert.False(t, c.pop())
			assert.Equal(t, n > 0, c.push())
			assert.Equal(t, n > 0, c.pop())
			assert.EqualValues(t, k.bytes(n), scratch.Stats().Used)
			require.NoError(t, s.Close())
		}
	}
}

// TestTheLastByte: a container that just fits, and one that lacks a byte: its error asks for all of
// it.
func TestTheLastByte(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	const n = 96
	for _, k := range kinds {
		require.Zero(t, k.bytes(n)%8)
		require.NoError(t, scratch.Do("a", func(s scope.Scope) error {
			s.Bytes(scratchSize - k.bytes(n))
			c := k.make(s, n)
			assert.Zero(t, s.Free())
			assert.True(t, c.push())
			return nil
		}))
		err := scratch.Do("a", func(s scope.Scope) error {
			s.Bytes(scratchSize - k.bytes(n) + 1)
			k.make(s, n)
			return nil
		})
		require.ErrorIs(t, err, scope.ErrFull, k.name)
		assert.ErrorContains(t, err, fmt.Sprintf("asked for %d bytes", k.bytes(n)))
	}
}

// TestHugeCounts are a full, not a number that wraps.
func TestHugeCounts(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	wide := scope.Plain[[1 << 20]int64]()
	for _, of := range []func(s scope.Scope){
		func(s scope.Scope) { container.NewList(s, points, math.MaxInt/2+1) },
		func(s scope.Scope) { container.NewDeque(s, points, math.MaxInt/8+1) },
		func(s scope.Scope) { container.NewMap(s, ids, points, 1<<28) },
		func(s scope.Scope) { container.NewMap(s, wide, wide, 1<<28) },
		func(s scope.Scope) { container.NewMap(s, ids, wide, 1<<18) },
		func(s scope.Scope) { container.NewStringMap(s, points, 1<<28, 1<<28) },
	} {
		assert.ErrorIs(t, scratch.Do("a", func(s scope.Scope) error { of(s); return nil }), scope.ErrFull)
	}
}

// TestValuesOfNoSize take no byte, however many there may be.
func TestValuesOfNoSize(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	empties, none := scope.Plain[struct{}](), struct{}{}
	const many = math.MaxInt/2 + 1
	list, deque := container.NewList(s, empties, many), container.NewDeque(s, empties, many)
	for range 5000 {
		assert.True(t, list.Push(none) && deque.PushFront(none) && deque.PushBack(none))
	}
	deque.PopFront()
	assert.Equal(t, []int{5000, 9999, many}, []int{list.Len(), deque.Len(), deque.Cap()})
	assert.Zero(t, scratch.Stats().Used)
	set, one := container.NewMap(s, ids, empties, 3), container.NewMap(s, empties, empties, 1)
	names := container.NewStringMap(s, empties, 1, 0)
	assert.True(t, set.Set(1, none) && one.Set(none, none) && one.Set(none, none))
	require.NoError(t, names.Set("", none))
	assert.NotNil(t, names.Get(""))
	assert.Equal(t, []int{1, 1, 1}, []int{set.Len(), one.Len(), names.Len()})
	require.NoError(t, s.Close())
}

// TestAliveIsEnough: what is covered, frozen, or runs its finalizers has its containers.
func TestAliveIsEnough(t *testing.T) {
	b := open(t)
	for _, k := range kinds {
		works := func(c box) {
			c.clear()
			for range 3 {
				assert.True(t, c.push(), k.name)
			}
			assert.False(t, c.push(), k.name)
			assert.Equal(t, []int{3, 3, 3}, []int{c.len(), c.cap(), c.all()})
			assert.Equal(t, point{1, -1}, point{1, c.first().Y / c.first().X})
			assert.True(t, c.pop())
		}
		s := b.Scratch(0, 0).Open("a")
		c := k.make(s, 3)
		child := s.Open("child")
		child.Bytes(100)
		works(c)
		require.NoError(t, child.Close())
		works(c)
		s.Defer(func() { works(c) })
		require.NoError(t, s.Close())

		_, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*int, error) {
			c = k.make(s, 3)
			s.Defer(func() { works(c) })
			return nil, nil
		})
		require.NoError(t, err)
		works(c)
		require.NoError(t, b.Region("level").Rewind(t.Context()))
		isDead(t, k, c)
	}
}

func TestContainersDieWithTheirScope(t *testing.T) {
	b, err := budget.Open(plan)
	require.NoError(t, err)
	scratch := b.Scratch(0, 0)
	for _, k := range kinds {
		s := scratch.Open("a")
		full, empty, temp := k.make(s, 1), k.make(s, 3), k.make(s.Temp(1024), 3)
		assert.True(t, full.push() && temp.push())
		require.NoError(t, s.Close())
		s = scratch.Open("a")
		s.Bytes(1000) // what they had is another's
		isDead(t, k, full)
		isDead(t, k, empty)
		isDead(t, k, temp)
		require.NoError(t, s.Close())
	}
	s := scratch.Open("a")
	var left []box
	for _, k := range kinds {
		left = append(left, k.make(s, 2))
	}
	_ = b.Close()
	for i, k := range kinds {
		isDead(t, k, left[i])
	}
}

// isDead says that there is nothing to read or take away, and that who puts something in is told.
func isDead(t *testing.T, k kind, c box) {
	t.Helper()
	c.clear()
	assert.False(t, c.pop(), k.name)
	assert.Equal(t, []int{0, 0, 0}, []int{c.len(), c.cap(), c.all()}, k.name)
	func() {
		defer func() { _ = recover() }()
		assert.Nil(t, c.first(), "a panic, or nil")
	}()
	defer func() {
		err, _ := recover().(error)
		var misuse *scope.Misuse
		require.ErrorAs(t, err, &misuse)
		assert.ErrorIs(t, err, scope.ErrClosed)
		assert.Regexp(t, "^"+k.push+": scope: BUG: use of a scope (of .* that is closed|whose budget is closed)$", err.Error())
	}()
	c.push()
}

// TestWhatWasThereBefore doesn't show: neither in an index nor in a list.
func TestWhatWasThereBefore(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for _, k := range kinds {
		s := scratch.Open("a")
		old := s.Bytes(8192)
		for i := range old {
			old[i] = 0xFF
		}
		require.NoError(t, s.Close())
		s = scratch.Open("a")
		c := k.make(s, 10)
		assert.Equal(t, []int{0, 0}, []int{c.len(), c.all()})
		assert.True(t, c.push())
		assert.Equal(t, point{1, -1}, *c.first())
		require.NoError(t, s.Close())
	}
}

func TestWhatIsRefused(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	var noPoints scope.Maker[point]
	for _, c := range []struct {
		want   string
		misuse func()
	}{
		{"a slice of -1 elements", func() { container.NewList(s, points, -1) }},
		{"a slice of -1 elements", func() { container.NewDeque(s, points, -1) }},
		{"a Map of -1 keys: at most 268435456", func() { container.NewMap(s, ids, points, -1) }},
		{"a StringMap of 268435457 keys: at most 268435456", func() { container.NewStringMap(s, points, 1<<28+1, 1) }},
		{"a StringMap of keys of -1 bytes: at most 268435456", func() { container.NewStringMap(s, points, 1, -1) }},
		{undeclared, func() { container.NewList(s, noPoints, 1) }},
		{undeclared, func() { container.NewDeque(s, noPoints, 1) }},
		{undeclared, func() { container.NewMap(s, noPoints, points, 1) }},
		{undeclared, func() { container.NewMap(s, points, noPoints, 1) }},
		{undeclared, func() { container.NewStringMap(s, noPoints, 1, 1) }},
	} {
		assert.PanicsWithError(t, "scope: BUG: "+c.want, c.misuse)
	}
	child := s.Open("b")
	for _, k := range kinds {
		assert.PanicsWithError(t, `scope: BUG: allocation in scope "a" of scratch 0.0 while scope "b", opened in it, is open`,
			func() { k.make(s, 1) })
	}
	require.NoError(t, child.Close())
	require.Error(t, s.Close(), "it remembers")
	for _, k := range kinds {
		assert.PanicsWithError(t, "scope: BUG: allocation in a scope of scratch 0.0 that is closed", func() { k.make(s, 1) })
	}
}

const undeclared = "a Maker that was never declared: make it with scope.Plain or scope.Object"

// TestConstructors: a container is made, and used, inside a constructor and around it like all
// else.
func TestConstructors(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	for _, k := range kinds {
		older := k.make(s, 3)
		before := s.Free()
		_, err := points.Make(s, func(*point) error {
			c := k.make(s, 100)
			assert.True(t, older.push() && c.push())
			return errors.New("no frog")
		})
		require.Error(t, err)
		assert.Equal(t, before, s.Free())
		points.Slice(s, 100)
		assert.True(t, older.push())
		assert.Equal(t, []int{2, 2}, []int{older.len(), older.all()}, k.name)
	}
	require.NoError(t, s.Close())
}

func TestNoGoAllocation(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' checks allocate")
	}
	scratch := open(t).Scratch(0, 0)
	letters, sum := []byte("frog"), int32(0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s := scratch.Open("a")
		list, deque := container.NewList(s, points, 4), container.NewDeque(s, points, 4)
		byPoint, byName := container.NewMap(s, points, ids, 4), container.NewStringMap(s, ids, 4, 8)
		for i := range int32(6) {
			list.Push(point{i, i})
			deque.PushFront(point{i, i})
			byPoint.Set(point{i, i}, i)
			letters[0] = 'a' + byte(i)
			_ = byName.Set(string(letters), i)
			if v := byName.Get(string(letters)); v != nil {
				sum += *v
			}
		}
		list.RemoveSwap(1)
		for _, p := range list.All() {
			sum += p.X
		}
		for _, p := range deque.All() {
			sum += p.X
		}
		for p, v := range byPoint.All() {
			sum += p.X + *v
		}
		for name, v := range byName.All() {
			sum += int32(len(name)) + *v
		}
		byPoint.Delete(point{1, 1})
		byName.Delete("afrog")
		byName.Clear()
		_ = s.Close()
	}))
	assert.NotZero(t, sum)
}

// TestListIsASlice plays at random with a list and with a slice.
func TestListIsASlice(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for seed := range int64(40) {
		random := rand.New(rand.NewSource(seed))
		s := scratch.Open("a")
		n := random.Intn(20)
		list, model := container.NewList(s, points, n), []point{}
		for step := range 400 {
			x, some := point{int32(step), random.Int31()}, len(model) > 0
			switch op := random.Intn(60); {
			case op < 35:
				require.Equal(t, len(model) < n, list.Push(x))
				if len(model) < n {
					model = append(model, x)
				}
			case op < 50:
				last, ok := list.Pop()
				require.Equal(t, some, ok)
				if some {
					require.Equal(t, model[len(model)-1], last)
					model = model[:len(model)-1]
				} else {
					require.Zero(t, last)
				}
			case op < 54 && some:
				i := random.Intn(len(model))
				list.RemoveSwap(i)
				model[i] = model[len(model)-1]
				model = model[:len(model)-1]
			case op < 59 && some:
				i := random.Intn(len(model))
				list.At(i).Y++
				model[i].Y++
			case op == 59:
				list.Clear()
				model = model[:0]
			}
			require.Equal(t, len(model), list.Len(), "seed %d", seed)
			require.True(t, slices.Equal(model, list.Slice()), "seed %d", seed)
			i := 0
			for at, p := range list.All() {
				require.Equal(t, i, at)
				require.Equal(t, model[i], *p)
				i++
			}
			require.Equal(t, len(model), i)
		}
		require.NoError(t, s.Close())
	}
}

func TestListPanicsAsASliceDoes(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	list := container.NewList(s, points, 4)
	const empty = "runtime error: index out of range [0] with length 0"
	assert.PanicsWithError(t, empty, func() { list.At(0) })
	assert.PanicsWithError(t, empty, func() { list.RemoveSwap(0) })
	list.Push(point{1, 1})
	list.Push(point{2, 2})
	assert.PanicsWithError(t, "runtime error: index out of range [2] with length 2", func() { list.At(2) })
	assert.PanicsWithError(t, "runtime error: index out of range [-1]", func() { list.RemoveSwap(-1) })
	assert.Equal(t, 2, cap(list.Slice()), "append can't run into what Push gives")
	require.NoError(t, s.Close())
	assert.PanicsWithError(t, empty, func() { list.At(0) })
	assert.PanicsWithError(t, empty, func() { list.RemoveSwap(0) })
	assert.Nil(t, list.Slice())
}

func TestListWhileRanging(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	list := container.NewList(s, points, 5)
	list.Push(point{})
	for i, p := range list.All() {
		p.X = int32(i)
		list.Push(point{})
	}
	assert.Equal(t, []point{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}}, list.Slice(), "what Push adds comes along")
	for i := range list.All() {
		if i == 2 {
			break
		}
		list.Pop()
	}
	assert.Equal(t, 3, list.Len())
	for range list.All() {
		require.NoError(t, s.Close()) // and there is nothing more
	}
}

// TestDequeIsAList plays at random with a deque and with a list of the standard library.
func TestDequeIsAList(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for seed := range int64(40) {
		random := rand.New(rand.NewSource(seed))
		s := scratch.Open("a")
		n := random.Intn(12)
		d, model := container.NewDeque(s, points, n), list.New()
		for step := range 500 {
			x := point{int32(step), random.Int31()}
			fits := model.Len() < n
			switch op := random.Intn(50); {
			case op < 14:
				require.Equal(t, fits, d.PushBack(x))
				if fits {
					model.PushBack(x)
				}
			case op < 28:
				require.Equal(t, fits, d.PushFront(x))
				if fits {
					model.PushFront(x)
				}
			case op < 38:
				popped(t, model, model.Back(), d.PopBack)
			case op < 48:
				popped(t, model, model.Front(), d.PopFront)
			case op < 49:
				d.Clear()
				model.Init()
			default:
				require.Equal(t, n, d.Cap())
			}
			require.Equal(t, model.Len(), d.Len(), "seed %d", seed)
			i, e := 0, model.Front()
			for at, p := range d.All() {
				require.Equal(t, i, at)
				require.Equal(t, e.Value, *p, "seed %d", seed)
				require.Same(t, p, d.At(i))
				i, e = i+1, e.Next()
			}
			require.Nil(t, e)
		}
		require.NoError(t, s.Close())
	}
}

func popped(t *testing.T, model *list.List, want *list.Element, pop func() (point, bool)) {
	t.Helper()
	got, ok := pop()
	require.Equal(t, want != nil, ok)
	if want == nil {
		require.Zero(t, got)
		return
	}
	require.Equal(t, model.Remove(want), got)
}

func TestDequePanicsAsASliceDoes(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	d := container.NewDeque(s, points, 4)
	assert.PanicsWithError(t, "runtime error: index out of range [0] with length 0", func() { d.At(0) })
	for range 3 {
		d.PushFront(point{})
	}
	d.PopBack()
	assert.PanicsWithError(t, "runtime error: index out of range [2] with length 2", func() { d.At(2) })
	assert.Panics(t, func() { d.At(-1) }) // the number in the text differs between processors
	require.NoError(t, s.Close())
	assert.PanicsWithError(t, "runtime error: index out of range [0] with length 0", func() { d.At(0) })
	for _, pop := range []func() (point, bool){d.PopFront, d.PopBack} {
		got, ok := pop()
		assert.False(t, ok)
		assert.Zero(t, got)
	}
	assert.PanicsWithError(t, "PushFront to a Deque: scope: BUG: use of a scope of scratch 0.0 that is closed",
		func() { d.PushFront(point{}) })
}

func TestDequeWhileRanging(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	d := container.NewDeque(s, points, 4)
	d.PushBack(point{})
	seen := 0
	for i, p := range d.All() {
		p.X = int32(i)
		d.PushBack(point{})
		if seen++; seen == 3 {
			break
		}
	}
	assert.Equal(t, []int{3, 4}, []int{seen, d.Len()})
	for range d.All() {
		require.NoError(t, s.Close())
	}
}
