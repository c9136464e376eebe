package save_test

import (
	"context"
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// match is all data that a tick changes.
type match struct {
	Tick   uint64
	Scores [2]int64
}

// input is a player's move in a tick.
type input struct{ Move int64 }

var matchMaker = scope.Plain[match]()

// step advances the state by one tick. It reads only the state and the inputs.
func (m *match) step(in [2]input) {
	m.Tick++
	for i := range in {
		m.Scores[i] = m.Scores[i]*3 + in[i].Move
	}
}

// The other player's inputs arrive two ticks late. The game guesses that this player repeats the
// last move. After a wrong guess it goes back to that tick and plays again.
func Example_rollback() {
	ctx := context.Background()
	b, err := budget.Open(budget.Plan{Name: "match", Regions: []budget.RegionPlan{
		{Name: "room", Size: 64 * budget.KiB, State: true}}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	var m *match
	var ring *save.Ring
	room := b.Region("room")
	if _, err := budget.Load(ctx, room, func(s scope.Scope) (_ *match, err error) {
		var state *save.State
		state, m = save.Begin(room, s, matchMaker)
		ring = save.NewRing(s, 8, state)
		return m, nil
	}); err != nil {
		log.Fatal(err)
	}

	const ticks, late = 10, 2
	mine, his := [ticks]input{5: {9}}, [ticks]input{3: {1}, 4: {1}, 5: {1}}
	var inputs [ticks][2]input // known or guessed
	advance := func(tick uint64) {
		if err := ring.Take(tick); err != nil {
			log.Fatal(err)
		}
		m.step(inputs[tick])
	}
	replayed := uint64(0)
	for tick := uint64(0); tick < ticks; tick++ {
		inputs[tick][0] = mine[tick]
		if tick >= late { // his input of two ticks ago has arrived
			past := tick - late
			if guess := inputs[past][1]; guess != his[past] {
				for t := past; t < ticks; t++ {
					inputs[t][1] = his[past]
				}
				if err := ring.Restore(ctx, past); err != nil {
					log.Fatal(err)
				}
				for m.Tick < tick {
					replayed++
					advance(m.Tick)
				}
			}
		}
		advance(tick)
	}
	fmt.Println(m.Tick, "ticks,", replayed, "of them twice:", m.Scores)
	straight := &match{}
	for tick := range ticks {
		straight.step([2]input{mine[tick], his[tick]})
	}
	fmt.Println(m.Scores == straight.Scores)
	// Output:
	// 10 ticks, 4 of them twice: [729 1053]
	// true
}
