package main

import (
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Game is the play of one map. A tick has two halves: the crew decides, in
// parallel and only reading; then the commands are applied one after the other.
// So the state after a tick doesn't depend on the number of workers.
type Game struct {
	budget  *budget.Budget
	systems *Systems
	level   *Level
	crew    *Crew
	seed    uint64
	tick    uint32

	// In the frame: gone two ticks later.
	playerCommands []PlayerCommand
	frogCommands   []FrogCommand
	events         []Event
	heard          []Event // the last tick's events, in the frame's other buffer
}

var (
	playerCommandMaker = scope.Plain[PlayerCommand]()
	frogCommandMaker   = scope.Plain[FrogCommand]()
)

// begin puts the players on their starts and draws the chart.
func (g *Game) begin(seed uint64) error {
	g.systems.reset()
	h := hashStart
	h.add(seed)
	for _, c := range []byte(g.level.Name) {
		h.add(uint64(c))
	}
	g.seed, g.tick = uint64(h), 0
	g.events, g.heard = nil, nil
	for i := range g.level.Players.Cap() {
		p := g.level.Players.Get()
		if p == nil {
			return fmt.Errorf("%s: player %d: %w", g.level.Name, i, scope.ErrFull)
		}
		p.At = g.level.Starts[i%len(g.level.Starts)]
		p.Heading = uint32(i)
	}
	for _, w := range g.crew.workers {
		w.game, w.err = g, nil
	}
	return g.level.drawChart(g.crew.workers[0].scratches[1])
}

// step plays one tick.
func (g *Game) step() error {
	frame := g.budget.Frame()
	g.heard = g.events
	players, frogs := g.level.Players.Cap(), g.level.Frogs.Cap()
	g.playerCommands = playerCommandMaker.TrySlice(frame, players)
	g.frogCommands = frogCommandMaker.TrySlice(frame, frogs)
	g.events = eventMaker.TrySlice(frame, 2*(players+frogs))
	if frame.Err() == nil { // else NextFrame returns it
		g.events = g.events[:0]
		g.fillGrid()
		g.crew.decide()
		g.apply()
	}
	g.tick++
	if err := g.budget.NextFrame(); err != nil {
		return err
	}
	for _, w := range g.crew.workers {
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

func (g *Game) fillGrid() {
	g.systems.Grid.clear()
	for i := range g.frogCommands {
		if f := g.level.Frogs.At(i); f != nil {
			g.systems.Grid.add(i, f.At)
		}
	}
}

// apply makes the commands true, in order; frogs first, since a frog that is
// spawned in this tick has no command yet.
func (g *Game) apply() {
	for i := range g.frogCommands {
		g.applyFrog(i)
	}
	for i := range g.playerCommands {
		g.applyPlayer(i)
	}
	for _, e := range g.events {
		g.systems.record(e)
	}
}

// happen adds to the tick's events; a frog has at most two in a tick.
func (g *Game) happen(kind EventKind, frog int, at Point) {
	n := len(g.events)
	g.events = g.events[:n+1]
	g.events[n] = Event{Tick: g.tick, Kind: kind, Who: int32(frog), At: at}
}

// hash is the whole state as a number, field by field, since the bytes between
// fields belong to nobody.
func (g *Game) hash() Hash {
	h := g.level.hash()
	h.add(g.seed, uint64(g.tick))
	for i := range g.level.Players.Cap() {
		p := g.level.Players.At(i)
		h.addPoint(p.At)
		h.addPoint(p.Target)
		h.add(uint64(p.Chase), uint64(p.Sated), uint64(p.Heading), uint64(p.Wander), uint64(p.Still), uint64(p.Caught))
		h.add(uint64(p.WayNext), uint64(p.WayCount))
	}
	for i := range g.level.Frogs.Cap() {
		f := g.level.Frogs.At(i)
		if f == nil {
			continue
		}
		h.add(uint64(i), uint64(f.Heading), uint64(f.Hop), uint64(f.Rest), uint64(f.Life), uint64(f.Sightings))
		h.addPoint(f.At)
	}
	for _, e := range g.systems.Ring.Events.Get(g.systems.base) {
		h.add(uint64(e.Tick), uint64(e.Kind), uint64(e.Who))
		h.addPoint(e.At)
	}
	f := g.systems.Frogs
	h.add(g.systems.Ring.Count, f.Spawned, f.Croaked, f.Caught, f.Died, f.Refused)
	return h
}

func (h *Hash) addPoint(p Point) { h.add(uint64(uint32(p.X))<<32 | uint64(uint32(p.Y))) }
