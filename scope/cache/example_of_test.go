package cache_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
)

// picture is a decoded picture of 32 × 32 pixels.
type picture struct{ Pixels [32 * 32]uint32 }

var (
	pictureIDs = scope.Plain[uint32]()
	pictures   = scope.Plain[picture]()
)

// decode stands for a decoder that reads a file.
func decode(id uint32) func(context.Context, *picture) error {
	return func(_ context.Context, p *picture) error {
		fmt.Println("decode", id)
		for i := range p.Pixels {
			p.Pixels[i] = id
		}
		return nil
	}
}

// A cache of at most 100 pictures. A picture is pinned while it is drawn.
func ExampleOf() {
	b, err := budget.Open(budget.Plan{Name: "viewer",
		Regions: []budget.RegionPlan{{Name: "gallery", Size: budget.MiB}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	ctx := context.Background()
	gallery, err := budget.Load(ctx, b.Region("gallery"), func(s scope.Scope) (*cache.Of[uint32, picture], error) {
		return cache.New(s, pictureIDs, pictures, 100), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	c := gallery.Get()
	for _, id := range []uint32{7, 8, 7} {
		p, err := c.GetOrLoad(ctx, id, decode(id))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("draw", p.Pixels[0])
		c.Unpin(p)
	}
	// Output:
	// decode 7
	// draw 7
	// decode 8
	// draw 8
	// draw 7
}

// inMemory opens a scope that stays open until the process exits.
func inMemory(name string) scope.Scope {
	b, err := budget.Open(budget.Plan{Name: name, Scratch: budget.ScratchPlan{Workers: 1, Size: 2 * budget.MiB}})
	if err != nil {
		panic(err)
	}
	return b.Scratch(0, 0).Open(name)
}

// The errors of a cache.
func ExampleInUseError() {
	ctx := context.Background()
	c := cache.New(inMemory("gallery"), pictureIDs, pictures, 2)
	first, err := c.Add(7)
	fmt.Println(err)
	_, err = c.Add(7)
	fmt.Println(errors.Is(err, cache.ErrPresent))
	_, err = c.GetOrLoad(ctx, 8, func(ctx context.Context, _ *picture) error {
		_, err := c.GetOrLoad(ctx, 8, decode(8))
		return err
	})
	fmt.Println(errors.Is(err, cache.ErrCycle))

	_, err = c.Add(9)
	fmt.Println(err)
	_, err = c.Add(10)
	if inUse := (*cache.InUseError)(nil); errors.As(err, &inUse) {
		fmt.Println(inUse.Pinned, "of", inUse.N, "pinned; the limit is", inUse.Limit)
	}
	c.Unpin(first)
	_, err = c.Add(10)
	fmt.Println(err)
	// Output:
	// <nil>
	// true
	// true
	// <nil>
	// 2 of 2 pinned; the limit is 2
	// <nil>
}

func ExampleOfStats() {
	ctx := context.Background()
	c := cache.New(inMemory("gallery"), pictureIDs, pictures, 2)
	fails := func(context.Context, *picture) error { return errors.New("no such file") }
	for _, id := range []uint32{7, 8, 9, 9} {
		p, err := c.GetOrLoad(ctx, id, decode(id))
		if err == nil {
			c.Unpin(p)
		}
	}
	_, err := c.GetOrLoad(ctx, 10, fails)
	fmt.Println(err)
	s := c.Stats()
	fmt.Println(s.Hits, "hits,", s.Misses, "misses;", s.Loads, "loads,", s.Failed, "failed,", s.Loading, "now")
	fmt.Println(s.Len, "of", s.Limit, "values,", s.Refused, "refused;",
		s.Examined, "examined,", s.MaxExamined, "at once")
	if _, err := c.Trim(); err != nil { // pages without values go back
		panic(err)
	}
	// Output:
	// decode 7
	// decode 8
	// decode 9
	// no such file
	// 1 hits, 4 misses; 4 loads, 1 failed, 0 now
	// 1 of 2 values, 0 refused; 2 examined, 1 at once
}
