package scope_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/model/clib"
)

// fill puts one of each finalizer into s, with IDs from 1.
func fill(s scope.Scope) *closer {
	newMark(s, 1, 0)
	c := &closer{id: 2}
	s.Own(c)
	s.Defer(func() { closed = append(closed, 3) })
	t := s.Open("inner")
	newMark(t, 4, 0)
	return c
}

func TestFinalizersRunOnceNewestFirstWhateverHappens(t *testing.T) {
	ends := map[string]func(scope.Scope) error{
		"return": func(scope.Scope) error { return nil },
		"error":  func(scope.Scope) error { return errMark },
		"panic":  func(scope.Scope) error { panic("boom") },
		"Goexit": func(scope.Scope) error { runtime.Goexit(); return nil },
		"full":   func(s scope.Scope) error { panic(s.Open("x").AllocUnzeroed(1<<30, 8)) },
		"tables": func(s scope.Scope) error {
			return s.Open("x").Do("y", func(s scope.Scope) error { newMark(s, 5, 0); return nil })
		},
		"closing": func(s scope.Scope) error { return errors.Join(s.Open("x").Close(), nil) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			scratch := open(t).Scratch(0, 0)
			var wg sync.WaitGroup
			wg.Add(1)
			go func() {
				defer wg.Done()
				defer func() { _ = recover() }()
				_ = scratch.Do("outer", func(s scope.Scope) error {
					fill(s)
					return end(innermost(scratch))
				})
			}()
			wg.Wait()
			want := []int64{4, 3, 2, 1}
			if name == "tables" {
				want = []int64{5, 4, 3, 2, 1}
			}
			assert.Equal(t, want, closed)
			assert.Zero(t, scratch.Depth())
			assert.Zero(t, scratch.Stats().Used)
			assert.Zero(t, scratch.Stats().Owned)
		})
	}
}

// innermost opens and gives back a scope on top, so that a test can go on in the topmost one.
func innermost(scratch scope.Scratch) scope.Scope { return scratch.Open("top") }

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

func TestPanicAfterAnUnhandledFullIsTheFull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("a", func(s scope.Scope) error {
		p := points.TrySlice(s, 1<<20)
		_ = p[0]
		return nil
	})
	require.ErrorIs(t, err, scope.ErrFull)
	assert.ErrorContains(t, err, "; then: panic: runtime error: index out of range [0] with length 0")
}

func TestFailingFinalizersDontStopTheOthers(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
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
}

func TestGoexitInAFinalizer(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s := scratch.Open("a")
		newMark(s, 1, 0)
		s.Defer(func() { closed = append(closed, 2); runtime.Goexit() })
		newMark(s, 3, 0)
		_ = s.Close()
	}()
	<-done
	assert.Equal(t, []int64{3, 2, 1}, closed)
	assert.Zero(t, scratch.Depth(), "the rewind happened too")
}

func TestFinalizerMayNotUseItsOwnScope(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	var inside error
	s.Defer(func() { inside = s.Close() })
	s.Defer(func() { points.New(s) })
	err := s.Close()
	assert.ErrorContains(t, err, `allocation in scope "a" of scratch 0.0 while its finalizers run`)
	assert.EqualError(t, inside, `scope: BUG: Close of scope "a" of scratch 0.0 while its finalizers run`)
	assert.Zero(t, scratch.Depth())
}

func TestFinalizerOfATemporaryMayNotUseItsScope(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	newMark(s, 1, 0)
	var inside error
	s.Temp(20480).Defer(func() { inside = s.Close() })
	s.Temp(20480).Defer(func() { points.New(s) })
	s.Temp(20480).Defer(func() { runtime.KeepAlive(newMark(s, 9, 0)) })
	err := s.Close()
	assert.ErrorContains(t, err, `BUG: allocation in scope "a" of scratch 0.0 while its finalizers run`)
	assert.EqualError(t, inside, `scope: BUG: Close of scope "a" of scratch 0.0 while its finalizers run`)
	assert.Equal(t, []int64{1}, closed)
	assert.Zero(t, scratch.Depth())
}

