//go:build !memdebug

package budget

// A crash on an address of the budget is described in memdebug builds only.

func (b *Budget) watchFaults() {}

func (b *Budget) unwatchFaults() {}
