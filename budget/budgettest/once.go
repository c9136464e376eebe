package budgettest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// counting keeps the requests of one FailEach out of the count of another.
var counting sync.Mutex

// failOnce is the part of FailEach for checked builds: it refuses one request in each run.
func failOnce(t testing.TB, plan budget.Plan, fn func(b *budget.Budget) error) {
	t.Helper()
	for n := uint64(1); ; n++ {
		refused, err := refuseOnce(plan, n, fn)
		if err != nil {
			t.Errorf("budgettest: FailEach: with request %d refused once: %v", n, err)
			return
		}
		if !refused {
			t.Logf("budgettest: FailEach: %d requests failed once, and none after them", n-1)
			return
		}
	}
}

// refuseOnce runs fn and refuses its n-th request. refused is false if fn made fewer than n
// requests.
func refuseOnce(plan budget.Plan, n uint64, fn func(b *budget.Budget) error) (refused bool, err error) {
	var plain error // a full error that isn't a FullError
	full, err := tryOnce(plan, func(b *budget.Budget) error {
		arena_c.FailAt(n)
		defer arena_c.FailAt(0) // before the walk and Close, so that their requests succeed
		err := fn(b)
		if errors.Is(err, scope.ErrFull) && !errors.As(err, new(*scope.FullError)) {
			plain, err = err, nil
		}
		return err
	})
	// after Close, which reports the full errors that fn left in the frame
	refused, reported := arena_c.Failed()
	switch {
	case err != nil:
		return refused, err
	case !refused && (full != nil || plain != nil):
		return false, fmt.Errorf("nothing was refused: %w", errors.Join(asError(full), plain))
	case !reported: // nil was the whole answer, or no request was refused
		return refused, nil
	case full != nil && !full.OnPurpose:
		return true, fmt.Errorf("another request ran out of room: %w", full)
	case full == nil && plain != nil:
		return true, fmt.Errorf("the FullError is lost: %w", plain)
	case full == nil:
		return true, errors.New("fn returned nil though it got a full error; " +
			"return that error at the end, even if fn goes on without the memory")
	}
	return true, nil
}
