package save_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// Weather has three values.
type Weather uint32

// A Camp has tents; one is the chief's.
type Camp struct {
	Tents arena.Slice[Tent]
	Name  arena.String
	Chief uint32 // an index of Tents
	Sky   Weather
}

// Tent is a tent of scouts.
type Tent struct{ Guests, Beds uint32 }

var (
	camps  = scope.Plain[Camp]()
	tents  = scope.Plain[Tent]()
	scouts = scope.Plain[Scout]()
)

// Scout has a home tent.
type Scout struct{ Home uint64 } // an index of Tents

// A game indexes by numbers in its state, and relies on the range of an enum. So it checks both in
// each snapshot from outside.
func ExampleState_Verify() {
	b, err := budget.Open(budget.Plan{Name: "camp", Regions: []budget.RegionPlan{
		{Name: "wood", Size: 64 * budget.KiB, State: true}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	wood := b.Region("wood")
	var ring *save.Ring
	camp, err := budget.Load(context.Background(), wood, func(s scope.Scope) (*Camp, error) {
		state, camp := save.Begin(wood, s, camps)
		camp.Tents = arena.SliceOf(wood.Base(), tents.Slice(s, 3))
		camp.Name = arena.StringOf(wood.Base(), append(s.Bytes(5)[:0], "north"...))
		pool := scouts.Pool(s, 8)
		state.Verify(func(v save.View) error {
			camp := save.At(v, camp)                  // the snapshot's copy
			tents := save.GetSlice(v, camp.Tents)     // and its tents
			for i, scout := range save.All(v, pool) { // and the scouts in its pool
				if scout.Home >= uint64(len(tents)) {
					return fmt.Errorf("scout %d: tent %d of %d", i, scout.Home, len(tents))
				}
			}
			switch {
			case save.GetString(v, camp.Name) == "":
				return errors.New("the camp has no name")
			case len(tents) != 3 || camp.Chief >= 3:
				return fmt.Errorf("the chief's tent is %d of %d", camp.Chief, len(tents))
			case camp.Sky > 2:
				return fmt.Errorf("the sky is %d: it may be 0 to 2", camp.Sky)
			}
			return nil
		})
		ring = save.NewRing(s, 2, state)
		return camp, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	_ = ring.Take(1)
	camp.Get().Chief = 7 // a cheat's change
	_ = ring.Take(2)
	delta, _ := ring.Delta(nil, 1, 2)
	_, err = ring.Apply(delta)
	fmt.Println(err)
	// Output:
	// save: a delta for region wood, byte 64: it makes a state that this program can't produce: region wood, snapshot 2: the chief's tent is 7 of 3
}
