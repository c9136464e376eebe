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

// failOnce is FailEach in a checked build: of each run's requests one is refused.
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

// refuseOnce runs fn with its n-th request refused. refused is false when it made fewer.
func refuseOnce(plan budget.Plan, n uint64, fn func(b *budget.Budget) error) (refused bool, err error) {
	var plain error // a full without what the budget says of it
	full, err := tryOnce(plan, func(b *budget.Budget) error {
		arena_c.FailAt(n)
		defer arena_c.FailAt(0) // before the walk and Close: what they ask for is served
		err := fn(b)
		if errors.Is(err, scope.ErrFull) && !errors.As(err, new(*scope.FullError)) {
			plain, err = err, nil
		}
		return err
	})
	refused, reported := arena_c.Failed() // asked when the budget is closed: it reports what fn left in the frame
	switch {
	case err != nil:
		return refused, err
	case !refused && (full != nil || plain != nil):
		return false, fmt.Errorf("nothing was refused: %w", errors.Join(asError(full), plain))
	case !reported: // nil was the whole answer, or there was no refusal
		return refused, nil
	case full != nil && !full.OnPurpose:
		return true, fmt.Errorf("another request is full: %w", full)
	case full == nil && plain != nil:
		return true, fmt.Errorf("the full is lost: %w", plain)
	case full == nil:
		return true, errors.New("fn returned nil though a full was reported to it; " +
			"it returns what was reported, also when it goes on without")
	}
	return true, nil
}
