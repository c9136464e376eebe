package arena_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/arena"
)

// A heap serves two libraries; each has its own totals, and its own name when it forgets something.
func ExampleProxy() {
	heap, err := arena.NewHeap(arena.NewBlock(8192, 64))
	if err != nil {
		panic(err)
	}
	sound, physics := arena.NewProxy("sound", heap), arena.NewProxy("physics", heap)
	voice := sound.Alloc(96, 16)
	sound.Alloc(64, 16)
	body := physics.Alloc(1000, 64)
	fmt.Println(sound.Free(body))
	fmt.Println(physics.Free(body), physics.Close())
	fmt.Println(sound.Free(voice), sound.Stats().Live, "of", sound.Stats().Total)
	fmt.Println(sound.Close())
	// Output:
	// arena: BUG: proxy "sound": Free: a block of another proxy
	// <nil> <nil>
	// <nil> 1 of 2
	// arena: proxy "sound": 1 block of 64 bytes was never freed: 64 bytes at offset 0x420
}

func ExamplePoolProxy() {
	type frog struct{ X, Y int32 }
	pool, err := arena.NewPool[frog](arena.NewBlock(1024, 64))
	if err != nil {
		panic(err)
	}
	spawner := arena.NewPoolProxy("spawner", pool)
	kept, lost := spawner.Get(), pool.Get()
	spawner.Get()
	fmt.Println(spawner.Put(lost))
	fmt.Println(spawner.Put(kept), spawner.Stats().Live, "of the pool's", pool.Live())
	fmt.Println(spawner.Close())
	// Output:
	// arena: BUG: proxy "spawner": Put: a chunk of another proxy, or of the pool itself
	// <nil> 1 of the pool's 2
	// arena: proxy "spawner": 1 chunk was never put back: 2
}
