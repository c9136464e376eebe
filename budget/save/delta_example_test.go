package save_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// A server sends a spectator the changes of a tick. Both have played from the same start, or the
// spectator has read a file of the server.
func ExampleRing_Apply() {
	var matches [2]*match
	var rings [2]*save.Ring
	for i := range rings {
		b, err := budget.Open(budget.Plan{Name: "match", Regions: []budget.RegionPlan{
			{Name: "room", Size: 64 * budget.KiB, State: true}}})
		if err != nil {
			log.Fatal(err)
		}
		defer b.Close()
		room := b.Region("room")
		_, err = budget.Load(context.Background(), room, func(s scope.Scope) (*match, error) {
			state, m := save.Begin(room, s, matchMaker)
			rings[i] = save.NewRing(s, 8, state)
			matches[i] = m
			return m, nil
		})
		if err != nil {
			log.Fatal(err)
		}
		if err := rings[i].Take(0); err != nil {
			log.Fatal(err)
		}
	}
	server, spectator := rings[0], rings[1]

	matches[0].step([2]input{{Move: 5}})
	if err := server.Take(1); err != nil {
		log.Fatal(err)
	}
	delta, err := server.Delta(nil, 0, 1) // from the newest tick that the spectator has confirmed
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(delta), "bytes")

	tick, err := spectator.Apply(delta)
	if err != nil {
		log.Fatal(err) // nothing has changed: request a delta from another base
	}
	if err := spectator.Restore(context.Background(), tick); err != nil {
		log.Fatal(err)
	}
	fmt.Println(*matches[1])

	delta[66] ^= 1 // damage in transit
	_, err = spectator.Apply(delta)
	fmt.Println(strings.ReplaceAll(err.Error(), ": it", ":\n  it"))
	// Output:
	// 70 bytes
	// {1 [5 0]}
	// save: a delta for region room, byte 48:
	//   it is damaged:
	//   it makes a snapshot with hash 0xe0d050225efd35a8, and says 0xeaa151a14bab5c0e
}
