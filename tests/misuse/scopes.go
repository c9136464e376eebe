//upfront:keeps the programs commit misuse on purpose

package main

import (
	"errors"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var scopes = []line{
	{"close scopes out of order, twice, or from their own finalizers", []program{
		{name: "Close out of order", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			step := query.Open("step")
			when(wrong, query.Close)
			check(step.Close())
		}},
		{name: "Close twice", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			check(query.Close())
			when(wrong, query.Close)
		}},
		{name: "Close of a slot's next scope", run: func(wrong bool) {
			scratch := open().Scratch(0, 0)
			query := scratch.Open("query")
			check(query.Close())
			next := scratch.Open("next")
			if wrong {
				next = query
			}
			check(next.Close())
		}},
		{name: "Close from a finalizer", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			query.Defer(func() {
				when(wrong, query.Close)
			})
			check(query.Close())
		}},
		{name: "Close of a region's scope", run: func(wrong bool) {
			load(open(), "level", func(s scope.Scope) *Frog {
				when(wrong, s.Close)
				return nil
			})
		}},
	}, []answer{
		{every, "order", "scope: BUG: Close of … scope", told},
	}, ""},
	{"allocate in a covered, closed or frozen scope, by an undeclared Maker, with a bad align", []program{
		{name: "New while covered", says: `while scope "step", opened in it, is open; close "step" first`,
			run: func(wrong bool) {
				query := open().Scratch(0, 0).Open("query")
				step := query.Open("step")
				when(!wrong, step.Close)
				frogs.New(query)
			}},
		{name: "New in older temporaries", says: "which isn't the newest of the temporaries", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			older := query.Temp(64)
			newer := query.Temp(64)
			when(!wrong, newer.Close)
			frogs.New(older)
		}},
		{name: "New after Close", says: "a closed scope", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			when(wrong, query.Close)
			frogs.New(query)
		}},
		{name: "New in a slot's next scope", says: "a closed scope", run: func(wrong bool) {
			scratch := open().Scratch(0, 0)
			query := scratch.Open("query")
			if wrong {
				check(query.Close())
				scratch.Open("next")
			}
			frogs.New(query)
		}},
		{name: "New after the load", says: "frozen since its load returned", run: func(wrong bool) {
			b := open()
			var level scope.Scope
			load(b, "level", func(s scope.Scope) *Frog {
				level = s
				return nil
			})
			if !wrong {
				level = b.Scratch(0, 0).Open("query")
			}
			frogs.New(level)
		}},
		{name: "New after NextFrame", says: "frozen since its frame ended", run: func(wrong bool) {
			b := open()
			frame := b.Frame()
			check(b.NextFrame())
			if !wrong {
				frame = b.Frame()
			}
			frogs.New(frame)
		}},
		{name: "New of the zero Maker", says: "a Maker that was never declared", run: func(wrong bool) {
			maker := frogs
			if wrong {
				maker = scope.Maker[Frog]{}
			}
			maker.New(open().Scratch(0, 0).Open("query"))
		}},
		{name: "Alloc with a bad align", says: "the alignment must be a power of two", run: func(wrong bool) {
			align := uint64(16)
			if wrong {
				align = 12
			}
			open().Scratch(0, 0).Open("query").AllocUnzeroed(8, align)
		}},
	}, []answer{
		{every, "generation", "scope: BUG: …", panics},
	}, ""},
	{"use a zero value: a Scope, a Scratch, a pool, a Region, a HeapMaker", []program{
		{name: "Open of the zero Scope", says: "a zero Scope", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			if wrong {
				query = scope.Scope{}
			}
			check(query.Open("step").Close())
		}},
		{name: "Open of the zero Scratch", says: "a zero Scratch", run: func(wrong bool) {
			scratch := open().Scratch(0, 0)
			if wrong {
				scratch = scope.Scratch{}
			}
			check(scratch.Open("query").Close())
		}},
		{name: "All of the zero Pool", says: "a zero pool", run: func(wrong bool) {
			pool := frogs.Pool(open().Scratch(0, 0).Open("query"), 10)
			if wrong {
				pool = scope.Pool[Frog]{}
			}
			for range pool.All() {
			}
		}},
		{name: "Load of no Region", says: "a zero Region", run: func(wrong bool) {
			region := open().Region("level")
			if wrong {
				region = budget.Region{}
			}
			made(budget.Load(ctx, region, func(s scope.Scope) (*Frog, error) { return nil, nil }))
		}},
		{name: "New of the zero HeapMaker", says: "a HeapMaker of main.Frog that was never declared",
			run: func(wrong bool) {
				maker := heapFrogs
				if wrong {
					maker = arena.HeapMaker[Frog]{}
				}
				maker.New(load(open(), "level", heapOf).Get())
			}},
	}, []answer{
		{every, "nil", "BUG: a …", panics},
	}, ""},
	{"leave a scope open; never release scratch or a slot", []program{
		{name: "leave a scope open in a load", run: func(wrong bool) {
			load(open(), "level", func(s scope.Scope) *Frog {
				room := s.Open("room")
				when(!wrong, room.Close)
				return nil
			})
		}},
		{name: "leave a scope open on the frame", run: func(wrong bool) {
			b := open()
			room := b.Frame().Open("room")
			when(!wrong, room.Close)
			check(b.NextFrame())
			check(b.NextFrame())
			check(b.Close())
		}},
		{name: "leave a scope open on a scratch", run: func(wrong bool) {
			b, query := openQuery()
			when(!wrong, query.Close)
			check(b.Close())
		}},
		{name: "leave a scratch's scope open in a load that fails", run: func(wrong bool) {
			b := open()
			failed := errors.New("the file is broken")
			read := func(scope.Scope) error { return failed }
			_, err := budget.Load(ctx, b.Region("level"), func(scope.Scope) (*Frog, error) {
				if !wrong {
					return nil, b.Scratch(0, 0).Do("file", read)
				}
				file := b.Scratch(0, 0).Open("file")
				if err := read(file); err != nil {
					return nil, err
				}
				return nil, file.Close()
			})
			ask(errors.Is(err, failed), "another error")
			check(b.Close())
		}},
		{name: "leave a scope open on leased scratch", run: func(wrong bool) {
			scratches := made(open().Lease(ctx))
			query := scratches.Scratch(0).Open("query")
			when(!wrong, query.Close)
			check(scratches.Release())
		}},
		{name: "never release scratch", run: func(wrong bool) {
			b := open()
			scratches := made(b.Lease(ctx))
			when(!wrong, scratches.Release)
			check(b.Close())
		}},
		{name: "never release a slot", run: func(wrong bool) {
			b, room := acquireRoom()
			if !wrong {
				check(room.Release(ctx))
			}
			check(b.Close())
		}},
	}, []answer{
		{every, "count", "left open / never released", told},
	}, ""},
}
