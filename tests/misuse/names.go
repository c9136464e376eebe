package main

import (
	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// Handles and references that outlive their objects.

var names = []line{
	{"ask a stale Ref, Handle, Owned, Loaded, pool, list or Text", []program{
		{name: "stale Ref", run: func(wrong bool) {
			var ref scope.Ref[Frog]
			query(wrong, func(s scope.Scope) { ref = scope.RefTo(s, frogs.New(s)) })
			nothing(ref.Get() == nil)
		}},
		{name: "stale Handle", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			pool := frogs.HandlePool(query, 10)
			_, handle := pool.Get()
			if wrong {
				pool.Put(handle)
				pool.Get()
			}
			nothing(pool.At(handle) == nil)
		}},
		{name: "another pool's Handle", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			pool, other := frogs.HandlePool(query, 10), frogs.HandlePool(query, 10)
			_, handle := pool.Get()
			_, others := other.Get()
			if wrong {
				handle = others
			}
			nothing(pool.At(handle) == nil)
		}},
		{name: "stale Owned", run: func(wrong bool) {
			var held scope.Owned
			query(wrong, func(s scope.Scope) { held = s.Keep("a value of Go") })
			nothing(held.Value() == nil)
		}},
		{name: "stale Loaded", run: func(wrong bool) {
			b := open()
			level := load(b, "level", frogs.New)
			if wrong {
				check(b.Region("level").Rewind(ctx))
			}
			nothing(level.Get() == nil)
		}},
		{name: "Get of a stale pool", run: func(wrong bool) {
			var pool scope.Pool[Frog]
			query(wrong, func(s scope.Scope) { pool = frogs.Pool(s, 10) })
			nothing(pool.Get() == nil)
		}},
		{name: "values of a stale list", run: func(wrong bool) {
			var list container.List[Frog]
			query(wrong, func(s scope.Scope) {
				list = container.NewList(s, frogs, 10)
				list.Push(Frog{})
			})
			nothing(list.Len() == 0)
		}},
		{name: "a stale Text", run: func(wrong bool) {
			var text scope.Text
			query(wrong, func(s scope.Scope) {
				text = s.Text()
				text.Add("frog")
			})
			nothing(text.String() == "")
		}},
		{name: "a stale frame", run: func(wrong bool) {
			frame := made(arena.NewFrame(arena.NewBlock(4096, 64), 2))
			first := frame.Now()
			frame.Next()
			if wrong {
				frame.Next()
			}
			nothing(!first.Live())
		}},
	}, []answer{
		{every, "generation", "nothing is there", told},
	}, ""},
	{"add to a stale list, deque, map, Builder, Text; RefTo a stale scope; CloseNow twice", []program{
		{name: "Push to a stale list", run: func(wrong bool) {
			var list container.List[Frog]
			query(wrong, func(s scope.Scope) { list = container.NewList(s, frogs, 10) })
			list.Push(Frog{})
		}},
		{name: "Push to a Builder that is done", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			builder := frogs.Build(query)
			if wrong {
				builder.Done()
			}
			builder.Push(Frog{})
		}},
		{name: "PushBack to a stale Deque", run: func(wrong bool) {
			var deque container.Deque[Frog]
			query(wrong, func(s scope.Scope) { deque = container.NewDeque(s, frogs, 10) })
			deque.PushBack(Frog{})
		}},
		{name: "Set in a stale Map", run: func(wrong bool) {
			var byNumber container.Map[uint64, Frog]
			query(wrong, func(s scope.Scope) { byNumber = container.NewMap(s, words, frogs, 10) })
			byNumber.Set(1, Frog{})
		}},
		{name: "Set in a stale StringMap", run: func(wrong bool) {
			var byName container.StringMap[Frog]
			query(wrong, func(s scope.Scope) { byName = container.NewStringMap(s, frogs, 10, 8) })
			check(byName.Set("frog", Frog{}))
		}},
		{name: "Add to a stale Text", run: func(wrong bool) {
			var text scope.Text
			query(wrong, func(s scope.Scope) { text = s.Text() })
			text.Add("frog")
		}},
		{name: "RefTo a stale scope", run: func(wrong bool) {
			var kept scope.Scope
			var frog *Frog
			query(wrong, func(s scope.Scope) { kept, frog = s, frogs.New(s) })
			scope.RefTo(kept, frog)
		}},
		{name: "CloseNow twice", status: told, run: func(wrong bool) {
			var held scope.Owned
			query(false, func(s scope.Scope) { held = s.Defer(func() {}) })
			check(held.CloseNow())
			if wrong {
				check(held.CloseNow())
			}
		}},
	}, []answer{
		{every, "generation", "scope: BUG: … closed", panics},
	}, ""},
	{"Push to a scope.List, range over it, or Slice it, after its scope closed", []program{
		{name: "Push to a scope.List", run: func(wrong bool) {
			var list scope.List[Frog]
			query(wrong, func(s scope.Scope) { list = frogs.List(s) })
			list.Push(Frog{})
		}},
		{name: "range over a scope.List", run: func(wrong bool) {
			var list scope.List[Frog]
			query(wrong, func(s scope.Scope) {
				list = frogs.List(s)
				list.Push(Frog{})
			})
			for _, frog := range list.All() {
				frog.Age++
			}
		}},
		{name: "close the scope while ranging over a scope.List", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			list := frogs.List(query)
			list.Push(Frog{})
			for range list.All() {
				when(wrong, query.Close)
			}
		}},
		{name: "Slice a scope.List", run: func(wrong bool) {
			b := open()
			query := b.Scratch(0, 0).Open("query")
			list := frogs.List(query)
			list.Push(Frog{})
			when(wrong, query.Close)
			list.Slice(b.Scratch(0, 1).Open("result"))
		}},
	}, []answer{
		{every, "generation", "scope: BUG: … closed", panics},
	}, ""},
	{"AddrOf an object in another arena, or on the Go heap", []program{
		{name: "AddrOf another arena's", run: func(wrong bool) {
			b := open()
			query := b.Scratch(0, 0).Open("query")
			frog := frogs.New(query)
			if wrong {
				frog = frogs.New(b.Scratch(0, 1).Open("other"))
			}
			scope.AddrOf(query, frog)
		}},
		{name: "AddrOf a Go value", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			frog := frogs.New(query)
			if wrong {
				frog = new(Frog)
			}
			scope.AddrOf(query, frog)
		}},
	}, []answer{
		{every, "address", "scope: BUG: AddrOf of a main.Frog that is not in scratch 0.0", panics},
	}, ""},
	{"RefTo a pool's chunk, or an object in another scope", []program{
		{name: "RefTo a chunk", says: "is a chunk of a pool", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			frog := frogs.New(query)
			if wrong {
				pool := frogs.Pool(query, 10)
				frog = pool.Get()
			}
			scope.RefTo(query, frog)
		}},
		{name: "RefTo another scope's", says: "is not in scope", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			frog := frogs.New(query)
			step := query.Open("step")
			if !wrong {
				frog = frogs.New(step)
			}
			scope.RefTo(step, frog)
		}},
	}, []answer{
		{every, "address", "scope: BUG: RefTo of …", panics},
	}, ""},
	{"use or release a released scratch, slot or reader", []program{
		{name: "scratch after Release", says: "which was released", run: func(wrong bool) {
			scratches := made(open().Lease(ctx))
			scratch := scratches.Scratch(0)
			when(wrong, scratches.Release)
			scratch.Open("query")
		}},
		{name: "pin twice", says: "pins region level twice", run: func(wrong bool) {
			reader := open().Region("level").Reader("worker 1")
			reader.Pin()
			if !wrong {
				reader.Unpin()
			}
			reader.Pin()
		}},
		{name: "unpin twice", says: "which it has not pinned", run: func(wrong bool) {
			reader := open().Region("level").Reader("worker 1")
			reader.Pin()
			reader.Unpin()
			if wrong {
				reader.Unpin()
			}
		}},
		{name: "Load after Release", says: "which was released", status: told, run: func(wrong bool) {
			_, room := acquireRoom()
			if wrong {
				check(room.Release(ctx))
			}
			_, err := budget.Load(ctx, room, func(scope.Scope) (*Frog, error) { return nil, nil })
			check(err)
		}},
		{name: "Trim after Release", says: "BUG: Trim of region room 0, which was released", status: told,
			run: func(wrong bool) {
				_, room := acquireRoom()
				if wrong {
					check(room.Release(ctx))
				}
				_, err := room.Trim(ctx)
				check(err)
			}},
		{name: "Release twice", says: "released before", status: told, run: func(wrong bool) {
			scratches := made(open().Lease(ctx))
			check(scratches.Release())
			when(wrong, scratches.Release)
		}},
	}, []answer{
		{every, "lending", "BUG: …", panics},
	}, ""},
	{"resolve an arena.Ptr with another base", []program{
		{name: "a Ptr's wrong base", goesOn: "its age is 0x7", right: "its age is 0x3", run: func(wrong bool) {
			b := open()
			systemsFrog := load(b, "systems", oldFrog).Get()
			frog := load(b, "level", frogs.New).Get()
			frog.Age = 3
			ptr := arena.PtrTo(b.Region("level").Base(), frog)
			base := b.Region("level").Base()
			if wrong {
				base = b.Region("systems").Base()
			}
			say("its age is %#x, in systems there is %#x", ptr.Get(base).Age, systemsFrog.Age)
		}},
	}, nil, "reads other bytes"},
}

func nothing(gone bool) { ask(!gone, "nothing is there") }

// query is a scope. The program closes it when it is wrong.
func query(wrong bool, fill func(s scope.Scope)) {
	query := open().Scratch(0, 0).Open("query")
	fill(query)
	when(wrong, query.Close)
}
