package container_test

import (
	"fmt"
	"iter"
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

// instrumented is true where a sanitizer's runtime allocates for itself.
const instrumented = arena_c.Race || arena_c.Asan

var plan = budget.Plan{Name: "test", Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB}},
	Scratch: budget.ScratchPlan{Workers: 2, Size: scratchSize}}

func open(t testing.TB) *budget.Budget { return budgettest.Open(t, plan) }

// kind is one of the containers, with points for values, for tests of all kinds.
type kind struct {
	name, push string
	bytes      func(n int) int // size of n points
	make       func(s scope.Scope, n int) box
}

// box is a container. push adds a new value.
type box struct {
	push, pop     func() bool
	clear         func()
	len, cap, all func() int
	first         func() *point // the oldest value; nil or a panic if there is none
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
	{"List", "Push to a List", func(n int) int { return 8 + 8*n }, func(s scope.Scope, n int) box {
		l, next := container.NewList(s, points, n), int32(0)
		return box{func() bool { next++; return l.Push(point{next, -next}) },
			func() bool { _, ok := l.Pop(); return ok }, l.Clear, l.Len, l.Cap, func() int { return count(l.All()) },
			func() *point { return l.At(0) }}
	}},
	{"Deque", "PushBack to a Deque", func(n int) int { return 16 + 8*n }, func(s scope.Scope, n int) box {
		d, next := container.NewDeque(s, points, n), int32(0)
		return box{func() bool { next++; return d.PushBack(point{next, -next}) },
			func() bool { _, ok := d.PopBack(); return ok }, d.Clear, d.Len, d.Cap, func() int {
				return count(d.All())
			},
			func() *point { return d.At(0) }}
	}},
	{"Map", "Set in a Map", func(n int) int {
		return 24 + 8*cells(n) + 8*n + (4*n+7)/8*8 + 8*n
	}, func(s scope.Scope, n int) box {
		m, next := container.NewMap(s, ids, points, n), int32(0)
		return box{func() bool { next++; return m.Set(next, point{next, -next}) },
			func() bool { return m.Delete(int32(m.Len())) }, func() { m.Clear(); next = 0 }, m.Len, m.Cap,
			func() int { return count(m.All()) }, func() *point { return m.Get(1) }}
	}},
	{"StringMap", "Set in a StringMap", func(n int) int { return 24 + 8*cells(n) + 8*n + 8*n + 8*n + longest*n },
		func(s scope.Scope, n int) box {
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
				if arena_c.Checked { // only these builds count
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

// TestAByteLess: the error names the size of the whole container.
func TestAByteLess(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	const n = 96
	for _, k := range kinds {
		err := scratch.Do("a", func(s scope.Scope) error {
			s.Bytes(scratchSize - k.bytes(n) + 1)
			k.make(s, n)
			return nil
		})
		require.ErrorIs(t, err, scope.ErrFull, k.name)
		assert.ErrorContains(t, err, fmt.Sprintf("asked for %d bytes", k.bytes(n)))
	}
}

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
	assert.EqualValues(t, 8+16, scratch.Stats().Used, "their words")
	set, one := container.NewMap(s, ids, empties, 3), container.NewMap(s, empties, empties, 1)
	names := container.NewStringMap(s, empties, 1, 0)
	assert.True(t, set.Set(1, none) && one.Set(none, none) && one.Set(none, none))
	require.NoError(t, names.Set("", none))
	assert.NotNil(t, names.Get(""))
	assert.Equal(t, []int{1, 1, 1}, []int{set.Len(), one.Len(), names.Len()})
	require.NoError(t, s.Close())
}

// TestAliveIsEnough: a scope that is covered, frozen, or runs its finalizers still has its
// containers.
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
		s.Bytes(1000) // their bytes get a new owner
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

// isDead checks that the container is empty, and that adding a value panics with the scope's end.
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
		assert.Regexp(t, "^scope: BUG: "+k.push+" in a (closed scope of scratch 0.0$|scope whose budget is closed$|"+
			"closed scope of region level; region level was last emptied .* ago, by a Rewind of region level)",
			err.Error())
	}()
	c.push()
}

func TestWhatIsRefused(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	var noPoints scope.Maker[point]
	for _, c := range []struct {
		want   string
		misuse func()
	}{
		{fmt.Sprint("a List of -1 values: at most ", math.MaxInt), func() { container.NewList(s, points, -1) }},
		{fmt.Sprint("a Deque of -1 values: at most ", math.MaxInt), func() { container.NewDeque(s, points, -1) }},
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
		assert.PanicsWithError(t,
			`scope: BUG: allocation in scope "a" of scratch 0.0 while scope "b", opened in it, is open; close "b" first`,
			func() {
				k.make(s, 1)
			})
	}
	require.NoError(t, child.Close())
	require.Error(t, s.Close(), "it remembers")
	for _, k := range kinds {
		assert.PanicsWithError(t, "scope: BUG: allocation in a closed scope of scratch 0.0", func() { k.make(s, 1) })
	}
}

const undeclared = "a Maker that was never declared: make it with scope.Plain or scope.Object"

func TestNoGoAllocation(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' checks allocate: go test ./scope/container runs it")
	}
	scratch := open(t).Scratch(0, 0)
	letters, sum := []byte("frog"), int32(0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s := scratch.Open("a")
		list, deque := container.NewList(s, points, 4), container.NewDeque(s, points, 4)
		byPoint, byName := container.NewMap(s, points, ids, 4), container.NewStringMap(s, ids, 26, 8)
		for i := range int32(6) {
			list.Push(point{i, i})
			deque.PushFront(point{i, i})
			byPoint.Set(point{i, i}, i)
			letters[0] = 'a' + byte(i)
			_ = byName.Set(string(letters), i)
			if v := byName.Get(string(letters)); v != nil {
				sum += *v
			}
			_ = byName.SetBytes(letters, 2*i)
			if v := byName.GetBytes(letters); v != nil {
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
		byName.DeleteBytes(letters)
		byName.Clear()
		_ = s.Close()
	}))
	assert.NotZero(t, sum)
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
	const misuse = "scope: BUG: RemoveSwap of a List while All ranges over it: it moves a value; count down instead"
	assert.PanicsWithError(t, misuse, func() {
		for i := range list.All() {
			list.RemoveSwap(i)
		}
	})
	for i := range list.All() {
		list.RemoveSwap(i)
		break
	}
	assert.Equal(t, 1, list.Len())
	for range list.All() {
		require.NoError(t, s.Close()) // no value is left
	}
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

// TestDequesAreRangedOnce: a loop over a deque ends, shows none of its values twice, and shows each
// value that stays, for any pushes and pops of its body.
func TestDequesAreRangedOnce(t *testing.T) {
	const n, mark = 6, 100
	type deque = container.Deque[int32]
	pop := func(d *deque) { d.PopFront() }
	turn := func(d *deque) { v, _ := d.PopFront(); d.PushBack(v + mark) }
	for _, test := range []struct {
		what  string
		body  func(d *deque)
		shown []int32 // 0 to 3, and the values that the body pushes, from mark on
	}{
		{"pop the current one", pop, []int32{0, 1, 2, 3}},
		{"pop two", func(d *deque) { pop(d); pop(d) }, []int32{0, 2}},
		{"pop the last", func(d *deque) { d.PopBack() }, []int32{0, 1}},
		{"push", func(d *deque) { d.PushBack(mark) }, []int32{0, 1, 2, 3, mark, mark}},
		// round the ring
		{"push to the front", func(d *deque) { d.PushFront(mark) }, []int32{0, 1, 2, 3, mark, mark}},
		{"turn", turn, []int32{0, 1, 2, 3, mark, mark + 1}},
		{"turn twice", func(d *deque) { turn(d); turn(d) }, []int32{0, 2, mark}},
		{"clear", (*deque).Clear, []int32{0}},
		{"clear and push", func(d *deque) { d.Clear(); d.PushBack(mark) }, []int32{0}},
	} {
		for front := range n { // anywhere in the ring
			s := open(t).Scratch(0, 0).Open("a")
			d := container.NewDeque(s, ids, n)
			for range front {
				d.PushBack(0)
				d.PopFront()
			}
			for i := range int32(4) {
				d.PushBack(i)
			}
			var shown []int32
			for i, v := range d.All() {
				require.Same(t, d.At(i), v, test.what)
				shown = append(shown, *v)
				require.LessOrEqual(t, len(shown), n, test.what)
				test.body(&d)
			}
			assert.Equal(t, test.shown, shown, "%s, front %d", test.what, front)
			require.NoError(t, s.Close())
		}
	}
}

// TestDequesAtRandomWhileRanging is TestDequesAreRangedOnce with random bodies: values are
// numbered, and each that stays from begin to end is shown.
func TestDequesAtRandomWhileRanging(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for seed := range int64(2000) {
		random := rand.New(rand.NewSource(seed))
		s := scratch.Open("a")
		n, next := 1+random.Intn(6), int32(0)
		d := container.NewDeque(s, ids, n)
		there := map[int32]bool{}
		push := func(push func(int32) bool) {
			next++
			push(next)
		}
		pop := func(pop func() (int32, bool)) {
			v, _ := pop()
			delete(there, v)
		}
		for range random.Intn(2 * n) {
			push(d.PushBack)
			if random.Intn(3) == 0 {
				pop(d.PopFront)
			}
		}
		for _, v := range d.All() {
			there[*v] = true
		}
		shown := map[int32]bool{}
		for i, v := range d.All() {
			require.Same(t, d.At(i), v)
			require.False(t, shown[*v], "%d twice", *v)
			shown[*v] = true
			for range random.Intn(4) {
				switch random.Intn(5) {
				case 0, 1:
					push(d.PushBack)
				case 2:
					pop(d.PopFront)
				case 3:
					pop(d.PopBack)
				case 4:
					push(d.PushFront)
				}
			}
		}
		for v := range there {
			require.True(t, shown[v], "seed %d: %d was there and isn't shown", seed, v)
		}
		require.NoError(t, s.Close())
	}
}

// sequence is a List or a Deque, for comparison with a slice; methods that it lacks are nil.
type sequence struct {
	pushBack, pushFront func(point) bool
	popBack, popFront   func() (point, bool)
	removeSwap          func(int)
	at                  func(int) *point
	all                 iter.Seq2[int, *point]
	len                 func() int
	clear               func()
}

// aSlice is the model: a slice of capacity n.
type aSlice struct {
	points []point
	n      int
}

func (m *aSlice) insert(at int, x point) bool {
	if len(m.points) == m.n {
		return false
	}
	m.points = slices.Insert(m.points, at, x)
	return true
}

func (m *aSlice) pop(last bool) (x point, ok bool) {
	if len(m.points) == 0 {
		return point{}, false
	}
	at := 0
	if last {
		at = len(m.points) - 1
	}
	x = m.points[at]
	m.points = slices.Delete(m.points, at, at+1)
	return x, true
}

// TestSequencesAreSlices plays at random with a List, a Deque, and slices.
func TestSequencesAreSlices(t *testing.T) {
	for name, make := range map[string]func(s scope.Scope, n int) sequence{
		"List": func(s scope.Scope, n int) sequence {
			l := container.NewList(s, points, n)
			return sequence{pushBack: l.Push, popBack: l.Pop, removeSwap: l.RemoveSwap,
				at: l.At, all: l.All(), len: l.Len, clear: l.Clear}
		},
		"Deque": func(s scope.Scope, n int) sequence {
			d := container.NewDeque(s, points, n)
			return sequence{pushBack: d.PushBack, pushFront: d.PushFront, popBack: d.PopBack, popFront: d.PopFront,
				at: d.At, all: d.All(), len: d.Len, clear: d.Clear}
		},
	} {
		scratch := open(t).Scratch(0, 0)
		for seed := range int64(40) {
			random := rand.New(rand.NewSource(seed))
			s := scratch.Open("a")
			n := random.Intn(20)
			q, model := make(s, n), aSlice{n: n}
			for step := range 400 {
				playSequence(t, random, q, &model, point{int32(step), random.Int31()})
				require.Equal(t, len(model.points), q.len(), "%s, seed %d", name, seed)
				i := 0
				for at, p := range q.all {
					require.Equal(t, i, at)
					require.Equal(t, model.points[i], *p, "%s, seed %d", name, seed)
					require.Same(t, p, q.at(i))
					i++
				}
				require.Equal(t, len(model.points), i)
			}
			require.NoError(t, s.Close())
		}
	}
}

func playSequence(t *testing.T, random *rand.Rand, q sequence, model *aSlice, x point) {
	size := len(model.points)
	switch op := random.Intn(60); {
	case op < 20:
		require.Equal(t, model.insert(size, x), q.pushBack(x))
	case op < 35 && q.pushFront != nil:
		require.Equal(t, model.insert(0, x), q.pushFront(x))
	case op < 45:
		want, some := model.pop(true)
		got, ok := q.popBack()
		require.Equal(t, some, ok)
		require.Equal(t, want, got)
	case op < 54 && q.popFront != nil:
		want, some := model.pop(false)
		got, ok := q.popFront()
		require.Equal(t, some, ok)
		require.Equal(t, want, got)
	case op < 54 && q.removeSwap != nil && size > 0:
		i := random.Intn(size)
		q.removeSwap(i)
		model.points[i] = model.points[size-1]
		model.points = model.points[:size-1]
	case op < 59 && size > 0:
		i := random.Intn(size)
		q.at(i).Y++
		model.points[i].Y++
	case op == 59:
		q.clear()
		model.points = nil
	}
}

// TestSequencesPanicAsSlicesDo: an index past the values panics, also after the values were
// removed.
func TestSequencesPanicAsSlicesDo(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	l, d := container.NewList(s, points, 4), container.NewDeque(s, points, 4)
	at := func(i int) []func() {
		return []func(){func() { l.At(i) }, func() { l.RemoveSwap(i) }, func() { d.At(i) }}
	}
	empty := func() {
		for _, use := range at(0) {
			assert.PanicsWithError(t, "runtime error: index out of range [0] with length 0", use)
		}
	}
	empty()
	for range 2 {
		l.Push(point{})
		d.PushFront(point{})
	}
	for _, use := range at(2) {
		assert.PanicsWithError(t, "runtime error: index out of range [2] with length 2", use)
	}
	for _, use := range at(-1) { // the text's number differs between processors
		assert.Panics(t, use)
	}
	assert.Equal(t, 2, cap(l.Slice()), "append can't run into what Push gives")
	require.NoError(t, s.Close())
	empty()
	assert.Nil(t, l.Slice())
	for _, pop := range []func() (point, bool){d.PopFront, d.PopBack, l.Pop} {
		got, ok := pop()
		assert.False(t, ok)
		assert.Zero(t, got)
	}
	assert.PanicsWithError(t, "scope: BUG: PushFront to a Deque in a closed scope of scratch 0.0",
		func() { d.PushFront(point{}) })
}
