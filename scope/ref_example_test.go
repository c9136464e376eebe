package scope_test

import (
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// A Heron is in the level. A Camera is in the systems, which outlive the level, so it refers to its
// target by a Ref.
type (
	Heron  struct{ X int32 }
	Camera struct{ Target scope.Ref[Heron] }
)

var (
	herons  = scope.Plain[Heron]()
	cameras = scope.Plain[Camera]()
)

var heronAddrs = scope.Plain[scope.Addr[Heron]]()

// ExampleAddr has a list on scratch of objects in the level, which outlives the list.
func ExampleAddr() {
	b, scratch := openExample()
	defer b.Close()
	type Level struct {
		Scope  scope.Scope // frozen after the load; AddrOf needs it to check the address
		Herons []Heron
	}
	loaded, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*Level, error) {
		return &Level{s, herons.Slice(s, 3)}, nil
	})
	if err != nil {
		panic(err)
	}
	level := loaded.Get()
	query := scratch.Open("who is near")
	near := heronAddrs.SliceCap(query, 0, len(level.Herons))
	for i := range level.Herons {
		near = append(near, scope.AddrOf(level.Scope, &level.Herons[i]))
	}
	for i, heron := range near {
		heron.Get().X = int32(10 * i)
	}
	fmt.Println(level.Herons[2].X, query.Close(), scope.Addr[Heron]{}.Get() == nil)
	// Output: 20 <nil> true
}

// ExampleRef lets systems refer to the level: after the rewind Get returns nil, and never another
// heron.
func ExampleRef() {
	b, err := budget.Open(budget.Plan{Name: "example",
		Regions: []budget.RegionPlan{{Name: "systems", Size: 64 * budget.KiB},
			{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	ctx := context.Background()
	systems, err := budget.Load(ctx, b.Region("systems"), func(s scope.Scope) (*Camera, error) {
		return cameras.New(s), nil
	})
	if err != nil {
		panic(err)
	}
	camera := systems.Get()
	fmt.Println("before:", camera.Target.Get() == nil)

	for x := range int32(2) {
		_, err = budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*Heron, error) {
			// the old level's heron is gone
			fmt.Println("while loading:", camera.Target.Get() == nil)
			heron := herons.New(s)
			heron.X = 10 * (x + 1)
			camera.Target = scope.RefTo(s, heron)
			return heron, nil
		})
		if err != nil {
			panic(err)
		}
		fmt.Println("heron at", camera.Target.Get().X)
	}
	fmt.Println(b.Region("level").Rewind(ctx), camera.Target.Get() == nil)
	// Output:
	// before: true
	// while loading: true
	// heron at 10
	// while loading: true
	// heron at 20
	// <nil> true
}
