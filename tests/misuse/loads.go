package main

import (
	"sync"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var loads = []line{
	{"load or rewind a region in its load, below or beside one, from a finalizer, above without In", []program{
		{name: "Load inside its own Load", run: func(wrong bool) {
			b := open()
			load(b, "systems", func(s scope.Scope) *Frog {
				inner := "level"
				if wrong {
					inner = "systems"
				}
				return loadIn(b.Region(inner).In(s), frogs.New).Get()
			})
		}},
		{name: "Load below a Load", run: func(wrong bool) {
			b := open()
			outer, inner := "systems", "level"
			if wrong {
				outer, inner = inner, outer
			}
			load(b, outer, func(s scope.Scope) *Frog { return loadIn(b.Region(inner).In(s), frogs.New).Get() })
		}},
		{name: "Rewind from a finalizer", run: func(wrong bool) {
			b := open()
			load(b, "level", func(s scope.Scope) *Frog {
				s.Defer(func() {
					if wrong {
						check(b.Region("level").Rewind(ctx))
					}
				})
				return nil
			})
			check(b.Region("level").Rewind(ctx))
		}},
		{name: "Rewind from another goroutine", run: func(wrong bool) {
			b := open()
			load(b, "level", func(scope.Scope) *Frog {
				if wrong {
					var wg sync.WaitGroup
					wg.Go(func() { check(b.Region("level").Rewind(ctx)) })
					wg.Wait()
				}
				return nil
			})
		}},
		{name: "Load above a Load without In", says: "inside the load write Load(ctx, level.In(s), ...)", run: func(wrong bool) {
			b := open()
			load(b, "systems", func(s scope.Scope) *Frog {
				level := b.Region("level")
				if !wrong {
					level = level.In(s)
				}
				return loadIn(level, frogs.New).Get()
			})
		}},
		{name: "Load with In of a load that is over", says: "that is not that of a load at work", run: func(wrong bool) {
			b := open()
			level := b.Region("level")
			load(b, "systems", func(s scope.Scope) *Frog {
				if wrong {
					level = level.In(s)
				}
				return nil
			})
			loadIn(level, frogs.New)
		}},
		{name: "two Loads inside one", says: "one at a time", run: func(wrong bool) {
			b := open()
			load(b, "systems", func(s scope.Scope) *Frog {
				level := b.Region("level").In(s)
				return loadIn(level, func(scope.Scope) *Frog {
					if wrong {
						loadIn(level, frogs.New)
					}
					return nil
				}).Get()
			})
		}},
		{name: "Load outlasts the one outside", says: "BUG: Load of … ends while a Load of …", run: func(wrong bool) {
			plan := pondPlan
			plan.OnError = check
			b := made(budget.Open(plan))
			inside, over := make(chan bool), make(chan bool)
			load(b, "systems", func(s scope.Scope) *Frog {
				go func() {
					defer close(over)
					loadIn(b.Region("level").In(s), func(scope.Scope) *Frog {
						close(inside)
						if wrong {
							select {} // the outer one ends, and says so
						}
						return nil
					})
				}()
				<-inside
				if !wrong {
					<-over
				}
				return nil
			})
			<-over
		}},
	}, []answer{
		{every, "order", "upfront: loading", told},
	}, ""},
	{"return a temporary from its load", []program{
		{name: "Load gives a temporary", run: func(wrong bool) {
			load(open(), "level", func(s scope.Scope) *Frog {
				if wrong {
					return frogs.New(s.Temp(64))
				}
				return frogs.New(s)
			})
		}},
	}, []answer{
		{every, "address", "BUG: the value … lies in its temporaries", told},
	}, ""},
}
