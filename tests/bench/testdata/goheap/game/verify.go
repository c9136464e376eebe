package game

import "github.com/upfront-mem/upfront/budget/save"

// verify has nothing to look at: no state on the Go heap comes from outside.
func (l *Level) verify(save.View) error { return nil }
