package budget_test

import (
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func loadWorld(r budget.Region, size int) error {
	_, err := budget.Load(context.Background(), r, func(s scope.Scope) (*struct{}, error) {
		s.Bytes(size)
		return nil, nil
	})
	return err
}

// The city has many sounds and a small map; the desert has few sounds and a large map. Reconfigure
// moves the boundary between the two regions.
func ExampleBudget_Reconfigure() {
	b, err := budget.Open(budget.Plan{Name: "worlds", Regions: []budget.RegionPlan{
		{Name: "sound", Size: 512 * budget.KiB}, {Name: "map", Size: 256 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	ctx := context.Background()
	fmt.Println("city:", loadWorld(b.Region("sound"), 500*budget.KiB), loadWorld(b.Region("map"), 200*budget.KiB))

	plan := b.Plan() // a copy
	plan.Regions[0].Size = 128 * budget.KiB
	plan.Regions[1].Size = 640 * budget.KiB // the same total
	fmt.Println(b.Reconfigure(ctx, plan))   // NOT OKAY: the city is still loaded

	fmt.Println("rewind:", b.Region("sound").Rewind(ctx)) // and map, which is above it
	fmt.Println("reconfigure:", b.Reconfigure(ctx, plan))
	fmt.Println("desert:", loadWorld(b.Region("sound"), 100*budget.KiB), loadWorld(b.Region("map"), 600*budget.KiB))
	// Output:
	// city: <nil> <nil>
	// budget "worlds": Reconfigure while region sound is loaded; Rewind it first
	// rewind: <nil>
	// reconfigure: <nil>
	// desert: <nil> <nil>
}
