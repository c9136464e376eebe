package serve

import (
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// window is how many ticks of inputs a room keeps: those that may still come late, and those that
// came early. What comes for a tick ahead takes the place of one that nobody rolls back to.
const (
	window       = 64
	ahead        = 32
	rollbackMost = window - ahead - 1
)

// inputs are what a room's players want, by tick: what came, and what was played with.
type inputs struct {
	players int
	came    []game.Input // by tick and player
	played  []game.Input
	known   []uint32 // by tick: whose came, a bit for each
	marks   []marks  // by tick
}

// marks are who comes and goes at a tick, a bit for each player. The server alone says so.
type marks struct{ enter, fresh, leave uint32 }

var (
	inputMaker = scope.Plain[game.Input]()
	wordMaker  = scope.Plain[uint32]()
	marksMaker = scope.Plain[marks]()
)

func newInputs(s scope.Scope, players int) inputs {
	return inputs{players: players, came: inputMaker.Slice(s, window*players),
		played: inputMaker.Slice(s, window*players), known: wordMaker.Slice(s, window),
		marks: marksMaker.Slice(s, window)}
}

// reset forgets all: another map begins.
func (in *inputs) reset() {
	clear(in.came)
	clear(in.played)
	clear(in.known)
	clear(in.marks)
}

// of is what was played in a tick.
func (in *inputs) of(tick uint32) []game.Input {
	at := int(tick%window) * in.players
	return in.played[at : at+in.players : at+in.players]
}

func (in *inputs) mark(tick uint32) *marks { return &in.marks[tick%window] }

// arrival is what became of an input that came.
type arrival uint8

const (
	fine  arrival = iota
	known         // it came before
	early         // too early
	late          // too late
	wrong         // the tick was played with another one
)

// hear takes an input of a player for a tick. now is the tick to be played next, and oldest the
// first that can be played again.
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
	at := int(tick%window)*in.players + player
	came := game.Input{Heading: wants.Heading & 15, Flags: game.Flags(wants.Flags) & game.FromAfar}
	if came.Flags&game.Spawn != 0 {
		came.SpawnAt = place(wants.X, wants.Y)
	}
	in.came[at] = came
	if lead >= 0 {
		return fine
	}
	was := in.played[at]
	was.Flags &= game.FromAfar
	if was == came {
		return fine
	}
	return wrong
}

// forget is for a player who comes: what the last one in its place said of a tick, and those after
// it, isn't done.
func (in *inputs) forget(player int, from uint32) {
	for i := range uint32(ahead) {
		in.known[(from+i)%window] &^= 1 << player
	}
}

// compose says what a tick is played with: what came, or else a guess; and who comes and goes.
func (in *inputs) compose(tick uint32) []game.Input {
	list, before, m := in.of(tick), in.of(tick-1), in.mark(tick)
	first := int(tick%window) * in.players
	for p := range list {
		bit := uint32(1) << p
		list[p] = before[p].Guess()
		list[p].SpawnAt = doom.Point{} // as of each that has no frog appear
		if m.enter&bit != 0 {
			list[p] = game.Input{} // it was another, or long ago
		}
		if in.known[tick%window]&bit != 0 {
			list[p] = in.came[first+p]
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

// open makes room for what comes for the tick that is the last to be let in, when now is played next.
func (in *inputs) open(now uint32) {
	in.known[(now+ahead-1)%window], in.marks[(now+ahead-1)%window] = 0, marks{}
}
