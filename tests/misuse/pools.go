package main

import (
	"errors"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var pools = []line{
	{"Put twice, of a foreign, interior or misaligned pointer, of a stale handle", []program{
		{name: "Put twice", says: "put already", run: func(wrong bool) {
			pool := load(open(), "level", pondOfFrogs).Get()
			frog := pool.Get()
			pool.Put(frog)
			if wrong {
				pool.Put(frog)
			}
		}},
		{name: "Put twice into a shared pool", says: "put already", run: func(wrong bool) {
			pool := load(open(), "level", func(s scope.Scope) *scope.SharedPool[Frog] {
				return frogs.SharedPool(s, 10)
			}).Get()
			frog := pool.Get()
			pool.Put(frog)
			if wrong {
				pool.Put(frog)
			}
		}},
		{name: "Put twice, objects", says: "put already", run: func(wrong bool) {
			pool := load(open(), "level", func(s scope.Scope) *scope.ObjectPool[Frog] {
				pool := mortals.Pool(s, 10)
				return &pool
			}).Get()
			frog := pool.Get()
			frog.Age = 7
			check(pool.Put(frog))
			if wrong {
				check(pool.Put(frog))
			}
		}},
		{name: "Put of a foreign pointer", says: "not a chunk of this pool",
			run: puts(func(*budget.Budget, *Frog) *Frog { return new(Frog) })},
		{name: "Put of another pool's chunk", says: "not a chunk of this pool",
			run: puts(func(b *budget.Budget, _ *Frog) *Frog {
				return load(b, "level", pondOfFrogs).Get().Get()
			})},
		{name: "Put of an interior pointer", says: "inside a chunk, not at its start",
			run: puts(func(_ *budget.Budget, frog *Frog) *Frog {
				return (*Frog)(unsafe.Pointer(&frog.Y))
			})},
		{name: "Put of a misaligned pointer", says: "inside a chunk, not at its start",
			run: puts(func(_ *budget.Budget, frog *Frog) *Frog {
				return (*Frog)(unsafe.Add(unsafe.Pointer(frog), 1))
			})},
		{name: "Put of nil", says: "Put of nil", run: puts(func(*budget.Budget, *Frog) *Frog { return nil })},
		{name: "Put into a closed pool", says: "closed already", run: func(wrong bool) {
			query := open().Scratch(0, 0).Open("query")
			pool := frogs.Pool(query, 10)
			frog := pool.Get()
			when(wrong, query.Close)
			pool.Put(frog)
		}},
		{name: "Put of a stale handle", says: "put already", run: func(wrong bool) {
			pool := load(open(), "level", func(s scope.Scope) *scope.HandlePool[Frog] {
				pool := frogs.HandlePool(s, 10)
				return &pool
			}).Get()
			_, handle := pool.Get()
			pool.Put(handle)
			_, newHandle := pool.Get() // the same chunk
			if wrong {
				newHandle = handle
			}
			pool.Put(newHandle)
		}},
	}, []answer{
		{every, "chunk's state", "scope: BUG: Put of …", panics},
	}, ""},
	{"Free a block through another proxy; close a proxy before all its blocks are freed", []program{
		{name: "Free through another proxy", says: "not live in this proxy", run: func(wrong bool) {
			heap := load(open(), "level", heapOf).Get()
			sound, music := arena.NewProxy("sound", heap), arena.NewProxy("music", heap)
			block := sound.Alloc(64, 16)
			if wrong {
				check(music.Free(block))
			}
			check(sound.Free(block))
		}},
		{name: "Close of a proxy with live blocks", says: "1 of 1 blocks live: 64 bytes", run: func(wrong bool) {
			heap := load(open(), "level", heapOf).Get()
			sound := arena.NewProxy("sound", heap)
			block := sound.Alloc(64, 16)
			if !wrong {
				check(sound.Free(block))
			}
			check(sound.Close())
		}},
	}, []answer{
		{every, "proxy", "proxy …", told},
	}, ""},
}

var mortals = scope.Object(func(f *Frog) error {
	if f.Age == 0 {
		return errors.New("finalized twice")
	}
	f.Age = 0
	return nil
})

// puts is a program that puts a chunk, or another pointer.
func puts(instead func(b *budget.Budget, frog *Frog) *Frog) func(wrong bool) {
	return func(wrong bool) {
		b := open()
		pool := load(b, "systems", pondOfFrogs).Get()
		frog := pool.Get()
		if wrong {
			frog = instead(b, frog)
		}
		pool.Put(frog)
	}
}
