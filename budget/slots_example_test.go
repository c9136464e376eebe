package budget_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Place is the value of a slot: a match of a server, a level of a game.
type Place struct {
	Name  string
	Tiles []byte
}

func openPlaces() *budget.Budget {
	b, err := budget.Open(budget.Plan{Name: "game",
		Regions: []budget.RegionPlan{{Name: "place", Size: 64 * budget.KiB, Slots: 2}},
		GoHeap:  16 * budget.MiB}) // instead of GOGC: the heap is small without the places
	if err != nil {
		panic(err)
	}
	return b
}

func loadPlace(slot budget.Region, name string, tiles int) (budget.Loaded[Place], error) {
	return budget.Load(context.Background(), slot, func(s scope.Scope) (*Place, error) {
		return &Place{name, s.Bytes(tiles)}, nil
	})
}

// The next level is loaded into the free slot while the old level is still played. If the next
// level doesn't fit, the old level stays.
func ExampleSlots() {
	b := openPlaces()
	defer b.Close()
	ctx, slots := context.Background(), b.Slots("place")

	slot, err := slots.Acquire()
	if err != nil {
		panic(err)
	}
	level, err := loadPlace(slot, "pond", 10*budget.KiB)
	fmt.Println("start:", err)
	for _, next := range []struct {
		name  string
		tiles int
	}{{"river", 20 * budget.KiB}, {"ocean", 90 * budget.KiB}} {
		other, err := slots.Acquire()
		if err != nil {
			panic(err)
		}
		loaded, err := loadPlace(other, next.name, next.tiles)
		if err == nil {
			slot, other, level = other, slot, loaded // swapped in whole
		}
		fmt.Println(next.name, "is full:", errors.Is(err, budget.ErrFull))
		fmt.Println("release", other.Name(), other.Release(ctx)) // the level that isn't played
		fmt.Println("play", level.Get().Name, "in", slot.Name())
	}
	fmt.Println("end:", slot.Release(ctx))
	// Output:
	// start: <nil>
	// river is full: false
	// release place 0 <nil>
	// play river in place 1
	// ocean is full: true
	// release place 0 <nil>
	// play river in place 1
	// end: <nil>
}

// A server lets in as many matches as there are slots. Each match has a goroutine, which loads a
// slot, plays and releases the slot. The matches run at the same time. No region is above the
// slots, because each load of a slot would empty that region.
func ExampleSlots_Acquire() {
	b := openPlaces()
	defer b.Close()
	slots := b.Slots("place")

	var matches sync.WaitGroup
	end := make(chan struct{})
	released := make(chan error, 2)
	for i := range 3 {
		slot, err := slots.Acquire() // any goroutine may ask
		if err != nil {
			fmt.Println(strings.ReplaceAll(err.Error(), "; ", "\n  "))
			continue
		}
		fmt.Println("match", i, "is let in")
		matches.Go(func() { // from here on the slot is this goroutine's
			if match, err := loadPlace(slot, "arena", 1000); err == nil {
				match.Get().Tiles[i] = 1
				<-end // of the play
			}
			released <- slot.Release(context.Background())
		})
	}
	close(end)
	matches.Wait()
	fmt.Println("released:", <-released, <-released, "free:", slots.Available())
	// Output:
	// match 0 is let in
	// match 1 is let in
	// budget "game": region place: all 2 slots are acquired
	//   Release one, or raise regions[0].slots in the plan to 3 or more
	// released: <nil> <nil> free: 2
}
