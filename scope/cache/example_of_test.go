package cache_test

import (
	"context"
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
	b, err := budget.Open(budget.Plan{Name: "viewer", Regions: []budget.RegionPlan{{Name: "gallery", Size: budget.MiB}}})
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
