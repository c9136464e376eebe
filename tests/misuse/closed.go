//upfront:keeps the programs commit misuse on purpose

package main

import (
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Use of a budget after its Close.

var closedBudgets = []line{
	{"use a budget, its scopes, scratch or pools after its Close", []program{
		{name: "Load after Close of the budget", run: closed(func(k kept) {
			_, err := budget.Load(ctx, k.b.Region("level"), func(scope.Scope) (*Frog, error) { return nil, nil })
			check(err)
		}), status: told},
		{name: "Rewind after Close of the budget", run: closed(func(k kept) { check(k.b.Region("level").Rewind(ctx)) }),
			status: told},
		{name: "NextFrame after Close of the budget", run: closed(func(k kept) { check(k.b.NextFrame()) }),
			status: told},
		{name: "Lease after Close of the budget", run: closed(func(k kept) {
			scratches := made(k.b.Lease(ctx))
			check(scratches.Release())
		}), status: told},
		{name: "Seal after Close of the budget", run: closed(func(k kept) { check(k.b.Seal()) }), status: told},
		{name: "Close of the budget twice", status: told, run: func(wrong bool) {
			b := open()
			check(b.Close())
			when(wrong, b.Close)
		}},
		{name: "New after Close of the budget", run: closed(func(k kept) { frogs.New(k.query) })},
		{name: "Open after Close of the budget", run: closed(func(k kept) { k.scratch.Open("late") })},
		{name: "Put after Close of the budget", run: closed(func(k kept) { k.pool.Put(k.chunk) })},
		{name: "Frame after Close of the budget", run: closed(func(k kept) { k.b.Frame() })},
	}, []answer{
		{every, "generation", "closed", panics},
	}, ""},
	{"ask a closed budget's Ref, Loaded, Owned, pool or reader", []program{
		{name: "Ref after Close of the budget", run: closed(func(k kept) { nothing(k.ref.Get() == nil) })},
		{name: "Loaded after Close of the budget", run: closed(func(k kept) { nothing(k.level.Get() == nil) })},
		{name: "Owned after Close of the budget", run: closed(func(k kept) { nothing(k.held.Value() == nil) })},
		{name: "Get after Close of the budget", run: closed(func(k kept) { nothing(k.pool.Get() == nil) })},
		{name: "At after Close of the budget", run: closed(func(k kept) { nothing(k.pool.At(0) == nil) })},
		{name: "Pin after Close of the budget", run: closed(func(k kept) { nothing(!k.reader.Pin()) })},
	}, []answer{
		{every, "generation", "nothing is there", told},
	}, ""},
	{"read a closed budget's memory", []program{
		{name: "read after Close of the budget", run: closed(func(k kept) { say("the frog's age is %#x", k.frog.Age) }),
			goesOn: "is 0x0",
			right:  "is 0x7"},
	}, []answer{
		{"release, asan, checked", "no access", "fatal error: fault", panics},
	}, ""},
}

// kept has values that outlive a budget.
type kept struct {
	b       *budget.Budget
	scratch scope.Scratch
	query   scope.Scope
	frog    *Frog
	ref     scope.Ref[Frog]
	held    scope.Owned
	pool    scope.Pool[Frog]
	chunk   *Frog
	level   budget.Loaded[Frog]
	reader  *budget.Reader
}

// closed is a program that uses kept values after it closed the budget.
func closed(use func(k kept)) func(wrong bool) {
	return func(wrong bool) {
		k := kept{b: open()}
		k.scratch = k.b.Scratch(0, 0)
		k.level = load(k.b, "level", func(s scope.Scope) *Frog {
			k.query, k.frog, k.pool = s, oldFrog(s), frogs.Pool(s, 10)
			k.ref, k.held, k.chunk = scope.RefTo(s, k.frog), s.Keep("a value of Go"), k.pool.Get()
			return k.frog
		})
		k.reader = k.b.Region("level").Reader("worker 1")
		k.query = k.scratch.Open("query")
		if wrong {
			check(k.query.Close())
			check(k.b.Close())
		}
		use(k)
	}
}
