package scope_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/model/clib"
	"github.com/upfront-mem/upfront/tests/step"
)

// fill puts each kind of finalizer into s, with IDs from 0, the last one into a scope in s, which
// fill returns.
func fill(s scope.Scope) scope.Scope {
	marks.Slice(s, 2)[1].ID = 1
	s.Own(&closer{id: 2})
	s.Defer(func() { closed = append(closed, 3) })
	inner := s.Open("inner")
	newMark(inner, 4, 0)
	return inner
}

func TestFinalizersRunOnceNewestFirstWhateverHappens(t *testing.T) {
	ends := map[string]func(scope.Scope) error{
		"return": func(scope.Scope) error { return nil },
		"error":  func(scope.Scope) error { return errMark },
		"panic":  func(scope.Scope) error { panic("boom") },
		"Goexit": func(scope.Scope) error { runtime.Goexit(); return nil },
		"full":   func(s scope.Scope) error { panic(s.AllocUnzeroed(1<<30, 8)) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			scratch := open(t).Scratch(0, 0)
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { _ = recover() }()
				_ = scratch.Do("outer", func(s scope.Scope) error { return end(fill(s)) })
			})
			wg.Wait()
			assert.Equal(t, []int64{4, 3, 2, 1, 0}, closed)
			assert.Zero(t, scratch.Depth())
			assert.Zero(t, scratch.Stats().Used)
			assert.Zero(t, scratch.Stats().Owned)
		})
	}
}

// TestOwnInThePlaceOfADefer: the function that ran in a place doesn't run again for its next value.
func TestOwnInThePlaceOfADefer(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("first")
	s.Defer(func() { closed = append(closed, 1) })
	require.NoError(t, s.Close())
	s = scratch.Open("second")
	s.Own(&closer{id: 2})
	require.NoError(t, s.Close())
	assert.Equal(t, []int64{1, 2}, closed)
}

func TestTryNewOfAnObject(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	m := marks.TryNew(s)
	assert.Zero(t, *m)
	m.ID = 7
	s.BytesUnzeroed(int(s.Free()), 1)
	assert.Nil(t, marks.TryNew(s))
	assert.ErrorIs(t, s.Close(), scope.ErrFull)
	assert.Equal(t, []int64{7}, closed, "what was refused has no finalizer")
}

func TestFailingFinalizersDontStopTheOthers(t *testing.T) {
	scratch, s := opened(t, "a")
	bad := errors.New("closer failed")
	newMark(s, 1, doFail)
	newMark(s, 2, doPanic)
	s.Own(&closer{id: 3, err: bad})
	s.Defer(func() { closed = append(closed, 4); panic("deferred") })
	newMark(s, 5, 0)
	err := s.Close()
	assert.Equal(t, []int64{5, 4, 3, 2, 1}, closed)
	assert.ErrorIs(t, err, errMark)
	assert.ErrorIs(t, err, bad)
	assert.ErrorContains(t, err, "finalizer of scope_test.mark panicked: mark panics")
	assert.ErrorContains(t, err, `scratch 0.0, scope "a": a deferred function panicked: deferred`)
	assert.Equal(t, 4, scratch.Stats().Failed)
	assert.EqualValues(t, 5, scratch.Stats().Finalizers)
	assert.Zero(t, scratch.Depth())

	s = scratch.Open("many")
	for _, in := range []scope.Scope{s, s.Temp(1000)} {
		for range 20 {
			newMark(in, 0, doFail)
		}
	}
	assert.ErrorContains(t, s.Close(), "\nand 24 more errors", "of both")
}

// TestFinalizerMayNotUseItsOwnScope: nor may a finalizer of temporaries. Close returns its
// refusals, because no other call can.
func TestFinalizerMayNotUseItsOwnScope(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for _, whose := range []func(s scope.Scope) scope.Scope{
		func(s scope.Scope) scope.Scope { return s },
		func(s scope.Scope) scope.Scope { return s.Temp(20480) },
	} {
		for _, use := range []func(s scope.Scope){
			func(s scope.Scope) { points.New(s) },
			func(s scope.Scope) { points.TryNew(s) },
			func(s scope.Scope) { newMark(s, 9, 0) },
		} {
			closed = nil
			s := scratch.Open("a")
			newMark(s, 1, 0)
			var inside error
			whose(s).Defer(func() { inside = s.Close() })
			whose(s).Defer(func() { use(s) })
			assert.ErrorContains(t, s.Close(), `BUG: allocation in scope "a" of scratch 0.0 while its finalizers run`)
			assert.EqualError(t, inside, `scope: BUG: Close of scope "a" of scratch 0.0 while its finalizers run`)
			assert.Equal(t, []int64{1}, closed)
			assert.Zero(t, scratch.Depth())
		}
	}
}

