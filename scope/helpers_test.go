package scope_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type point struct{ X, Y int32 }

// mark is an object whose finalizer appends ID to closed, then ends as Do selects.
type mark struct{ ID, Do int64 }

const (
	doFail = iota + 1
	doPanic
)

var errMark = errors.New("mark failed")

var closed []int64 // IDs in the order of their finalizers

var (
	points = scope.Plain[point]()
	marks  = scope.Object[mark](func(m *mark) error {
		closed = append(closed, m.ID)
		switch m.Do {
		case doFail:
			return errMark
		case doPanic:
			panic("mark panics")
		}
		return nil
	})
)

const scratchSize = 64 * budget.KiB

// open opens a budget with scratch arenas for two workers, and clears closed.
func open(t testing.TB) *budget.Budget {
	t.Helper()
	closed = nil
	b, err := budget.Open(budget.Plan{
		Name:    "test",
		Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB}},
		Scratch: budget.ScratchPlan{Workers: 2, Size: scratchSize},
		Limits:  budget.Limits{Scopes: 8, Pools: 2, Owned: 8},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if _, err := b.Walk(); !errors.Is(err, budget.ErrClosed) {
			require.NoError(t, err, "the walk at the end")
		}
		_ = b.Close()
	})
	return b
}

func opened(t *testing.T, name string) (scope.Scratch, scope.Scope) {
	scratch := open(t).Scratch(0, 0)
	return scratch, scratch.Open(name)
}

// dirty returns a scratch arena whose bytes were used before.
func dirty(t *testing.T) scope.Scratch {
	scratch := open(t).Scratch(0, 0)
	require.NoError(t, scratch.Do("dirty", func(s scope.Scope) error {
		for rest := s.Bytes(scratchSize); len(rest) > 0; rest = rest[1:] {
			rest[0] = 0xFF
		}
		return nil
	}))
	return scratch
}

// accounted returns the canonical address of a position, which differs in checked and asan builds.
func accounted(s scope.Scope, p unsafe.Pointer) unsafe.Pointer {
	header, _ := s.C()
	return unsafe.Add(header, arena_c.Place(p, header))
}

func newMark(s scope.Scope, id, do int64) *mark {
	m := marks.New(s)
	m.ID, m.Do = id, do
	return m
}

// closer is an io.Closer that counts its calls and appends to closed.
type closer struct {
	id    int64
	err   error
	times int
}

func (c *closer) Close() error {
	c.times++
	closed = append(closed, c.id)
	return c.err
}

// counted returns n in checked builds, which alone count objects, and 0 in others.
func counted(n uint64) uint64 {
	if arena_c.Checked {
		return n
	}
	return 0
}

// instrumented is true in builds whose sanitizer allocates for itself.
const instrumented = arena_c.Race || arena_c.Asan

func recovered(fn func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	fn()
	return nil
}
