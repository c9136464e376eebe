package arena_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/arena"
)

// A heap serves two libraries; each has totals of its own, and its name in the report of a leak.
func ExampleProxy() {
	heap, err := arena.NewHeap(arena.NewBlock(8192, 64), 0)
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
	// arena: proxy "sound" closed with 1 of 2 blocks live: 64 bytes at 0x7f3c00000420
	fmt.Println(sound.Close() != nil)
	// Output:
	// arena: BUG: proxy "sound": Free: not live in this proxy: another's, or freed already
	// <nil> <nil>
	// <nil> 1 of 2
	// true
}

func ExampleProxy_Trace() {
	heap, err := arena.NewHeap(arena.NewBlock(8192, 64), 0)
	if err != nil {
		panic(err)
	}
	sound := arena.NewProxy("sound", heap)
	sound.Trace(func(e arena.Event) { fmt.Println(sound.Stats().Name, e.What, e.Size) })
	_ = sound.Free(sound.Alloc(96, 16))
	sound.Alloc(1<<20, 16)
	// Output:
	// sound gave 96
	// sound took 96
	// sound refused 1048576
}
