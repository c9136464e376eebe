package game

import "github.com/upfront-mem/upfront/budget/save"

// verify checks nothing, because a state on the Go heap never comes from outside.
func (l *Level) verify(save.View) error { return nil }
