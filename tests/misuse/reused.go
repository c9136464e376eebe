package main

// Stale pointers to a place that was given out again: in release only names that know their end can tell (Handle, Ref).

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
		{"asan, checked", "address", "scope: BUG: Put of … put twice", panics},
	}, ""},
	{"free twice, when the block is taken again", []program{
		{name: "free after free and Alloc", goesOn: "live: 0", right: "live: 1", run: func(wrong bool) {
			b := open()
			heap := load(b, "level", heapOf).Get()
			block := heap.Alloc(64, 16)
			check(heap.Free(block))
			heap.Alloc(64, 16) // the same block
			if wrong {
				check(heap.Free(block))
			}
			say("live: %d", heap.Stats().Live)
			check(b.Close())
		}},
	}, nil, "hits what is new"},
}
