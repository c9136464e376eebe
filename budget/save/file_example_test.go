package save_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// matchRing returns a match with its ring, as in a process of its own.
func matchRing() (*match, *save.Ring, func()) {
	b, err := budget.Open(budget.Plan{Name: "match", Regions: []budget.RegionPlan{
		{Name: "room", Size: 64 * budget.KiB, State: true}}})
	if err != nil {
		log.Fatal(err)
	}
	var ring *save.Ring
	room := b.Region("room")
	m, err := budget.Load(context.Background(), room, func(s scope.Scope) (*match, error) {
		state, m := save.Begin(room, s, matchMaker)
		ring = save.NewRing(s, 8, state)
		return m, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	return m.Get(), ring, func() { _ = b.Close() }
}

// A save game: another process reads the file, and Restore puts the state in place.
func ExampleRing_Write() {
	m, ring, done := matchRing()
	defer done()
	m.step([2]input{{Move: 5}})
	var file bytes.Buffer
	if err := ring.Take(m.Tick); err != nil {
		log.Fatal(err)
	}
	if err := ring.Write(&file, m.Tick); err != nil {
		log.Fatal(err)
	}

	later, ring, done := matchRing()
	defer done()
	tick, err := ring.Read(&file)
	if err != nil {
		log.Fatal(err) // err names the byte, and nothing has changed
	}
	fmt.Println(tick, *later)
	if err := ring.Restore(context.Background(), tick); err != nil {
		log.Fatal(err)
	}
	fmt.Println(tick, *later)
	// Output:
	// 1 {0 [0 0]}
	// 1 {1 [5 0]}
}

// The hashes of a tick differ on two machines. The other machine's snapshot arrives as a file, and
// Diff names the field.
func ExampleRing_Diff() {
	m, ring, done := matchRing()
	defer done()
	m.step([2]input{{Move: 5}, {Move: 1}})
	if err := ring.Take(1); err != nil {
		log.Fatal(err)
	}
	m.Scores[1] = 2 // a bug
	if err := ring.Take(2); err != nil {
		log.Fatal(err)
	}
	d, differ, err := ring.Diff(1, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(differ, d.Object, d.Field, d.A, d.B)
	// Output: true match Scores[1] 1 2
}
