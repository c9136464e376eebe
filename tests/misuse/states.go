package main

import (
	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// croakers have a finalizer.
var croakers = scope.Object(func(*Frog) error { return nil })

// saved returns a frog of a state in the region level, and a ring with a snapshot of it.
func saved(b *budget.Budget, before, in func(s scope.Scope)) (frog *Frog, ring *save.Ring) {
	level := b.Region("level")
	load(b, "level", func(s scope.Scope) *Frog {
		before(s)
		state, root := save.Begin(level, s, frogs)
		in(s)
		frog, ring = root, save.NewRing(s, 2, state)
		return nil
	})
	check(ring.Take(1))
	return frog, ring
}

var bools = scope.Plain[bool]()

// openState opens a budget whose region level is for states.
func openState() *budget.Budget {
	plan := pondPlan
	plan.Regions = []budget.RegionPlan{{Name: "level", Size: 16 * budget.KiB, State: true}}
	return made(budget.Open(plan))
}

// verified is saved, with fn as the check of snapshots from outside.
func verified(b *budget.Budget, fn func(save.View, *Frog)) (frog *Frog, ring *save.Ring) {
	level := b.Region("level")
	load(b, "level", func(s scope.Scope) *Frog {
		state, root := save.Begin(level, s, frogs)
		state.Verify(func(v save.View) error {
			fn(v, root)
			return nil
		})
		frog, ring = root, save.NewRing(s, 2, state)
		return nil
	})
	return frog, ring
}

// packed calls fn with a state, a heap in it, and bytes from before the state.
func packed(fn func(state *save.State, s scope.Scope, heap arena.Heap, before []byte)) {
	b := openState()
	level := b.Region("level")
	load(b, "level", func(s scope.Scope) *Frog {
		before := s.BytesUnzeroed(2048, 64)
		state, root := save.Begin(level, s, frogs)
		fn(state, s, made(arena.NewHeap(s.BytesUnzeroed(2048, 64), 0)), before)
		return root
	})
}

// order calls first and then second, or the other way around.
func order(reversed bool, first, second func()) {
	if reversed {
		first, second = second, first
	}
	first()
	second()
}

// fromOutside applies a delta to the ring.
func fromOutside(frog *Frog, ring *save.Ring) {
	check(ring.Take(1))
	frog.Age++
	check(ring.Take(2))
	delta, err := ring.Delta(nil, 1, 2)
	check(err)
	_, err = ring.Apply(delta)
	check(err)
}

// noMore allocates nothing.
func noMore(scope.Scope) {}

var states = []line{
	{"restore a snapshot after the region was loaded again, or its objects with a finalizer ended", []program{
		{name: "Restore after a Load", says: "rewound or loaded again since", run: func(wrong bool) {
			b := open()
			_, ring := saved(b, noMore, noMore)
			if wrong {
				saved(b, noMore, noMore)
			}
			check(ring.Restore(ctx, 1))
		}},
		{name: "Restore after a Put", says: "finalizers ran", run: func(wrong bool) {
			b := open()
			var pool scope.ObjectPool[Frog]
			_, ring := saved(b, noMore, func(s scope.Scope) { pool = croakers.Pool(s, 2) })
			frog := pool.Get()
			check(ring.Take(1))
			if wrong {
				check(pool.Put(frog))
			}
			check(ring.Restore(ctx, 1))
		}},
	}, []answer{
		{every, "number of the load; state of the pool", "region level", told},
	}, ""},
	{"end a state while a Builder is at work in it", []program{
		{name: "NewRing before Done", run: func(wrong bool) {
			b := open()
			saved(b, noMore, func(s scope.Scope) {
				frogs := frogs.Build(s)
				frogs.Push(Frog{})
				if !wrong {
					frogs.Done()
				}
			})
		}},
	}, []answer{
		{every, "scope's state", "save: BUG: a Builder is at work in region level … call Done before NewRing", panics},
	}, ""},
	{"grow a scope.List in a state", []program{
		{name: "Push to a scope.List after Begin", run: func(wrong bool) {
			b := openState()
			level := b.Region("level")
			load(b, "level", func(s scope.Scope) *Frog {
				_, root := save.Begin(level, s, frogs)
				list := frogs.List(b.Scratch(0, 0).Open("query"))
				if wrong {
					list = frogs.List(s)
				}
				list.Push(Frog{})
				list.Slice(s)
				return root
			})
		}},
	}, []answer{
		{every, "scope's state", "scope: BUG: Push to a List in a state", panics},
	}, ""},
	{"have bools in a state to which Go code alone leads", []program{
		{name: "NewRing with bools that nothing leads to", run: func(wrong bool) {
			b := openState()
			level := b.Region("level")
			load(b, "level", func(s scope.Scope) *Frog {
				state, _ := save.Begin(level, s, frogs)
				flags := bools.Slice(s, 4)
				if !wrong {
					save.Values(state, flags)
				}
				save.NewRing(s, 1, state)
				return nil
			})
		}},
	}, []answer{
		{"checked", "type", "can't be checked … call save.Values … made at", panics},
	}, ""},
	{"use a save.View after its function returned", []program{
		{name: "At of a View that is kept", says: "used outside of its function", run: func(wrong bool) {
			b := openState()
			var kept save.View
			frog, ring := verified(b, func(v save.View, _ *Frog) { kept = v })
			fromOutside(frog, ring)
			if wrong {
				save.At(kept, frog)
			}
		}},
	}, []answer{
		{every, "view's word", "save: BUG: a View is used", panics},
	}, ""},
	{"write through a save.View", []program{
		{name: "Verify that writes", run: func(wrong bool) {
			b := openState()
			frog, ring := verified(b, func(v save.View, frog *Frog) {
				if wrong {
					save.At(v, frog).Age++
				}
			})
			fromOutside(frog, ring)
		}},
	}, []answer{
		{"checked", "sum", "save: BUG: a function of State.Verify wrote to the snapshot", panics},
	}, ""},
	{"give State.Heap a heap after NewRing, a second time, or one that isn't in the state", []program{
		{name: "State.Heap after NewRing", says: "it is called after NewRing", run: func(wrong bool) {
			packed(func(state *save.State, s scope.Scope, heap arena.Heap, _ []byte) {
				order(wrong, func() { state.Heap(heap, 2048) }, func() { save.NewRing(s, 1, state) })
			})
		}},
		{name: "State.Heap twice", says: "overlaps the one at", run: func(wrong bool) {
			packed(func(state *save.State, s scope.Scope, heap arena.Heap, _ []byte) {
				state.Heap(heap, 2048)
				if wrong {
					state.Library(heap, 2048)
				}
				save.NewRing(s, 1, state)
			})
		}},
		{name: "State.Heap of a heap from before Begin", says: "isn't on bytes of the state", run: func(wrong bool) {
			packed(func(state *save.State, s scope.Scope, heap arena.Heap, before []byte) {
				if wrong {
					heap = made(arena.NewHeap(before, 0))
				}
				state.Heap(heap, 2048)
				save.NewRing(s, 1, state)
			})
		}},
		{name: "State.Heap of no heap", says: "zero arena.Heap", run: func(wrong bool) {
			packed(func(state *save.State, s scope.Scope, heap arena.Heap, _ []byte) {
				if wrong {
					heap = arena.Heap{}
				}
				state.Heap(heap, 2048)
				save.NewRing(s, 1, state)
			})
		}},
	}, []answer{
		{every, "state's words", "save: BUG: State.", panics},
	}, ""},
	{"write an object made before save.Begin, which no snapshot has", []program{
		{name: "Take after a write before Begin", run: func(wrong bool) {
			b := open()
			var line *Frog
			_, ring := saved(b, func(s scope.Scope) { line = frogs.New(s) }, noMore)
			write(wrong, line)
			check(ring.Take(2))
		}},
	}, []answer{
		{"checked", "sums", "memory from before Begin was written since … made at", told},
	}, ""},
}
