package serve

import (
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// window is the number of ticks whose inputs a room keeps: past ticks, for late inputs, and ahead
// future ticks, for early ones. A future tick reuses the entry of a tick that is older than
// rollbackMost.
const (
	window       = 64
	ahead        = 32
	rollbackMost = window - ahead - 1
)

// inputs are the inputs of a room's players by tick: the inputs that arrived, and the inputs that
// were played. They are plain data, since a checkpoint has them.
type inputs struct {
	players uint32
	// By tick: a bit for each player with an arrived input.
	known        [window]uint32
	marks        [window]marks                   // by tick
	came, played [window][PlayersMost]game.Input // by tick and player
}

// marks are the players that enter and leave at a tick, a bit for each. Only the server sets them.
type marks struct{ enter, fresh, leave uint32 }

func (in *inputs) reset() {
	clear(in.known[:])
	clear(in.marks[:])
	clear(in.came[:])
	clear(in.played[:])
}

// of returns the inputs that a tick was played with.
func (in *inputs) of(tick uint32) []game.Input {
	return in.played[tick%window][:in.players:in.players]
}

func (in *inputs) mark(tick uint32) *marks { return &in.marks[tick%window] }

type arrival uint8

const (
	fine  arrival = iota
	known         // it arrived before
	early         // too early
	late          // too late
	wrong         // the tick was played with another input
)

// hear takes a player's input for a tick, and returns how it arrived. now is the next tick to play,
// and oldest the first tick that can be played again.
func (in *inputs) hear(player int, tick, now, oldest uint32, wants wire.Input) arrival {
	lead := int32(tick - now)
	switch {
	case lead >= ahead:
		return early
	case lead < -rollbackMost:
		return late
	}
	bit := uint32(1) << player
	if in.known[tick%window]&bit != 0 {
		return known
	}
	in.known[tick%window] |= bit
	if int32(tick-oldest) < 0 {
		return late
	}
	came := game.Input{Heading: wants.Heading & 15, Flags: game.Flags(wants.Flags) & game.FromAfar}
	if came.Flags&game.Spawn != 0 {
		came.SpawnAt = place(wants.X, wants.Y)
	}
	in.came[tick%window][player] = came
	if lead >= 0 {
		return fine
	}
	was := in.played[tick%window][player]
	was.Flags &= game.FromAfar
	if was == came {
		return fine
	}
	return wrong
}

// forget drops the inputs that a place's former player sent for a tick and later ones.
func (in *inputs) forget(player int, from uint32) {
	for i := range uint32(ahead) {
		in.known[(from+i)%window] &^= 1 << player
	}
}

// compose returns the inputs to play a tick with: the inputs that arrived, or else guesses, with
// the marks for entering and leaving.
func (in *inputs) compose(tick uint32) []game.Input {
	list, before, m := in.of(tick), in.of(tick-1), in.mark(tick)
	for p := range list {
		bit := uint32(1) << p
		list[p] = before[p].Guess()
		list[p].SpawnAt = doom.Point{} // a guess spawns no frog
		if m.enter&bit != 0 {
			list[p] = game.Input{} // no guess: the last input was another player's, or is old
		}
		if in.known[tick%window]&bit != 0 {
			list[p] = in.came[tick%window][p]
		}
		list[p].Flags &= game.FromAfar
		if m.leave&bit != 0 {
			list[p].Flags |= game.Leave
		}
		if m.enter&bit != 0 {
			list[p].Flags |= game.Enter
		}
		if m.fresh&bit != 0 {
			list[p].Flags |= game.Fresh
		}
	}
	return list
}

// open clears the entry of the last future tick that is accepted when now is the next to play.
func (in *inputs) open(now uint32) {
	in.known[(now+ahead-1)%window], in.marks[(now+ahead-1)%window] = 0, marks{}
}
