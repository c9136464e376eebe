package serve

import (
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/web"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// stage is the memory for a copy of a room for viewers. The room's worker copies once for each
// request; the next request waits until the copy was read. The stage is allocated before play. It
// is on the Go heap, because viewers may outlive the room.
type stage struct {
	state  atomic.Uint32
	filled chan struct{} // buffers one message, so that the worker doesn't wait

	title   wire.MapName
	number  uint32
	tick    uint32
	empty   bool // the room has no map
	whole   bool // the copy is complete
	players []standing
	seen    []game.Seen
}

// The states of a stage, with their owners.
const (
	idle    uint32 = iota // the viewer's
	asked                 // either's
	filling               // the worker's, until it sends filled
)

// standing is a player's state.
type standing struct {
	place                 uint16
	name                  wire.Name
	health                int32
	caught, deaths, exits uint32
}

// sceneTime is the most time that a viewer waits. A tick comes much sooner, unless the server ends.
const sceneTime = 200 * time.Millisecond

func newStage(players int) *stage {
	return &stage{filled: make(chan struct{}, 1), players: make([]standing, 0, players),
		seen: make([]game.Seen, 0, seenMost)}
}

// ask waits until the worker has filled the stage. It returns false if the worker has stopped or is
// far behind.
func (t *stage) ask() bool {
	t.state.Store(asked)
	patience := time.NewTimer(sceneTime)
	defer patience.Stop()
	select {
	case <-t.filled:
		return true
	case <-patience.C:
	}
	if t.state.CompareAndSwap(asked, idle) {
		return false
	}
	<-t.filled // the worker has just begun
	return true
}

// show copies the room for a viewer, as the last tick left it. Without a viewer it costs one atomic
// load.
func (r *room) show(w *worker) {
	t := r.stage
	if t == nil || t.state.Load() != asked || !t.state.CompareAndSwap(asked, filling) {
		return
	}
	t.players, t.seen, t.whole = t.players[:0], t.seen[:0], true
	if t.empty = r.play == nil; !t.empty {
		t.title, t.number, t.tick = r.play.title, r.play.number, r.play.tick
		t.seen, t.whole = r.play.game.See(w.crew, -1, t.seen)
		r.showPlayers(t)
	}
	t.state.Store(idle)
	t.filled <- struct{}{}
}

func (r *room) showPlayers(t *stage) {
	for i := range r.s.o.Players {
		if p := r.play.level.Player(i); p != nil {
			t.players = append(t.players, standing{place: uint16(i), name: r.seats[i].name, health: p.Health,
				caught: p.Caught, deaths: p.Deaths, exits: p.Exits})
		}
	}
}

// scene returns the copy in the format for browsers.
func (t *stage) scene(room int) *web.Scene {
	s := &web.Scene{Room: room, Whole: t.whole, Players: []web.Player{}, Frogs: [][3]int16{}, Sectors: [][3]int16{}}
	if t.empty {
		return s
	}
	s.Map, s.Number, s.Tick = string(t.title.Text()), t.number, t.tick
	for i := range t.players {
		p := &t.players[i]
		s.Players = append(s.Players, web.Player{Number: p.place, Name: string(p.name.Text()), Health: p.health,
			Caught: p.caught, Deaths: p.deaths, Exits: p.exits})
	}
	players := s.Players
	for _, seen := range t.seen {
		switch seen.Kind {
		case game.SeenPlayer: // in the order of the list
			players[0].X, players[0].Y, players[0].Heading = seen.X, seen.Y, seen.Heading
			players = players[1:]
		case game.SeenFrog:
			s.Frogs = append(s.Frogs, [3]int16{seen.X, seen.Y, int16(seen.Heading)})
		case game.SeenSector:
			s.Sectors = append(s.Sectors, [3]int16{int16(seen.Number), seen.X, seen.Y})
		}
	}
	return s
}
