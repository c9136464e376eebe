// Command module runs the work with all memory of SQLite in a region of a budget.
package main

import (
	"context"
	"log"

	"github.com/upfront-mem/upfront/arena/with/sqlite"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/resident/work"
)

const size = 96 * budget.MiB

var plan = budget.Plan{
	Name:    "visits",
	Regions: []budget.RegionPlan{{Name: "sqlite", Size: size + 64*budget.KiB}},
	Pages:   budget.Pages{Prefault: budget.Off},
}

func main() {
	b, err := budget.Open(plan)
	if err != nil {
		log.Fatal(err)
	}
	_, err = budget.Load(context.Background(), b.Region("sqlite"), func(s scope.Scope) (*sqlite.Memory, error) {
		return sqlite.Use(s, size, 0)
	})
	if err != nil {
		log.Fatal(err)
	}
	cost, err := plan.Cost()
	if err != nil {
		log.Fatal(err)
	}
	work.Main(cost.Resident4K, func() {
		if _, err := b.Trim(context.Background()); err != nil {
			log.Fatal(err)
		}
	})
	if err := b.Close(); err != nil {
		log.Fatal(err)
	}
}
