package scope_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// broad is more than half of a chunk, and vast more than all of one.
type (
	broad [700]uint64
	vast  [1500]uint64
)

var (
	bytes1 = scope.Plain[byte]()
	broads = scope.Plain[broad]()
	vasts  = scope.Plain[vast]()
)

func values[T any](l *scope.List[T]) (all []T) {
	for i, x := range l.All() {
		if i != len(all) {
			panic(i)
		}
		all = append(all, *x)
	}
	return all
}

// TestListsBeside: two lists in one scope, with other allocations between, equal Go slices until
// the scope is full. Then the scope has no room for a chunk of one value, and still allocates.
func TestListsBeside(t *testing.T) {
	rounds := step.Pick(40, 300, 5000)
	fulls := 0
	scratches := open(t).Scratches(0)
	scratch := scratches.Scratch(0)
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 41))
		s := scratch.Open("s")
		s.Bytes(r.IntN(scratchSize))
		a, b := points.List(s), bytes1.List(s)
		var as []point
		var bs []byte
		at := map[int]*point{}
		for range r.IntN(4000) {
			switch r.IntN(8) {
			case 0, 1, 2, 3:
				x := point{r.Int32(), r.Int32()}
				if a.TryPush(x) {
					as = append(as, x)
				} else {
					fulls++
					require.Less(t, s.Free(), uint64(16+8+8), "seed %d", seed)
				}
			case 4, 5, 6:
				if x := byte(r.Uint32()); b.TryPush(x) {
					bs = append(bs, x)
				} else {
					fulls++
					require.Less(t, s.Free(), uint64(16+1+8), "seed %d", seed)
				}
			case 7:
				s.TryAllocUnzeroed(uint64(r.IntN(20)), 1)
				if r.IntN(8) == 0 {
					inner := s.Open("inner")
					require.False(t, a.TryPush(point{}) || b.TryPush(0), "covered")
					require.Len(t, values(&a), len(as), "a covered scope is read")
					require.NoError(t, inner.Close())
				}
			}
			if r.IntN(50) == 0 {
				for i, x := range a.All() {
					at[i] = x
				}
			}
		}
		require.Equal(t, as, values(&a), "seed %d", seed)
		require.Equal(t, bs, values(&b))
		require.Equal(t, [2]int{len(as), len(bs)}, [2]int{a.Len(), b.Len()})
		for i, p := range at {
			require.Equal(t, as[i], *p, "a value that moved")
		}
		other := scratches.Scratch(1).Open("other")
		before := other.Free()
		if list := points.Clone(other, as); uint64(len(list)*8) != before-other.Free() {
			t.Fatal("a control: a Clone takes what the values take")
		}
		before = other.Free()
		list := a.Slice(other)
		require.Equal(t, len(as)*8, int(before-other.Free()), "the exact size")
		require.True(t, slices.Equal(as, list) && len(list) == cap(list))
		_, _ = s.Close(), other.Close()
		if t.Failed() {
			return
		}
	}
	assert.NotZero(t, fulls)
}

// TestListSizes: a chunk is twice as large as the one before it, up to 8 KiB, and has room for at
// least one value.
func TestListSizes(t *testing.T) {
	sizes := func(push func(s scope.Scope) func()) (all []int) {
		scratch, s := opened(t, "s")
		one, used := push(s), scratch.Stats().Used
		for len(all) < 8 {
			one()
			if now := scratch.Stats().Used; now != used {
				all, used = append(all, int(now-used)), now
			}
		}
		require.NoError(t, s.Close())
		return all
	}
	assert.Equal(t, []int{128, 256, 512, 1024, 2048, 4096, 8192, 8192}, sizes(func(s scope.Scope) func() {
		l := points.List(s)
		return func() { l.Push(point{}) }
	}))
	assert.Equal(t, slices.Repeat([]int{16 + 5600}, 8), sizes(func(s scope.Scope) func() {
		l := broads.List(s)
		return func() { l.Push(broad{}) }
	}))
	scratch, s := opened(t, "s")
	l := vasts.List(s)
	for l.TryPush(vast{7}) {
	}
	assert.Equal(t, scratchSize/(16+12000), l.Len())
	assert.EqualValues(t, l.Len()*(16+12000), scratch.Stats().Used)
	nothing := empties.List(scratch.Open("inner"))
	for range 2 * scratchSize {
		nothing.Push(struct{}{})
	}
	n := 0
	for range nothing.All() {
		n++
	}
	assert.Equal(t, 2*scratchSize, n)
	assert.Len(t, nothing.Slice(scratch.Open("innermost")), n)
}

// TestListThatGrowsMeanwhile: All visits values that its body pushes, and ends with the body.
func TestListThatGrowsMeanwhile(t *testing.T) {
	_, s := opened(t, "s")
	l := longs.List(s)
	for range l.All() {
		t.Error("it is empty")
	}
	assert.Empty(t, l.Slice(s))
	l.Push(1)
	for _, x := range l.All() {
		if *x < 2000 {
			l.Push(*x + 1)
		}
		*x *= 2
	}
	n := uint64(0)
	for _, x := range l.All() {
		if n++; *x != 2*n {
			t.Fatal(n, *x)
		}
		if n == 1500 {
			break
		}
	}
	assert.EqualValues(t, 1500, n)
	assert.Equal(t, 2000, l.Len())
	own := l.Slice(s) // in its own scope
	assert.EqualValues(t, 4000, own[1999])
	l.Push(7)
	assert.Equal(t, 2001, l.Len())
	assert.Len(t, own, 2000)
}

