package budget

import (
	"errors"
	"fmt"
)

// CheckAll checks the control words of all of the budget, as Walk does: the error is the first that can't be. Put it between
// two steps of a tick to narrow down when something wrote over them.
// In checked builds it looks at what lies around everything that lives and where something died, too, and says what somebody
// wrote there: past the end, before the first, to what was closed.
//
// Workers must not allocate meanwhile. Cost: that of Walk, and in checked builds of a look at 32 bytes
// for each that was ever in use.
func (b *Budget) CheckAll() error {
	defer forgive()()
	if b.closed.Load() {
		return fmt.Errorf("budget %q: CheckAll: %w", b.plan.Name, ErrClosed)
	}
	if _, err := b.Walk(); err != nil {
		return err
	}
	if damage := b.table.Damage(); damage != "" {
		return errors.New(damage)
	}
	return nil
}
