package scope_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// A server whose match doesn't fit reports the key of the plan to raise, and goes on.
func ExampleFullError() {
	b,
		err := budget.Open(budget.Plan{Name: "server",
		Regions: []budget.RegionPlan{{Name: "match", Size: 64 * budget.KiB}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	for _, players := range []int{4_000, 400} {
		_, err = budget.Load(context.Background(), b.Region("match"), func(s scope.Scope) (*Player, error) {
			return &playerKind.Slice(s, players)[0], nil
		})
		var full *scope.FullError
		if errors.As(err, &full) {
			fmt.Printf("%d players: %s asked for %d bytes; set %s to %d\n", players, full.Arena, full.Asked,
				full.Key, full.Need)
			continue
		}
		fmt.Printf("%d players: %v\n", players, err)
	}
	// Output:
	// 4000 players: region match asked for 128000 bytes; set regions[0].size to 128000
	// 400 players: <nil>
}
