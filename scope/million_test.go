package scope_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

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