func TestOwnOnAFullScopeClosesAtOnce(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for room := range uint64(40) { // each remainder of a scope around the 16 bytes of a finalizer
		var given []*closer
		err := scratch.Do("a", func(s scope.Scope) error {
			s.AllocUnzeroed(s.Free()-room, 1)
			for {
				given = append(given, &closer{err: errMark})
				s.Own(given[len(given)-1])
			}
		})
		assert.ErrorIs(t, err, scope.ErrFull)
		assert.ErrorIs(t, err, errMark, "what its Close said is not lost")
		for _, c := range given {
			assert.Equal(t, 1, c.times, "room for %d bytes", room)
		}
	}
}

func TestOwnAndDeferOfNil(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	assert.PanicsWithError(t, "scope: BUG: Own of nil", func() { s.Own(nil) })
	assert.PanicsWithError(t, "scope: BUG: Defer of nil", func() { s.Defer(nil) })
	assert.PanicsWithError(t, "scope: BUG: Keep of nil", func() { s.Keep(nil) })
	require.NoError(t, s.Close())
}

const gone = "scope: BUG: CloseNow of a value that was closed, run or cancelled before"

func TestCancelForgets(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	a, b, c := &closer{id: 1}, &closer{id: 2}, &closer{id: 3}
	s.Own(a)
	held := s.Own(b)
	assert.Same(t, b, held.Value())
	assert.True(t, held.Cancel())
	assert.False(t, held.Cancel(), "it is forgotten already")
	assert.Nil(t, held.Value())
	assert.EqualError(t, held.CloseNow(), gone)
	s.Own(c) // takes b's place; the older node of b must not close c
	newMark(s, 4, 0)
	require.NoError(t, s.Close())
	assert.Equal(t, []int64{4, 3, 1}, closed)
	assert.Zero(t, b.times)
}

func TestCloseNowRunsOnceOutOfItsPlace(t *testing.T) {
	scratch, s := opened(t, "a")
	bad := &closer{id: 1, err: errMark}
	first := s.Own(bad)
	second := s.Defer(func() { closed = append(closed, 2) })
	s.Own(&closer{id: 3})
	inner := s.Open("covers it: nothing is allocated, so that is fine")
	assert.ErrorIs(t, first.CloseNow(), errMark)
	require.NoError(t, second.CloseNow())
	require.NoError(t, inner.Close())
	err := first.CloseNow()
	assert.EqualError(t, err, gone)
	assert.ErrorIs(t, err, scope.ErrClosed)
	assert.Equal(t, []int64{1, 2}, closed)
	require.NoError(t, s.Close())
	assert.Equal(t, []int64{1, 2, 3}, closed)
	assert.Equal(t, 1, bad.times)
	stats := scratch.Stats()
	assert.EqualValues(t, 3, stats.Finalizers)
	assert.Zero(t, stats.Owned)
	assert.Zero(t, stats.Failed, "the error was the caller's")
}

func TestOwnedPlacesAreGivenBack(t *testing.T) {
	scratch, s := opened(t, "a")
	for range 100 {
		require.True(t, s.Own(&closer{}).Cancel())
		require.NoError(t, s.Defer(func() {}).CloseNow())
		require.Error(t, recovered(func() { _ = s.Defer(func() { panic(errMark) }).CloseNow() }))
	}
	handles := make([]scope.Owned, 8)
	for i := range handles {
		handles[i] = s.Keep(i)
	}
	assert.Equal(t, 8, scratch.Stats().Owned)
	late := &closer{id: 9}
	assert.PanicsWithError(t,
		`budget "test": scratch 0.0: all 8 places for owned values are taken: scope "a" asked for one more; `+
			`raise limits.owned in the plan to 9 or more`, func() { s.Own(late) })
	assert.Equal(t, 1, late.times, "nothing is lost")
	for i, h := range handles {
		assert.Equal(t, i, h.Value())
	}
	handles[3].Cancel()
	assert.Equal(t, "again", s.Keep("again").Value())
	require.NoError(t, s.Close())
	for _, h := range handles {
		assert.Nil(t, h.Value())
	}
	assert.Zero(t, scratch.Stats().Owned)
}

func TestOwnedOfAnotherLife(t *testing.T) {
	b := open(t)
	s := b.Scratch(0, 0).Open("a")
	old := s.Keep("old")
	require.NoError(t, s.Close())
	s = b.Scratch(0, 0).Open("a")
	s.Keep("new")
	assert.Nil(t, old.Value(), "another value has its place")
	assert.False(t, old.Cancel())
	young := s.Keep("young")
	require.NoError(t, s.Close())
	require.NoError(t, b.Close())
	assert.Nil(t, young.Value())
	ids := map[uint32]bool{}
	for range 100 {
		b = open(t)
		other := b.Scratch(0, 0).Open("a").Keep("other")
		ids[uint32(*(*uint64)(unsafe.Pointer(&other)))] = true
		_ = b.Close()
	}
	assert.Less(t, len(ids), 50, "ids are used again, so the list of arenas is as long as the most that were open "+
		"at once")

	b = open(t)
	s = b.Scratch(0, 0).Open("a")
	s.Keep("new")
	keep := s.Keep("new")
	assert.Nil(t, young.Value(), "a newer budget has its stack's id")
	assert.False(t, young.Cancel())
	assert.EqualError(t, young.CloseNow(), gone)
	assert.Equal(t, "new", keep.Value())
	require.NoError(t, s.Close())
}