func TestOwnOnAFullScopeClosesAtOnce(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	c := &closer{id: 9, err: errMark}
	err := scratch.Do("a", func(s scope.Scope) error {
		s.Bytes(int(s.Free()))
		s.Own(c)
		return nil
	})
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.ErrorIs(t, err, errMark, "what its Close said is not lost")
	assert.Equal(t, 1, c.times)

	var held []*closer
	err = scratch.Do("a", func(s scope.Scope) error {
		for i := int64(0); ; i++ {
			held = append(held, &closer{id: i})
			s.Own(held[i])
		}
	})
	assert.EqualError(t, err, `budget "test": scratch 0.0 is full: scope "a" asked for one more of 8 owned values; `+
		`raise limits.owned in the plan to 9 or more`)
	assert.Len(t, held, 9)
	for _, c := range held {
		assert.Equal(t, 1, c.times)
	}
}

func TestOwnAndDeferOfNil(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	assert.PanicsWithError(t, "scope: BUG: Own of nil", func() { s.Own(nil) })
	assert.PanicsWithError(t, "scope: BUG: Defer of nil", func() { s.Defer(nil) })
	require.NoError(t, s.Close())
}

func TestMakeThatFailsLeavesNothing(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	before := scratch.Stats()
	part := func(m *mark, end func() error) error {
		newMark(s, 7, 0)
		s.Own(&closer{id: 8})
		s.Open("left open")
		return end()
	}
	_, err := marks.Make(s, func(m *mark) error {
		newMark(s, 6, doPanic)
		return part(m, func() error { return errMark })
	})
	assert.ErrorContains(t, err, "mark panics", "what its parts' finalizers say is not lost")
	assert.Equal(t, []int64{8, 7, 6}, closed)
	closed = nil
	_, err = marks.Make(s, func(m *mark) error { return part(m, func() error { return errMark }) })
	assert.ErrorIs(t, err, errMark)
	assert.Equal(t, []int64{8, 7}, closed)
	assert.Panics(t, func() { marks.Make(s, func(m *mark) error { return part(m, func() error { panic("boom") }) }) })
	assert.Panics(t, func() { marks.Make(s, func(m *mark) error { s.AllocUnzeroed(1<<20, 1); return nil }) })
	after := scratch.Stats()
	assert.Equal(t, before.Used, after.Used)
	assert.Equal(t, before.Objects, after.Objects)
	assert.Equal(t, 1, scratch.Depth())
	closed = nil
	m, err := marks.Make(s, func(m *mark) error { m.ID = 1; newMark(s, 2, 0); return nil })
	require.NoError(t, err)
	assert.EqualValues(t, 1, m.ID)
	_ = s.Close()
	assert.Equal(t, []int64{1, 2}, closed, "an object dies before its parts")
}

const gone = "scope: BUG: CloseNow of what was closed, run or cancelled before"

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
	s.Own(c) // takes b's place; b's node, which is older, must not close it
	newMark(s, 4, 0)
	require.NoError(t, s.Close())
	assert.Equal(t, []int64{4, 3, 1}, closed)
	assert.Zero(t, b.times)
}

