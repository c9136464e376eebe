package budget_test

import (
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
)

// A player is in a match or in none. The zero Region is none.
func ExampleRegion() {
	b, err := budget.Open(budget.Plan{Name: "server",
		Regions: []budget.RegionPlan{{Name: "match", Size: 64 * budget.KiB, Slots: 2}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()

	var player struct{ match budget.Region }
	say := func() {
		if player.match == (budget.Region{}) {
			fmt.Println("in no match")
			return
		}
		fmt.Println("in", player.match.Name())
	}
	say()
	if player.match, err = b.Slots("match").Acquire(); err != nil {
		panic(err)
	}
	say()
	if err := player.match.Release(context.Background()); err != nil {
		panic(err)
	}
	player.match = budget.Region{}
	say()
	// Output:
	// in no match
	// in match 0
	// in no match
}
