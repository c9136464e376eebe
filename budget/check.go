package budget

import "fmt"

// CheckAll checks the control words of all of the budget, as Walk does: the error is the first that can't be. Put it between
// two steps of a tick to narrow down when something wrote over them.
//
// Workers must not allocate meanwhile. Cost: that of Walk.
func (b *Budget) CheckAll() error {
	defer forgive()()
	if b.closed.Load() {
		return fmt.Errorf("budget %q: CheckAll: %w", b.plan.Name, ErrClosed)
	}
	_, err := b.Walk()
	return err
}
