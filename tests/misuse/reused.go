package main

import "github.com/upfront-mem/upfront/scope/container"

// Stale pointers to a place that is allocated again: in release only Handle and Ref detect it.

var reusedMemory = []line{
	{"Put twice, when the chunk is taken again", []program{
		{name: "Put after Put and Get", goesOn: "live: 0", right: "live: 1", run: func(wrong bool) {
			b := open()
			pool := load(b, "level", pondOfFrogs).Get()
			frog := pool.Get()
			pool.Put(frog)
			pool.Get() // the same chunk
			if wrong {
				pool.Put(frog)
			}
			say("live: %d", pool.Live())
			check(b.Close())
		}},
	}, []answer{
		{"asan, checked", "address", "scope: BUG: Put of … put already", panics},
	}, ""},
	{"read a container's value after it was taken away", []program{
		{name: "read after Delete", goesOn: "is 0x7", run: func(wrong bool) {
			byName := container.NewStringMap(open().Scratch(0, 0).Open("query"), frogs, 2, 8)
			check(byName.Set("ada", Frog{Age: 7}))
			ada := byName.Get("ada")
			check(byName.Set("bob", Frog{}))
			if wrong {
				byName.Delete("ada")
			}
			say("the frog's age is %#x", ada.Age)
		}},
		{name: "read after Pop", goesOn: "is 0x7", run: func(wrong bool) {
			list := container.NewList(open().Scratch(0, 0).Open("query"), frogs, 2)
			list.Push(Frog{Age: 7})
			frog := list.At(0)
			if wrong {
				list.Pop()
			}
			say("the frog's age is %#x", frog.Age)
		}},
	}, []answer{
		{"race", "fill", "is 0xdbdbdbdbdbdbdbdb", goneOn},
	}, ""},
	{"free twice, when the block is taken again", []program{
		{name: "free after free and Alloc", goesOn: "live: 0", right: "live: 1", run: func(wrong bool) {
			b := open()
			heap := load(b, "level", heapOf).Get()
			heap.MayLive()
			block := heap.Alloc(64, 16)
			check(heap.Free(block))
			heap.Alloc(64, 16) // the same block
			if wrong {
				check(heap.Free(block))
			}
			say("live: %d", heap.Stats().Live)
			check(b.Close())
		}},
	}, []answer{
		{"checked", "quarantine", freedTwice, told},
	}, ""},
}
