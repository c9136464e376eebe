//upfront:keeps the programs commit misuse on purpose

package main

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/misuse/caller"
)

var staleMemory = []line{
	{"read memory of AllocUnzeroed or BytesUnzeroed before writing it", []program{
		{name: "read before write", goesOn: "the new frog's age is 0x", right: "the new frog's age is 0x0",
			run: func(wrong bool) {
				b := open()
				load(b, "level", oldFrog)
				frog := load(b, "level", func(s scope.Scope) *Frog {
					frog := (*Frog)(s.AllocUnzeroed(uint64(unsafe.Sizeof(Frog{})), 8))
					if !wrong {
						*frog = Frog{}
					}
					return frog
				}).Get()
				say("the new frog's age is %#x", frog.Age)
				check(b.Close())
			}},
	}, []answer{
		{"checked", "fill", "is 0xcbcbcbcbcbcbcbcb", goneOn},
		{"race", "fill", "is 0xdbdbdbdbdbdbdbdb", goneOn},
	}, ""},
	{"read after a region's rewind, or after NextFrame", []program{
		{name: "read after rewind", goesOn: "is 0x7", run: func(wrong bool) {
			b := open()
			frog := load(b, "level", oldFrog).Get()
			if wrong {
				check(b.Region("level").Rewind(ctx))
			}
			say("the frog's age is %#x", frog.Age)
			check(b.Close())
		}},
		{name: "read by an Addr after rewind", goesOn: "is 0x7", run: func(wrong bool) {
			b := open()
			var frog scope.Addr[Frog]
			load(b, "level", func(s scope.Scope) *Frog {
				f := oldFrog(s)
				frog = scope.AddrOf(s, f)
				return f
			})
			if wrong {
				check(b.Region("level").Rewind(ctx))
			}
			say("the frog's age is %#x", frog.Get().Age)
			check(b.Close())
		}},
		{name: "read after rewind, C", goesOn: "is 0x7", run: func(wrong bool) {
			b := open()
			caller.Keep(unsafe.Pointer(&load(b, "level", oldFrog).Get().Age))
			if wrong {
				check(b.Region("level").Rewind(ctx))
			}
			say("the frog's age is %#x", caller.Read())
			check(b.Close())
		}},
		{name: "read after NextFrame", goesOn: "is 0x7", run: func(wrong bool) {
			b := open()
			frog := oldFrog(b.Frame())
			check(b.NextFrame()) // the object lives on in this frame
			if wrong {
				check(b.NextFrame())
			}
			say("the frog's age is %#x", frog.Age)
			check(b.Close())
		}},
	}, []answer{
		{"asan", "ASan", poison, asanEnd},
		{"race", "fill", "is 0xdbdbdbdbdbdbdbdb", goneOn},
		{"checked", "no access", ofRewound, panics},
	}, ""},
	{"write after a region's next load, or after NextFrame", []program{
		{name: "write after rewind", goesOn: "the new frog's age is 0x7", right: "the new frog's age is 0x0",
			run: func(wrong bool) {
				b := open()
				frog := load(b, "level", frogs.New).Get()
				write(!wrong, frog)
				newFrog := load(b, "level", frogs.New).Get()
				write(wrong, frog)
				say("the new frog's age is %#x", newFrog.Age)
				check(b.Close())
			}},
		{name: "write after rewind, C", goesOn: "the new frog's age is 0x7", right: "the new frog's age is 0x0",
			run: func(wrong bool) {
				b := open()
				caller.Keep(unsafe.Pointer(&load(b, "level", frogs.New).Get().Age))
				if !wrong {
					caller.Write(7)
				}
				frog := load(b, "level", frogs.New).Get()
				if wrong {
					caller.Write(7)
				}
				say("the new frog's age is %#x", frog.Age)
				check(b.Close())
			}},
		{name: "write after NextFrame", goesOn: "the new frog's age is 0x7", right: "the new frog's age is 0x0",
			run: func(wrong bool) {
				b := open()
				frog := frogs.New(b.Frame())
				check(b.NextFrame())
				write(!wrong, frog)
				check(b.NextFrame())
				newFrog := frogs.New(b.Frame())
				write(wrong, frog)
				say("the new frog's age is %#x", newFrog.Age)
				for range 10 { // until its bytes are reused
					check(b.NextFrame())
					frogs.New(b.Frame())
				}
				check(b.Close())
			}},
	}, []answer{
		{"asan", "ASan", poison, asanEnd},
		{"checked", "no access", ofRewound, panics},
	}, ""},
	{"read after Close, Put or free, or temporaries after their load", []program{
		{name: "read after Close", goesOn: "is 0x7", run: func(wrong bool) {
			b, query := openQuery()
			frog := oldFrog(query)
			when(wrong, query.Close)
			say("the frog's age is %#x", frog.Age)
			when(!wrong, query.Close)
			check(b.Close())
		}},
		{name: "read after Close of an inner scope", goesOn: "is 0x7", run: func(wrong bool) {
			b, query := openQuery()
			step := query.Open("step")
			frog := oldFrog(step)
			age := frog.Age
			check(step.Close())
			if wrong {
				age = frog.Age
			}
			say("the frog's age is %#x", age)
			closeAll(query, b)
		}},
		{name: "read after Put", goesOn: "is 0x7", run: func(wrong bool) {
			b := open()
			pool := load(b, "level", pondOfFrogs).Get()
			frog := pool.Get()
			frog.Age = 7
			if wrong {
				pool.Put(frog)
			}
			say("the frog's age is %#x", frog.Age)
			check(b.Close())
		}},
		{name: "read after free", goesOn: "is 0x7", run: func(wrong bool) {
			heap := load(open(), "level", heapOf).Get()
			block := heap.Alloc(64, 16)
			word := (*uint64)(unsafe.Add(block, 32)) // the heap uses a free block's first 16 bytes
			*word = 7
			if wrong {
				check(heap.Free(block))
			}
			say("the word is %#x", *word)
		}},
		{name: "read temporaries after load", goesOn: "is 0x7", run: func(wrong bool) {
			b := open()
			var frog *Frog
			load(b, "level", func(s scope.Scope) *Frog {
				frog = oldFrog(s)
				if wrong {
					frog = oldFrog(s.Temp(64))
				}
				return nil
			})
			say("the frog's age is %#x", frog.Age)
			check(b.Close())
		}},
	}, []answer{
		{"asan", "ASan", poison, asanEnd},
		{"race, checked", "fill", "is 0xdbdbdbdbdbdbdbdb", goneOn},
	}, ""},
	{"write after Close or Put, also when the place is taken again", []program{
		{name: "write after Close", run: func(wrong bool) {
			b, query := openQuery()
			frog := frogs.New(query)
			write(!wrong, frog)
			check(query.Close())
			write(wrong, frog)
			for range 10 { // until its bytes are reused
				query = b.Scratch(0, 0).Open("query")
				frogs.Slice(query, 10)
				check(query.Close())
			}
			check(b.Close())
		}},
		{name: "write after Close of an inner scope", run: func(wrong bool) {
			b, query := openQuery()
			step := query.Open("step")
			frog := frogs.New(step)
			write(!wrong, frog)
			check(step.Close())
			write(wrong, frog)
			frogs.Slice(query, 10)
			closeAll(query, b)
		}},
		{name: "write after Put", run: func(wrong bool) {
			b := open()
			pool := load(b, "level", pondOfFrogs).Get()
			frog := pool.Get()
			write(!wrong, frog)
			pool.Put(frog)
			write(wrong, frog)
			pool.Get()
			check(b.Close())
		}},
		{name: "write after Close and New", goesOn: "the new frog's age is 0x7", run: func(wrong bool) {
			b, query := openQuery()
			step := query.Open("step")
			frog := frogs.New(step)
			write(!wrong, frog)
			check(step.Close())
			newFrog := frogs.New(query)
			write(wrong, frog)
			say("the new frog's age is %#x", newFrog.Age)
			closeAll(query, b)
		}},
		{name: "write after Put and Get", goesOn: "the new frog's age is 0x7", run: func(wrong bool) {
			b := open()
			pool := load(b, "level", pondOfFrogs).Get()
			frog := pool.Get()
			write(!wrong, frog)
			pool.Put(frog)
			newFrog := pool.Get()
			write(wrong, frog)
			say("the new frog's age is %#x", newFrog.Age)
			check(b.Close())
		}},
	}, []answer{
		{"asan", "ASan", poison, asanEnd},
		{"checked", "quarantine", toDead, panics},
	}, ""},
	{"write after free, to a block of a heap or a buddy", []program{
		{name: "write after a heap's free", goesOn: "live: 0", run: func(wrong bool) {
			heap := made(arena.NewHeap(arena.NewBlock(8192, 64), 0))
			writeFreed(heap, wrong)
			say("live: %d", heap.Stats().Live)
		}},
		{name: "write to a slice that Grow moved", goesOn: "live: 2", run: func(wrong bool) {
			heap := made(arena.NewHeap(arena.NewBlock(8192, 64), 0))
			slice := heapFrogs.Slice(heap, 8)
			heapFrogs.New(heap) // so that it moves
			longer := made(heapFrogs.Grow(heap, slice, 20))
			write(!wrong, &longer[4])
			write(wrong, &slice[4])
			say("live: %d", heap.Stats().Live)
			heap.Reset()
		}},
		{name: "write after a buddy's free", goesOn: "live: 0", run: func(wrong bool) {
			buddy := made(arena.NewBuddy(arena.NewBlock(8192, 64), 64))
			writeFreed(buddy, wrong)
			say("live: %d", buddy.Stats().Live)
		}},
	}, []answer{
		{"asan", "ASan", poison, asanEnd},
		{"checked", "quarantine", "BUG: … freed at", panics},
	}, ""},
}

// writeFreed writes to the middle of a block before its free, or after it.
func writeFreed(a interface {
	arena.Reallocator
	Reset()
}, wrong bool) {
	frog := (*[8]Frog)(a.Alloc(8*uint64(unsafe.Sizeof(Frog{})), 8))
	write(!wrong, &frog[4])
	check(a.Free(unsafe.Pointer(frog)))
	write(wrong, &frog[4])
	a.Reset()
}

func pondOfFrogs(s scope.Scope) *scope.Pool[Frog] {
	pool := frogs.Pool(s, 10)
	return &pool
}
