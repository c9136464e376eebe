package main

import (
	"slices"
	"sync"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

var loads = []line{
	{"load, rewind or release a slot below a region without slots, which ends with it", []program{
		{name: "Load of a slot below a list", says: "Load of region room 0", run: emptiesNet(func(room budget.Region) {
			loadIn(room, frogs.New)
		})},
		{name: "Rewind of a slot below a list", says: "Rewind of region room 0",
			run: emptiesNet(func(room budget.Region) {
				check(room.Rewind(ctx))
			})},
		{name: "Release of a slot below a list", says: "Release of region room 0",
			run: emptiesNet(func(room budget.Region) {
				check(room.Release(ctx))
			})},
		{name: "Check of a plan with slots below", says: "warning", status: told, run: func(wrong bool) {
			plan := pondPlan
			plan.Regions = []budget.RegionPlan{{Name: "net", Size: budget.KiB},
				{Name: "room", Size: budget.KiB, Slots: 2}}
			if wrong {
				slices.Reverse(plan.Regions)
			}
			check(plan.Check())
		}},
	}, []answer{
		{every, "generation; Check", "closed scope … region net was last emptied … ago / also empties …", panics},
	}, ""},
	{"load or rewind a region in its load, below or next to one, from a finalizer, above without In", []program{
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
		{name: "Load above a Load without In", says: "in the function of that load call Load(ctx, level.In(s), ...)",
			run: func(wrong bool) {
				b := open()
				load(b, "systems", func(s scope.Scope) *Frog {
					level := b.Region("level")
					if !wrong {
						level = level.In(s)
					}
					return loadIn(level, frogs.New).Get()
				})
			}},
		{name: "Load with In of a load that is over", says: "In needs the scope that a running Load passed",
			run: func(wrong bool) {
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
		{name: "two Loads inside one", says: "wait for the inner one first", run: func(wrong bool) {
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
		{name: "Load outlasts the one outside", says: "BUG: the function of Load of … returned before a Load of …",
			run: func(wrong bool) {
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
								select {} // the outer load ends, and reports this one
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
		{every, "order", "upfront: a load, rewind or close is at work", told},
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
		{every, "address", "BUG: Load … returns a value in its temporaries", told},
	}, ""},
}

// emptiesNet pushes to a list above the slots, after a slot below it ended.
func emptiesNet(end func(room budget.Region)) func(wrong bool) {
	return func(wrong bool) {
		b, room := acquireBelow()
		loadIn(room, frogs.New)
		list := load(b, "net", func(s scope.Scope) *container.List[Frog] {
			list := container.NewList(s, frogs, 1)
			return &list
		}).Get()
		if wrong {
			end(room)
		}
		list.Push(Frog{})
	}
}