func TestListThatIsFull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("load", func(s scope.Scope) error {
		s.Bytes(scratchSize - 16 - 3*8 - 5)
		l := points.List(s)
		for {
			l.Push(point{1, 2})
			assert.LessOrEqual(t, l.Len(), 3)
		}
	})
	assert.EqualError(t, err,
		`budget "test": scratch 0.0 is full: scope "load" asked for 24 bytes, 0 of 65536 are free; `+
			`held by "load" (65536 bytes); raise scratch.size in the plan to 65560 or more`)
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.Zero(t, scratch.Stats().Used)
	s := scratch.Open("s")
	l := points.List(s)
	for l.TryPush(point{3, 4}) {
	}
	assert.ErrorIs(t, s.Err(), scope.ErrFull)
	err = scratch.Do("into", func(into scope.Scope) error { l.Slice(into); return nil })
	assert.ErrorIs(t, err, scope.ErrFull, "its slice in another scope, too")
	assert.Equal(t, point{3, 4}, values(&l)[l.Len()-1], "what it has stays")
}

func TestListMisused(t *testing.T) {
	scratch, s := opened(t, "s")
	l := points.List(s)
	l.Push(point{1, 2})
	inner := s.Open("inner")
	assert.ErrorContains(t, recovered(func() { l.Push(point{}) }), `in scope "s" of scratch 0.0 while scope "inner"`)
	assert.ErrorContains(t, recovered(func() { points.List(s) }),
		`List in scope "s" of scratch 0.0 while scope "inner"`)
	assert.False(t, l.TryPush(point{}))
	require.NoError(t, inner.Close())
	_, err := marks.Make(s, func(*mark) error {
		mine := points.List(s)
		for range 100 {
			mine.Push(point{})
		}
		assert.ErrorContains(t, recovered(func() {
			for range 100 {
				l.Push(point{})
			}
		}), "Push inside a constructor to a List that is older")
		return nil
	})
	require.NoError(t, err)
	require.Error(t, s.Close())
	for what, fn := range map[string]func(){
		"Push":     func() { l.Push(point{}) },
		"All of":   func() { values(&l) },
		"Slice of": func() { l.Slice(scratch.Open("into")) },
		"List in":  func() { points.List(s) },
	} {
		err := recovered(fn)
		assert.ErrorIs(t, err, scope.ErrClosed, what)
		assert.ErrorContains(t, err, "in a closed scope of scratch 0.0", what)
	}
	assert.False(t, l.TryPush(point{}))
	assert.ErrorIs(t, recovered(func() {
		s := scratch.Open("once more")
		l := points.List(s)
		l.Push(point{})
		l.Push(point{})
		for range l.All() {
			_ = s.Close()
		}
	}), scope.ErrClosed, "the body closes the scope")
	assert.EqualError(t, recovered(func() { scope.Maker[point]{}.List(scratch.Open("s")) }),
		"scope: BUG: a Maker that was never declared: make it with scope.Plain or scope.Object")
}

// TestListInAState: a List can't be in a state; its Slice can.
func TestListInAState(t *testing.T) {
	b, err := budget.Open(budget.Plan{Name: "test", Scratch: budget.ScratchPlan{Workers: 1, Size: scratchSize},
		Regions: []budget.RegionPlan{{Name: "level", Size: scratchSize, State: true}}})
	require.NoError(t, err)
	defer b.Close()
	level := b.Region("level")
	_, err = budget.Load(t.Context(), level, func(s scope.Scope) (*point, error) {
		_, root := save.Begin(level, s, points)
		l := longs.List(s)
		assert.ErrorContains(t, recovered(func() { l.Push(1) }), "Push to a List in a state: make the List on scratch")
		beside := longs.List(b.Scratch(0, 0).Open("beside"))
		beside.Push(1)
		assert.Len(t, beside.Slice(s), 1)
		return root, nil
	})
	require.NoError(t, err)
}

func TestListsOnTemporaries(t *testing.T) {
	_, s := opened(t, "s")
	temp := s.Temp(4000)
	l := points.List(temp)
	for l.TryPush(point{5, 6}) {
	}
	assert.Greater(t, l.Len(), 450)
	assert.Equal(t, slices.Repeat([]point{{5, 6}}, l.Len()), l.Slice(s))
	assert.ErrorIs(t, temp.Close(), scope.ErrFull)
	assert.ErrorIs(t, recovered(func() { values(&l) }), scope.ErrClosed)
}

// TestListHoldsNoAddress: the bytes of a list are the same in two budgets.
func TestListHoldsNoAddress(t *testing.T) {
	var images [2]string
	for i := range images {
		_, s := opened(t, "s")
		l := longs.List(s)
		for x := range uint64(100) {
			l.Push(x)
		}
		var words []uint64
		for _, x := range l.All() {
			if *x == 0 || *x == 14 {
				words = append(words, *(*uint64)(unsafe.Add(unsafe.Pointer(x), -16)),
					*(*uint64)(unsafe.Add(unsafe.Pointer(x), -8)))
			}
		}
		images[i] = fmt.Sprint(words)
	}
	assert.Equal(t, "[128 14 256 30]", images[0])
	assert.Equal(t, images[0], images[1])
}

func TestListAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' checks allocate: go test ./scope runs it")
	}
	scratches := open(t).Scratches(0)
	sum := int32(0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s, out := scratches.Scratch(0).Open("s"), scratches.Scratch(1).Open("out")
		a, b := points.List(s), points.List(s)
		for i := range int32(1000) {
			a.Push(point{i, 1})
			if i%3 == 0 {
				b.Push(point{i, 2})
			}
		}
		for _, x := range a.All() {
			sum += x.Y
		}
		for _, x := range b.Slice(out) {
			sum += x.Y
		}
		_, _ = s.Close(), out.Close()
	}))
	assert.Equal(t, int32(101*(1000+2*334)), sum)
}
