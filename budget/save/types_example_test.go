package save_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// Board is a state whose Turn is the number of a player.
type Board struct{ Turn, Move uint32 }

var boards = scope.Plain[Board]()

// A View shows a snapshot from a file to the program's own check, before the ring takes it.
func ExampleView() {
	b, err := budget.Open(budget.Plan{Name: "board",
		Regions: []budget.RegionPlan{{Name: "game", Size: 64 * budget.KiB, State: true}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	var ring *save.Ring
	game := b.Region("game")
	board, err := budget.Load(context.Background(), game, func(s scope.Scope) (*Board, error) {
		state, board := save.Begin(game, s, boards)
		state.Verify(func(v save.View) error {
			if turn := save.At(v, board).Turn; turn > 1 {
				return fmt.Errorf("it is the turn of player %d of 2", turn)
			}
			return nil
		})
		ring = save.NewRing(s, 2, state)
		return board, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	for number, turn := range []uint32{1, 5} { // the second by a cheat
		board.Get().Turn = turn
		var file bytes.Buffer
		if err := errors.Join(ring.Take(uint64(number)), ring.Write(&file, uint64(number))); err != nil {
			log.Fatal(err)
		}
		if _, err := ring.Read(&file); err != nil {
			fmt.Println("refused, and nothing changed") // err has the error of Verify's function
			continue
		}
		fmt.Println("taken")
	}
	// Output:
	// taken
	// refused, and nothing changed
}

// The files of one tick from two machines: the first difference names the field.
func ExampleDifference() {
	var files [2]bytes.Buffer
	for i := range files {
		m, ring, done := matchRing() // a machine
		defer done()
		m.step([2]input{{Move: 5}, {Move: int64(i)}})
		if err := ring.Take(m.Tick); err != nil {
			log.Fatal(err)
		}
		if err := ring.Write(&files[i], m.Tick); err != nil {
			log.Fatal(err)
		}
	}
	d, differ, err := save.DiffFiles(&files[0], &files[1], nil)
	if err != nil {
		log.Fatal(err)
	}
	if differ {
		fmt.Printf("%s.%s: %s and %s\n", d.Object, d.Field, d.A, d.B)
		fmt.Printf("%s, byte %d: %s in a %s\n", d.Region, d.Offset, d.Kind, d.Type)
		log.Println("made in", d.Scope, d.Label, d.Made) // known in checked builds
	}
	// Output:
	// match.Scores[1]: 0 and 1
	// room, byte 16: int64 in a save_test.match
}
