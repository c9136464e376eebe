package inside_test

import (
	"context"
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/inside"
	"github.com/upfront-mem/upfront/scope"
)

type frog struct{ X, Y int32 }

var frogs = scope.Plain[frog]()

// The contents of a level include its pools, with a letter for each chunk: # is live.
func Example() {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.KiB}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	level := b.Region("level")
	_, err = budget.Load(context.Background(), level, func(s scope.Scope) (*frog, error) {
		pool := frogs.Pool(s, 4)
		pool.Get()
		return pool.Get(), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	contents, err := inside.OfRegion(level)
	if err != nil {
		log.Fatal(err)
	}
	for _, span := range contents.Spans {
		if span.Pool != nil {
			fmt.Println(span.Scope, span.Kind, span.Pool.States)
		}
	}
	// Output: level pool ##--
}
