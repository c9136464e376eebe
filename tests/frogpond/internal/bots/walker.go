package bots

import (
	"math/rand/v2"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// walker decides a bot's inputs. It has the views, but no map: it walks straight on, turns when it
// is stuck, and runs after frogs.
type walker struct {
	random  *rand.Rand
	heading uint32
	at      doom.Point // at the last look
	seen    uint32     // tick of the last view
	stuck   int        // looks in a row without a move
	chase   int        // looks spent on chasing frogs; if negative, looks left to ignore them
}

const (
	chaseMost  = 70 // looks until it gives up on frogs, which may be behind a wall
	chaseNever = 35
	sight      = 384 // units
	spawnEvery = 16  // mean ticks between the frogs that it spawns
)

func (w *walker) decide(v *wire.View) (in wire.Input) {
	if v == nil || v.Flags&wire.NotHere != 0 {
		return in
	}
	at := doom.Point{X: v.Self.X, Y: v.Self.Y}
	if v.Tick != w.seen {
		w.look(v, at)
	}
	in.Flags = uint8(game.Walk)
	if w.stuck > 0 && w.random.IntN(4) == 0 { // at a door, perhaps
		in.Flags |= uint8(game.Use)
	}
	if w.random.IntN(spawnEvery) == 0 {
		in.Flags |= uint8(game.Spawn)
		place := at.Step(w.random.Uint32(), 64+w.random.Int32N(129))
		in.X, in.Y = int16(place.X>>doom.UnitBits), int16(place.Y>>doom.UnitBits)
	}
	in.Heading = uint8(w.heading)
	return in
}

// look chooses a heading from a new view.
func (w *walker) look(v *wire.View, at doom.Point) {
	moved := at != w.at
	w.at, w.seen = at, v.Tick
	if moved {
		w.stuck = 0
	} else {
		w.stuck++
	}
	switch frog, sees := nearestFrog(v, at); {
	case w.stuck > 2: // the next step may take some looks to show
		w.heading, w.stuck, w.chase = w.random.Uint32()&15, 1, -chaseNever
	case w.chase < 0:
		w.chase++
	case sees:
		w.heading = at.Toward(frog)
		if w.chase++; w.chase > chaseMost {
			w.chase = -chaseNever
		}
	default:
		w.chase = 0
	}
}

func nearestFrog(v *wire.View, at doom.Point) (frog doom.Point, sees bool) {
	least := int64(sight * sight)
	for i := range v.Shown() {
		t := &v.Things[i]
		if t.Kind != game.SeenFrog {
			continue
		}
		dx := int64(t.X) - int64(at.X>>doom.UnitBits)
		dy := int64(t.Y) - int64(at.Y>>doom.UnitBits)
		if d := dx*dx + dy*dy; d < least {
			least, sees = d, true
			frog = doom.Point{X: int32(t.X) << doom.UnitBits, Y: int32(t.Y) << doom.UnitBits}
		}
	}
	return frog, sees
}
