package arena_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/arena"
)

func ExampleLinear() {
	l, err := arena.NewLinear(arena.NewBlock(4096, 64))
	if err != nil {
		panic(err)
	}
	l.Alloc(100, 8)
	mark := l.Mark()
	for l.Alloc(512, 16) != nil { // nil: full, an expected answer
	}
	fmt.Println("used", l.Used(), "of", l.Size())
	err = l.Rewind(mark)
	fmt.Println("used", l.Used(), "peak", l.Peak(), err)
	// Output:
	// used 3696 of 4032
	// used 100 peak 3696 <nil>
}

func ExamplePool() {
	type frog struct{ X, Y int32 }
	pool, err := arena.NewPool[frog](arena.NewBlock(1024, 64))
	if err != nil {
		panic(err)
	}
	f := pool.Get()
	f.X = 7
	fmt.Println(pool.Put(f), pool.Live(), "of", pool.Cap())
	fmt.Println(pool.Put(f))
	// Output:
	// <nil> 0 of 106
	// arena: BUG: Pool.Put of a arena_test.frog: put twice
}