func TestCloseNowRunsOnceOutOfItsPlace(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
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

// TestCloseNowOfWhatPanics: the panic is the caller's, and the value is gone all the same.
func TestCloseNowOfWhatPanics(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	held := s.Defer(func() { panic("boom") })
	assert.PanicsWithValue(t, "boom", func() { _ = held.CloseNow() })
	assert.EqualError(t, held.CloseNow(), gone)
	require.NoError(t, s.Close())
}

func TestOwnedPlacesAreGivenBack(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	for range 100 {
		require.True(t, s.Own(&closer{}).Cancel())
		require.NoError(t, s.Defer(func() {}).CloseNow())
	}
	handles := make([]scope.Owned, 8)
	for i := range handles {
		handles[i] = s.Keep(i)
	}
	assert.Equal(t, 8, scratch.Stats().Owned)
	late := &closer{id: 9}
	assert.PanicsWithError(t, `budget "test": scratch 0.0 is full: scope "a" asked for one more of 8 owned values; `+
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

// TestOwnedLiesInABlock: an object in an arena has a Go value by its Owned.
func TestOwnedLiesInABlock(t *testing.T) {
	type player struct {
		ID   int32
		Conn scope.Owned
	}
	players := scope.Plain[player]()
	assert.EqualValues(t, 16, unsafe.Sizeof(scope.Owned{}))
	s := open(t).Scratch(0, 0).Open("a")
	p, conn := players.New(s), &closer{id: 7}
	p.Conn = s.Own(conn)
	assert.Same(t, conn, p.Conn.Value())
	require.NoError(t, p.Conn.CloseNow())
	assert.Equal(t, 1, conn.times)
	assert.EqualError(t, players.New(s).Conn.CloseNow(), gone, "the zero Owned names nothing")
	require.NoError(t, s.Close())
	assert.Equal(t, 1, conn.times)
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

// TestOwnedOfAnyWords: an Owned may come from a block that anything wrote.
func TestOwnedOfAnyWords(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
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

// TestFullScopeOwnsNoFile fills a scope and gives it files: none stays open.
func TestFullScopeOwnsNoFile(t *testing.T) {
	const descriptors = "/proc/self/fd"
	count := func() int {
		entries, err := os.ReadDir(descriptors)
		if err != nil {
			t.Skip("no", descriptors)
		}
		return len(entries)
	}
	scratch := open(t).Scratch(0, 0)
	before := count()
	for room := range uint64(40) { // every rest of a scope, around the 16 bytes of a finalizer
		err := scratch.Do("files", func(s scope.Scope) error {
			s.AllocUnzeroed(s.Free()-room, 1)
			for {
				f, err := os.Open(os.DevNull)
				require.NoError(t, err)
				s.Own(f)
			}
		})
		require.ErrorIs(t, err, scope.ErrFull)
		require.Equal(t, before, count(), "room for %d bytes", room)
	}
	control, err := os.Open(os.DevNull)
	require.NoError(t, err)
	assert.Equal(t, before+1, count(), "a file that nobody closes is seen")
	require.NoError(t, control.Close())
}

// TestCFinalizerThatPanics: a finalizer of C calls Go, which panics or ends the goroutine. The older ones
// run all the same, the error says which it was, and the region is loaded again.
func TestCFinalizerThatPanics(t *testing.T) {
	if arena_c.Asan {
		t.Skip("AddressSanitizer doesn't bear that frames of C are left by a panic")
	}
	b := open(t)
	clib.Finalize = func(id int64) {
		closed = append(closed, id)
		switch id % 4 {
		case 1:
			panic("called from C")
		case 2:
			runtime.Goexit()
		}
	}
	fill := func(s scope.Scope, ids ...int64) {
		header, generation := s.C()
		for _, id := range ids {
			require.Equal(t, arena_c.OK, clib.Defer(header, generation, id))
		}
		newMark(s, 100, 0)
	}
	load := func(ids ...int64) error {
		_, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*point, error) {
			fill(s, ids...)
			return points.New(s), nil
		})
		return err
	}
	require.NoError(t, load(0, 1, 4, 5, 8))
	err := b.Region("level").Rewind(t.Context())
	assert.Equal(t, []int64{100, 8, 5, 4, 1, 0}, closed)
	assert.EqualError(t, err, "region level, scope \"level\": a finalizer of C panicked: called from C\n"+
		"region level, scope \"level\": a finalizer of C panicked: called from C")
	require.NoError(t, load(0), "the region is good")

	closed = nil
	s := b.Scratch(0, 0).Open("leaves")
	fill(s, 0, 2, 4, 6, 8)
	done := make(chan bool)
	go func() {
		defer close(done)
		_ = s.Close()
		done <- true
	}()
	assert.False(t, <-done, "the goroutine ends")
	assert.Equal(t, []int64{100, 8, 6, 4, 2, 0}, closed)
	assert.Zero(t, b.Scratch(0, 0).Depth())
}

// million is an object whose finalizer ends as Do says, and looks at the stack where Look says so.
type million struct{ Do, Look int64 }

const (
	millionWell = iota
	millionFails
	millionPanics
	millionExits
)

var (
	errMillion   = errors.New("one of a million")
	millionStack uint64 // bytes of stacks, seen by one in the middle
	millionRan   int
	millions     = scope.Object(func(m *million) error {
		millionRan++
		if m.Look != 0 {
			millionStack = stackInUse()
		}
		return millionEnd(m.Do)
	})
)

func millionEnd(do int64) error {
	switch do {
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

// millionCloser is a Go value whose Close fails.
type millionCloser struct{}

func (millionCloser) Close() error {
	if millionRan++; millionRan%(heldMost/2) == 0 {
		millionStack = max(millionStack, stackInUse())
	}
	return errMillion
}

const heldMost = 20_000

// TestMillionFinalizers: time is linear in their number and the stack is constant, whatever they do; the
// errors beyond those that are kept are counted.
func TestMillionFinalizers(t *testing.T) {
	n := 1_000_000
	if testing.Short() || instrumented {
		n = 50_000
	}
	b, err := budget.Open(budget.Plan{Name: "million", Scratch: budget.ScratchPlan{Workers: 1, Size: 32 * budget.MiB},
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Limits:  budget.Limits{Owned: heldMost}, Pages: budget.Pages{Prefault: budget.Off}})
	require.NoError(t, err)
	defer b.Close()
	for _, c := range []struct {
		what string
		do   int64
	}{{"succeed", millionWell}, {"fail", millionFails}, {"panic", millionPanics}, {"end their goroutine", millionExits}} {
		linear := false
		for range 5 { // what else the machine does makes one of them slow, and never all
			tenth, _, _ := closeMillion(t, b, n/10, c.do)
			took, stack, err := closeMillion(t, b, n, c.do)
			t.Logf("%d finalizers that %s: %v, %v for a tenth, %d KiB of stack more in the middle", n, c.what, took, tenth, stack>>10)
			assert.LessOrEqual(t, stack, int64(1<<20), "constant")
			if c.do == millionFails || c.do == millionPanics {
				assertErrors(t, err, n)
			}
			if linear = took < 40*max(tenth, 5*time.Millisecond); linear {
				break
			}
		}
		assert.True(t, linear, "a square would be 100 times as much")
	}
	millionOwned(t, b, n)
}

// closeMillion makes so many in a scope and closes it, on a goroutine that they may end.
func closeMillion(t *testing.T, b *budget.Budget, n int, do int64) (took time.Duration, stack int64, err error) {
	s := b.Scratch(0, 0).Open("million")
	for i := range n {
		m := millions.New(s)
		if m.Do = do; i == n/2 {
			m.Look = 1
		}
	}
	millionRan, millionStack = 0, 0
	before, began, done := stackInUse(), time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		err = s.Close()
	}()
	<-done
	took = time.Since(began)
	require.Equal(t, n, millionRan)
	require.Zero(t, b.Scratch(0, 0).Depth())
	return took, int64(millionStack) - int64(before), err
}

// millionOwned closes a million values whose Close fails: as many at a time as a plan has places for.
func millionOwned(t *testing.T, b *budget.Budget, n int) {
	var stack int64
	began := time.Now()
	for left := n; left > 0; left -= heldMost {
		s := b.Scratch(0, 0).Open("million")
		for range heldMost {
			s.Own(millionCloser{})
		}
		millionRan, millionStack = 0, 0
		before := stackInUse()
		err := s.Close()
		stack = max(stack, int64(millionStack)-int64(before))
		assertErrors(t, err, heldMost)
		require.Equal(t, heldMost, millionRan)
	}
	t.Logf("%d owned values whose Close fails: %v, %d KiB of stack more in the middle", n, time.Since(began), stack>>10)
	assert.LessOrEqual(t, stack, int64(1<<20), "constant")
}

// assertErrors says that the first errors are kept and the others counted.
func assertErrors(t *testing.T, err error, n int) {
	t.Helper()
	require.ErrorContains(t, err, errMillion.Error())
	var many interface{ Unwrap() []error }
	require.ErrorAs(t, err, &many)
	assert.ErrorContains(t, err, fmt.Sprintf("\nand %d more errors", n-len(many.Unwrap())))
}
