package budget_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

var (
	openDry   = seam.Dry.(func(budget.Plan) (*budget.Budget, error))
	dryReport = seam.DryReport.(func(*budget.Budget) budget.Report)
	stacks    = seam.Stacks.(func(*budget.Budget) []*stack.Stack)
	stateOf   = seam.StateOf.(func(budget.Region, scope.Scope) (*seam.State, error))
)

type frog struct{ X, Y, Age int64 }

// mark is an object whose finalizer adds ID to ran, and then calls Do.
type mark struct{ ID, Do int64 }

const (
	doFail = iota + 1
	doPanic
)

var (
	errMark   = errors.New("mark failed")
	errLoader = errors.New("loader failed")

	ran []int64 // IDs in the order of their finalizers

	frogs = scope.Plain[frog]()
	marks = scope.Object[mark](func(m *mark) error {
		ran = append(ran, m.ID)
		switch m.Do {
		case doFail:
			return errMark
		case doPanic:
			panic("mark panics")
		}
		return nil
	})
)

func newMark(s scope.Scope, id, do int64) *mark {
	m := marks.New(s)
	m.ID, m.Do = id, do
	return m
}

type closer struct{ id int64 }

func (c *closer) Close() error { ran = append(ran, c.id); return nil }

func small() budget.Plan {
	return budget.Plan{
		Name: "small",
		Regions: []budget.RegionPlan{{Name: "init", Size: 128 * budget.KiB}, {Name: "systems", Size: 256 * budget.KiB},
			{Name: "level", Size: 512*budget.KiB + 100}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 2, Size: 64 * budget.KiB},
		Limits:  budget.Limits{Scopes: 8, Pools: 2, Owned: 16},
	}
}

// open opens a budget for a test that may leak. It clears ran, and at the end the walk must find no
// damage.
func open(t testing.TB, plan budget.Plan) *budget.Budget {
	t.Helper()
	ran = nil
	b, err := budget.Open(plan)
	require.NoError(t, err)
	t.Cleanup(func() {
		if _, err := b.Walk(); !errors.Is(err, budget.ErrClosed) {
			assert.NoError(t, err, "the check at the end")
		}
		_ = b.Close()
	})
	return b
}

// requireNoFault expects no fault of a plan, which may have warnings.
func requireNoFault(t testing.TB, plan budget.Plan) {
	t.Helper()
	if err := plan.Check(); !errors.Is(err, budget.ErrWarning) {
		require.NoError(t, err)
	}
}

// instrumented builds (race, asan, checked) pay for their checks: their figures of cost differ from
// the release build's.
const instrumented = arena_c.Race || arena_c.Asan || arena_c.Checked

// notesObjects reports that this build notes each object, in addresses apart (arena_c/mirror.h): a
// checked build does. A race build and Windows have no such addresses.
const notesObjects = arena_c.Checked && !arena_c.Race && runtime.GOOS != "windows"

// counted returns a number of objects or of bytes of padding, which only checked builds count.
func counted(n uint64) uint64 {
	if arena_c.Checked {
		return n
	}
	return 0
}

var background = context.Background()

// load loads a region: it makes a frog, calls fn, and returns the frog.
func load(b *budget.Budget, region string, fn func(scope.Scope) error) (budget.Loaded[frog], error) {
	return loadRegion(b.Region(region), fn)
}

func loadRegion(r budget.Region, fn func(scope.Scope) error) (budget.Loaded[frog], error) {
	return budget.Load(background, r, func(s scope.Scope) (*frog, error) {
		f := frogs.New(s)
		if fn == nil {
			return f, nil
		}
		return f, fn(s)
	})
}

func mustLoad(t testing.TB, b *budget.Budget, region string, fn func(scope.Scope)) budget.Loaded[frog] {
	t.Helper()
	return mustLoadRegion(t, b.Region(region), fn)
}

func mustLoadRegion(t testing.TB, r budget.Region, fn func(scope.Scope)) budget.Loaded[frog] {
	t.Helper()
	l, err := loadRegion(r, func(s scope.Scope) error {
		if fn != nil {
			fn(s)
		}
		return nil
	})
	require.NoError(t, err)
	require.NotNil(t, l.Get())
	return l
}

type outcome struct {
	err      error
	panicked any
	exited   bool // by Goexit
}

// attempt runs fn on a goroutine of its own, so that it may end in any way.
func attempt(fn func() error) outcome {
	done := make(chan outcome)
	go func() {
		o := outcome{exited: true}
		defer func() {
			if v := recover(); v != nil {
				o = outcome{panicked: v}
			}
			done <- o
		}()
		o.err = fn()
		o.exited = false
	}()
	return <-done
}

func panics(t testing.TB, fn func()) (text string) {
	t.Helper()
	v := attempt(func() error { fn(); return nil }).panicked
	switch v := v.(type) {
	case error:
		return v.Error()
	case string:
		return v
	}
	assert.Fail(t, "it should panic with a text", "%v", v)
	return ""
}

// quiet returns the budget's report without the figures of the process.
func quiet(b *budget.Budget) budget.Report { return planned(b.Report()) }

// planned returns the report without the figures of the process.
func planned(r budget.Report) budget.Report {
	r.GoHeap, r.Outside = budget.GoHeap{}, budget.Outside{}
	return r
}

func regionReport(b *budget.Budget, name string) budget.ArenaReport { return b.Region(name).Report() }

// requireEmpty checks that the region is as before its first load.
func requireEmpty(t testing.TB, b *budget.Budget, name string) {
	t.Helper()
	r := regionReport(b, name)
	require.Zero(t, r.Used, "%s is empty", name)
	require.Zero(t, r.Objects, "%s is empty", name)
	require.Zero(t, r.PoolCap, "%s is empty", name)
	require.Equal(t, r.Size, r.Free, "%s is empty", name)
	requireWalk(t, b)
}

func requireWalk(t testing.TB, b *budget.Budget) []budget.Range {
	t.Helper()
	ranges, err := b.Walk()
	require.NoError(t, err)
	return ranges
}

func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// placeOf returns the offset in the budget at which an object is accounted, which in checked and
// asan builds isn't its address.
func placeOf[T any](b *budget.Budget, p *T) uint64 {
	return arena_c.Place(unsafe.Pointer(p), unsafe.Pointer(unsafe.SliceData(b.Base().Bytes())))
}

// tableOf returns the map in the budget's tables, for tests that write to it.
func tableOf(b *budget.Budget) *arena_c.Map {
	return (*arena_c.Map)(unsafe.Pointer(unsafe.SliceData(b.Base().Bytes())))
}

// onOneProcessor makes a woken goroutine run before its waker continues, until restore is called.
func onOneProcessor() (restore func()) {
	before := runtime.GOMAXPROCS(1)
	return func() { runtime.GOMAXPROCS(before) }
}

// The arenas of a report outside the regions: the frame's buffers and scratch.
func beside(r budget.Report) (list []budget.ArenaReport) {
	for _, a := range r.Arenas {
		if a.Kind == "frame" || a.Kind == "scratch" {
			list = append(list, a)
		}
	}
	return list
}