const _ = -(unsafe.Sizeof(scope.Owned{}) ^ 16) // 16 bytes, as promised

// TestOwnedOfAnyWords: an Owned may come from a block with any content.
func TestOwnedOfAnyWords(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	assert.EqualError(t, scope.Owned{}.CloseNow(), gone, "the zero Owned names nothing")
	real := s.Keep("here")
	words := *(*[2]uint64)(unsafe.Pointer(&real))
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		forged := words
		forged[random.IntN(2)] ^= 1 << random.IntN(64)
		h := *(*scope.Owned)(unsafe.Pointer(&forged))
		require.Nil(t, h.Value())
		require.False(t, h.Cancel())
		require.Error(t, h.CloseNow())
	}
	assert.Equal(t, "here", real.Value())
	require.NoError(t, s.Close())
}

// TestCFinalizerThatPanics: a finalizer of C calls Go, which panics. Older finalizers still run,
// the error names the finalizer that panicked, and the region can be loaded again.
func TestCFinalizerThatPanics(t *testing.T) {
	if arena_c.Asan {
		t.Skip("AddressSanitizer doesn't bear a panic through frames of C: go test ./scope runs it")
	}
	b := open(t)
	clib.Finalize = func(id int64) {
		closed = append(closed, id)
		if id%4 == 1 {
			panic("called from C")
		}
	}
	load := func(ids ...int64) error {
		return inLevel(t, b, func(s scope.Scope) error {
			header, generation := s.C()
			for _, id := range ids {
				require.Equal(t, arena_c.OK, clib.Defer(header, generation, id))
			}
			newMark(s, 100, 0)
			return nil
		})
	}
	require.NoError(t, load(0, 1, 4, 5, 8))
	err := b.Region("level").Rewind(t.Context())
	assert.Equal(t, []int64{100, 8, 5, 4, 1, 0}, closed)
	assert.EqualError(t, err, "budget \"test\": region level, scope \"level\": a finalizer of C panicked: called "+
		"from C\nbudget \"test\": region level, scope \"level\": a finalizer of C panicked: called from C")
	require.NoError(t, load(0), "the region is good")
}

// million is an object, or an owned value. Its finalizer ends as Do selects, and measures the stack
// if Look isn't 0.
type million struct{ Do, Look int64 }

const (
	millionWell = iota
	millionFails
	millionPanics
	millionExits
)

var (
	errMillion   = errors.New("one of a million")
	millionStack uint64 // bytes of stacks, measured by a finalizer in the middle
	millionRan   int
	millions     = scope.Object((*million).Close)
)

func (m *million) Close() error {
	millionRan++
	if m.Look != 0 {
		millionStack = stackInUse()
	}
	switch m.Do {
	case millionFails:
		return errMillion
	case millionPanics:
		panic(errMillion)
	case millionExits:
		runtime.Goexit()
	}
	return nil
}

func stackInUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.StackInuse
}

// TestMillionFinalizers: the stack is constant however the finalizers end, and the errors that
// aren't kept are counted. Time is linear in their number: quadratic time would not end.
func TestMillionFinalizers(t *testing.T) {
	n, values := step.Pick(50_000, 1_000_000, 1_000_000), 20_000
	if instrumented {
		n = 50_000
	}
	b, err := budget.Open(budget.Plan{Name: "million", Scratch: budget.ScratchPlan{Workers: 1, Size: 32 * budget.MiB},
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Limits:  budget.Limits{Owned: values}, Pages: budget.Pages{Prefault: budget.Off}})
	require.NoError(t, err)
	defer b.Close()
	for do := int64(millionWell); do <= millionExits; do++ {
		closeMillion(t, b, n, do, func(s scope.Scope, m million) { *millions.New(s) = m })
		closeMillion(t, b, values, do, func(s scope.Scope, m million) { s.Own(&m) })
	}
}

// closeMillion makes n objects in a scope and closes it, on a goroutine that they may end.
func closeMillion(t *testing.T, b *budget.Budget, n int, do int64, add func(s scope.Scope, m million)) {
	s := b.Scratch(0, 0).Open("million")
	for i := range n {
		m := million{Do: do}
		if i == n/2 {
			m.Look = 1
		}
		add(s, m)
	}
	millionRan, millionStack = 0, 0
	before, ended := stackInUse(), make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- s.Close()
	}()
	err := <-ended // nil if the goroutine ended before
	require.Equal(t, n, millionRan)
	require.Zero(t, b.Scratch(0, 0).Depth())
	assert.LessOrEqual(t, int64(millionStack)-int64(before), int64(1<<20), "constant")
	if do == millionFails || do == millionPanics {
		require.ErrorContains(t, err, errMillion.Error())
		var many interface{ Unwrap() []error }
		require.ErrorAs(t, err, &many)
		assert.ErrorContains(t, err, fmt.Sprintf("\nand %d more errors", n-len(many.Unwrap())))
	}
}
