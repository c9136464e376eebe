package main

import (
	"runtime"
	"sync"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/race/untold"
)

var goroutines = []line{
	{"two use one arena or pool, or fill one Builder", []program{
		{name: "two allocate in one scope", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			work := func() { frogs.TrySlice(query, 10) }
			both(wrong, work, work)
		}},
		{name: "two workers use one scratch", run: func(wrong bool) {
			scratch := open().Scratch(0, 0)
			work := func() {
				query := scratch.Open("query")
				frogs.New(query).Age = 7
				check(query.Close())
			}
			both(wrong, work, work)
		}},
		{name: "two use one pool", run: func(wrong bool) {
			pool := load(open(), "level", pondOfFrogs).Get()
			work := func() { pool.Get().Age = 7 }
			both(wrong, work, work)
		}},
		{name: "two fill one Builder", run: func(wrong bool) {
			builder := frogs.Build(open().Scratch(0, 0).Open("query"))
			work := func() { builder.Push(Frog{Age: 7}) }
			both(wrong, work, work)
		}},
	}, []answer{
		{"race", "race detector", "WARNING: DATA RACE … goroutines.go:", raced},
	}, ""},
	{"two use one Heap or Buddy without a lock", []program{
		{name: "two use one heap", only: "race", run: func(wrong bool) {
			heap := load(open(), "level", heapOf).Get()
			work := func() { check(heap.Free(heap.Alloc(64, 16))) }
			both(wrong, work, work)
		}},
		{name: "two use one buddy", only: "race", run: func(wrong bool) {
			b := made(arena.NewBuddy(arena.NewBlock(8192, 64), 64))
			work := func() { check(b.Free(b.Alloc(64, 16))) }
			both(wrong, work, work)
		}},
		{name: "two are in one heap", only: "checked", run: func(wrong bool) {
			asks(wrong, load(open(), "level", heapOf).Get())
		}},
		{name: "two are in one buddy", only: "checked", run: func(wrong bool) {
			asks(wrong, made(arena.NewBuddy(arena.NewBlock(8192, 64), 64)))
		}},
	}, []answer{
		{"race", "race detector", "WARNING: DATA RACE … goroutines.go:", raced},
		{"checked", "a word of the header", "arena: BUG: … another goroutine or thread is in a call: put one lock " +
			"around every call", told},
	}, ""},
	{"New that is full on a goroutine that a load started", []program{
		{name: "full on a load's goroutine", run: func(wrong bool) {
			load(open(), "level", func(s scope.Scope) *Frog {
				var part sync.WaitGroup
				part.Go(func() {
					if wrong {
						frogs.Slice(s, 1<<20)
					} else {
						check(s.Do("part", func(s scope.Scope) error {
							frogs.Slice(s, 10)
							return nil
						}))
					}
				})
				part.Wait()
				return nil
			})
		}},
	}, []answer{
		{every, "room", "region level is full", panics},
	}, ""},
	{"two write one object, each with a scratch arena of its own", []program{
		{name: "two write one object", run: func(wrong bool) {
			b := open()
			frog := load(b, "level", frogs.New).Get()
			worker := func(scratch scope.Scratch) func() {
				return func() {
					query := scratch.Open("query")
					near := frogs.Slice(query, 10)
					frog.Age += uint64(len(near))
					check(query.Close())
				}
			}
			both(wrong, worker(b.Scratch(0, 0)), worker(b.Scratch(1, 0)))
		}},
	}, []answer{
		{"race", "race detector", "WARNING: DATA RACE … goroutines.go:", raced},
	}, ""},
	{"two share a chunk after Put", []program{
		{name: "two share a chunk after Put", run: func(wrong bool) {
			b := open()
			pool := load(b, "level", func(s scope.Scope) *scope.SharedPool[Frog] {
				return frogs.SharedPool(s, 1)
			}).Get()
			inTurn(wrong, func(next func()) {
				frog := pool.Get()
				write(!wrong, frog)
				pool.Put(frog)
				next()
				if wrong {
					for pool.Live() == 0 { // until the other goroutine has it
						runtime.Gosched()
					}
					frog.Age = 7
				}
			}, func() { pool.Get().Age = 8 })
			check(b.Close())
		}},
	}, []answer{
		{"race", "race detector", "WARNING: DATA RACE … goroutines.go:", raced},
		{"asan", "ASan", poison, asanEnd},
		{"checked", "quarantine", toDead, panics},
	}, ""},
	{"a goroutine reads memory that another rewinds or NextFrame ends", []program{
		{name: "read during rewind", run: func(wrong bool) {
			b := open()
			level := load(b, "level", oldFrog)
			both(wrong, func() { level.Get().Age++ }, func() { check(b.Region("level").Rewind(ctx)) })
		}},
		{name: "read during NextFrame", run: func(wrong bool) {
			b := open()
			frog := frogs.New(b.Frame())
			both(wrong, func() { frog.Age++ }, func() {
				check(b.NextFrame())
				check(b.NextFrame())
			})
		}},
	}, []answer{
		{"race", "race detector", "WARNING: DATA RACE … goroutines.go:", raced},
	}, ""},
}

// asks has two goroutines call a resize until the calls overlap. Done right, a lock is around each
// call.
func asks(wrong bool, a arena.Reallocator) {
	var lock sync.Mutex
	var wg sync.WaitGroup
	p := a.Alloc(64, 16)
	for range 2 {
		wg.Go(func() {
			for n := 0; wrong || n < 1000; n++ {
				if !wrong {
					lock.Lock()
				}
				_, err := a.SizeOf(p)
				if !wrong {
					lock.Unlock()
				}
				check(err)
			}
		})
	}
	wg.Wait()
}

// both runs two goroutines, the second when the first has ended. Done wrong, the race detector
// doesn't know that order.
func both(wrong bool, first, second func()) {
	inTurn(wrong, func(next func()) {
		first()
		next()
	}, second)
}

// inTurn runs two goroutines, the second when the first calls next.
func inTurn(wrong bool, first func(next func()), second func()) {
	begin := make(chan struct{})
	tell := func(do func()) { do() }
	if wrong {
		tell = untold.Do
	}
	var wg sync.WaitGroup
	wg.Go(func() { first(func() { tell(func() { close(begin) }) }) })
	wg.Go(func() {
		tell(func() { <-begin })
		second()
	})
	wg.Wait()
}
