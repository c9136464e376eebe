package schedules_test

import (
	"context"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// verbs are the operations of the goroutines. A fault replaces one.
type verbs struct {
	load    func(ctx context.Context, r budget.Region, fn func(scope.Scope) (*frog, error)) (budget.Loaded[frog], error)
	rewind  func(r budget.Region, ctx context.Context) error
	release func(r budget.Region, ctx context.Context) error
	acquire func(s *budget.Slots) (budget.Region, error)
	pin     func(d *budget.Reader) bool
	unpin   func(d *budget.Reader)
	close   func(b *budget.Budget) error
	later   func(s scope.Scope, finalizer func()) scope.Owned
	get     func(l budget.Loaded[frog]) *frog
}

// library returns the operations of package budget, with the fault.
func (f fault) library() verbs {
	v := verbs{
		load:    budget.Load[frog],
		rewind:  budget.Region.Rewind,
		release: budget.Region.Release,
		acquire: (*budget.Slots).Acquire,
		pin:     (*budget.Reader).Pin,
		unpin:   (*budget.Reader).Unpin,
		close:   (*budget.Budget).Close,
		later:   scope.Scope.Defer,
		get:     budget.Loaded[frog].Get,
	}
	if f.verbs != nil {
		f.verbs(&v)
	}
	return v
}
