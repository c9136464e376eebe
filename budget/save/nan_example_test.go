package save_test

import (
	"context"
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// A test of a game asks after each tick.
func ExampleState_NaN() {
	type Match struct {
		Tick   uint64
		Speeds [2]float64
	}
	b, err := budget.Open(budget.Plan{Name: "match", Regions: []budget.RegionPlan{
		{Name: "room", Size: 64 * budget.KiB, State: true}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	var state *save.State
	room := b.Region("room")
	var match *Match
	_, err = budget.Load(context.Background(), room, func(s scope.Scope) (*Match, error) {
		state, match = save.Begin(room, s, scope.Plain[Match]())
		save.NewRing(s, 8, state)
		return match, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	for distance := 1.0; distance >= 0; distance-- {
		match.Tick++
		match.Speeds[1] = distance / distance // 0/0 in the second tick
		field, err := state.NaN()
		fmt.Printf("tick %d: %q %v\n", match.Tick, field, err)
	}

	// Output:
	// tick 1: "" <nil>
	// tick 2: "Match.Speeds[1]" <nil>
}
