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
	fmt.Println("used", l.Stats().Used, "of", l.Stats().Size)
	err = l.Rewind(mark)
	fmt.Println("used", l.Stats().Used, "peak", l.Stats().Peak, err)
	// Output:
	// used 3696 of 3968
	// used 100 peak 3696 <nil>
}

func ExampleBlockPool() {
	type frog struct{ X, Y int32 }
	pool, err := arena.NewBlockPool[frog](arena.NewBlock(1024, 64))
	if err != nil {
		panic(err)
	}
	f := pool.Get()
	f.X = 7
	fmt.Println(pool.Put(f), pool.Live(), "of", pool.Cap())
	fmt.Println(pool.Put(f))
	// Output:
	// <nil> 0 of 73
	// arena: BUG: BlockPool.Put of a arena_test.frog: put already
}

func ExampleLinear_Far() {
	l, err := arena.NewLinear(arena.NewBlock(4096, 64))
	if err != nil {
		panic(err)
	}
	far := l.Far()
	raw := far.Alloc(1000, 1)            // bytes read from a file
	level := l.Alloc(500, 8)             // the level made from them
	ok, err := l.Resize(level, 500, 420) // it needed less
	far.Reset()
	fmt.Println(raw != nil, ok, err, l.Stats().Used, far.Stats().Used, far.Stats().Peak)
	// Output: true true <nil> 420 0 1000
}

// Short names are stored in the frogs themselves: they are keys, are saved, and need no base.
func ExampleInline() {
	type frog struct {
		Name arena.Inline[[8]byte]
		Age  int32
	}
	var ada, bob frog
	fmt.Println(ada.Name.Set("Ada"), bob.Name.Set("Bob"), bob.Name.Set("Bartholomew"))
	ages := map[arena.Inline[[8]byte]]int32{ada.Name: 3, bob.Name: 5}
	fmt.Println(&ada.Name, ada.Name == bob.Name, ages[ada.Name], bob.Name.Bytes())
	// Output:
	// true true false
	// Ada false 3 [66 111 98]
}

// A name from the network comes as bytes, in a buffer that the next packet overwrites.
func ExampleInline_SetBytes() {
	buffer := []byte("\x03Ada")
	var name arena.Inline[[8]byte]
	fmt.Println(name.SetBytes(buffer[1:1+buffer[0]]), name.SetBytes(make([]byte, 9)))
	clear(buffer)
	fmt.Println(name.String())
	// Output:
	// true false
	// Ada
}
