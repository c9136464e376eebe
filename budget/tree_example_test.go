package budget_test

import (
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// A tile server reloads its styles and its map apart from each other.
func ExampleRegionPlan_siblings() {
	b, err := budget.Open(budget.Plan{Name: "tiles", Regions: []budget.RegionPlan{
		{Name: "styles", Size: 64 * budget.KiB},
		{Name: "map", Size: budget.MiB, On: budget.Root},
		{Name: "streets", Size: budget.MiB, On: "map"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	load := func(name string) {
		_, err := budget.Load(context.Background(), b.Region(name), func(s scope.Scope) (*int, error) {
			s.Defer(func() { fmt.Println("-", name, "ends") })
			return nil, nil
		})
		fmt.Println(name, "is loaded:", err == nil)
	}
	for _, name := range []string{"styles", "map", "streets", "styles", "map"} {
		load(name)
	}
	fmt.Println("close:", b.Close())
	// Output:
	// styles is loaded: true
	// map is loaded: true
	// streets is loaded: true
	// - styles ends
	// styles is loaded: true
	// - streets ends
	// - map ends
	// map is loaded: true
	// - map ends
	// - styles ends
	// close: <nil>
}

// A request that comes during a reload waits for the end of the reload.
func ExampleReader_PinContext() {
	b, err := budget.Open(budget.Plan{Name: "tiles", Regions: []budget.RegionPlan{{Name: "map", Size: budget.MiB}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	region := b.Region("map")
	reader, done := region.Reader("request"), make(chan error)
	_, err = budget.Load(context.Background(), region, func(scope.Scope) (*int, error) {
		fmt.Println("pinned in the load:", reader.Pin())
		go func() { done <- reader.PinContext(context.Background()) }()
		return nil, nil
	})
	fmt.Println("loaded:", err == nil)
	if <-done == nil {
		fmt.Println("pinned")
		reader.Unpin()
	}
	// Output:
	// pinned in the load: false
	// loaded: true
	// pinned
}
