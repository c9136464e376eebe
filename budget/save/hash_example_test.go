package save_test

import (
	"context"
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// A map of 12,000 bytes on two machines has different hashes after a tick. Twelve bytes of hashes
// show which pages differ.
func ExampleRing_PageHashes() {
	type tiles struct{ Ground [6000]uint16 }
	var hashes [2][]uint32
	for machine := range hashes {
		b, err := budget.Open(budget.Plan{Name: "map", Regions: []budget.RegionPlan{
			{Name: "room", Size: 64 * budget.KiB, State: true}}})
		if err != nil {
			log.Fatal(err)
		}
		defer b.Close()
		var ring *save.Ring
		room := b.Region("room")
		_, err = budget.Load(context.Background(), room, func(s scope.Scope) (*tiles, error) {
			state, t := save.Begin(room, s, scope.Plain[tiles]())
			ring = save.NewRing(s, 1, state)
			t.Ground[5000] = uint16(machine) // a bug
			return t, nil
		})
		if err != nil {
			log.Fatal(err)
		}
		if err := ring.Take(1); err != nil {
			log.Fatal(err)
		}
		if hashes[machine], err = ring.PageHashes(nil, 1); err != nil {
			log.Fatal(err)
		}
	}
	for page, hash := range hashes[0] {
		if hash != hashes[1][page] {
			fmt.Println("page", page, "of", len(hashes[0]), "from byte", page*save.PageSize)
		}
	}
	// Output: page 2 of 3 from byte 8192
}
