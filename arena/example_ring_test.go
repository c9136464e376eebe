package arena_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/arena"
)

func ExampleRing() {
	r, err := arena.NewRing(arena.NewBlock(768, 64))
	if err != nil {
		panic(err)
	}
	for id := range byte(3) { // commands of different sizes
		size := 100 * (uint64(id) + 1)
		*(*byte)(r.Alloc(size, 8)) = id
	}
	fmt.Println("used", r.Stats().Used, "of", r.Stats().Size, "another:", r.Alloc(100, 8) != nil)
	p, size := r.Oldest()
	id := *(*byte)(p) // before Free: Go doesn't define the order of a call's arguments
	fmt.Println("command", id, "of", size, "bytes:", r.Free(p))
	fmt.Println("another:", r.Alloc(100, 8) != nil) // at the start, before the oldest
	// Output:
	// used 628 of 640 another: false
	// command 0 of 100 bytes: <nil>
	// another: true
}

// The last events before a crash: the newest overwrite the oldest.
func ExampleRing_Overwrite() {
	r, err := arena.NewRing(arena.NewBlock(256, 64))
	if err != nil {
		panic(err)
	}
	for event := range byte(10) {
		*(*byte)(r.Overwrite(32, 8)) = event
	}
	for p, _ := r.Oldest(); p != nil; p, _ = r.Oldest() {
		fmt.Print(*(*byte)(p), " ")
		if err := r.Free(p); err != nil {
			panic(err)
		}
	}
	fmt.Println(r.Overwrite(200, 8) == nil)
	// Output: 7 8 9 true
}

func ExampleFrame() {
	f, err := arena.NewFrame(arena.NewBlock(4096, 64), 2)
	if err != nil {
		panic(err)
	}
	near := (*[4]uint32)(f.Alloc(16, 4)) // allocated in frame 0
	near[0] = 7
	zero := f.Now()
	f.Next()
	fmt.Println("frame 1:", zero.Live(), near[0], f.Stats().Used) // still readable
	f.Next()
	fmt.Println("frame 2:", zero.Live(), zero.Alloc(16, 4) == nil)
	// Output:
	// frame 1: true 7 0
	// frame 2: false true
}
