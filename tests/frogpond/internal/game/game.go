// Package game is the play: a [Server] boots the library and the systems, loads maps, and begins a
// [Game] on each; a tick of it is decided by the crew, in parallel, and then applied.
//
// server.go and systems.go are what outlives a map, level.go and game.go a map and its ticks,
// frogsystem.go what its frogs belong to, log.go what each writes of itself, crew.go the workers.
// players.go and frogs.go say what each of them does in a tick; trace.go what stops them and what
// they see, way.go and chart.go where they can walk. It says nothing to anybody
// but the log: options, figures and words are the program's.
package game

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Game is the play of one map. A tick has two halves: the crew decides, in
// parallel and only reading; then the commands are applied one after the other.
// So the state after a tick doesn't depend on the number of workers.
type Game struct {
	budget  *budget.Budget
	systems *Systems
	Level   *Level
	crew    *crew
	seed    uint64
	tick    uint32
	chorus  func(scope.Scope) error // sing, made once: play must not allocate

	// In the frame: gone two ticks later.
	playerCommands []playerCommand
	frogCommands   []frogCommand
	events         []event
	heard          []event // the last tick's events, in the frame's other buffer
}

var (
	playerCommandMaker = scope.Plain[playerCommand]()
	frogCommandMaker   = scope.Plain[frogCommand]()
)

// begin puts the players on their starts and draws the chart.
func (g *Game) begin(seed uint64) error {
	g.systems.reset()
	h := doom.HashStart
	h.Add(seed)
	for _, c := range []byte(g.Level.Name) {
		h.Add(uint64(c))
	}
	g.seed, g.tick, g.chorus = uint64(h), 0, g.sing
	g.events, g.heard = nil, nil
	for i := range g.Level.Players.Cap() {
		p := g.Level.Players.Get()
		if p == nil {
			return fmt.Errorf("%s: player %d: %w", g.Level.Name, i, scope.ErrFull)
		}
		p.At = g.Level.Starts[i%len(g.Level.Starts)]
		p.Heading = uint32(i)
		p.Sector, p.Health = g.Level.World.starts[i%len(g.Level.Starts)], fullHealth
	}
	for _, w := range g.crew.workers {
		w.game, w.err = g, nil
	}
	if err := g.Level.World.begin(g.seed); err != nil {
		return err
	}
	return g.Level.drawChart(g.crew.workers[0].scratches[1])
}

// Step plays one tick.
func (g *Game) Step() error {
	frame := g.budget.Frame()
	g.heard = g.events
	players, frogs := g.Level.Players.Cap(), g.Level.Frogs.Cap()
	g.playerCommands = playerCommandMaker.TrySlice(frame, players)
	g.frogCommands = frogCommandMaker.TrySlice(frame, frogs)
	g.events = eventMaker.TrySlice(frame, 2*(players+frogs))
	var err error
	if frame.Err() == nil { // else NextFrame returns it
		g.events = g.events[:0]
		g.fillGrid()
		g.crew.decide()
		g.apply()
		err = frame.Do("chorus", g.chorus)
	}
	g.tick++
	if err := errors.Join(err, g.budget.NextFrame()); err != nil {
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
	g.systems.grid.clear()
	for i := range g.frogCommands {
		if f := g.Level.Frogs.At(i); f != nil {
			g.systems.grid.add(i, f.At)
		}
	}
}

// apply makes the commands true, in order; frogs first, since a frog that is
// spawned in this tick has no command yet.
func (g *Game) apply() {
	w := g.Level.World
	w.script.runner.Begin() // now the world may change
	for i := range g.frogCommands {
		g.applyFrog(i)
	}
	for i := range g.playerCommands {
		g.applyPlayer(i)
	}
	w.run()
	w.script.runner.End()
	for _, e := range g.events {
		g.systems.record(e)
	}
}

// happen adds to the tick's events; a frog has at most two in a tick.
func (g *Game) happen(kind eventKind, frog int, at doom.Point) {
	n := len(g.events)
	g.events = g.events[:n+1]
	g.events[n] = event{Tick: g.tick, Kind: kind, Who: int32(frog), At: at, Frog: g.Level.Frogs.handles[frog]}
}

// Hash is the whole state as a number, field by field, since the bytes between
// fields belong to nobody.
func (g *Game) Hash() doom.Hash {
	h := g.Level.Hash()
	g.Level.World.hash(&h)
	h.Add(g.seed, uint64(g.tick))
	for i := range g.Level.Players.Cap() {
		p := g.Level.Players.At(i)
		h.AddPoint(p.At)
		h.AddPoint(p.Target)
		h.Add(uint64(p.Chase), uint64(p.Sated), uint64(p.Heading), uint64(p.Wander), uint64(p.Still), uint64(p.Caught))
		for _, at := range p.Way {
			h.AddPoint(at)
		}
		h.Add(uint64(p.WayNext), uint64(p.WayCount), uint64(p.Sector), uint64(p.Health), uint64(p.Keys),
			uint64(p.Rest), uint64(p.Exits), uint64(p.Deaths), uint64(p.Secrets))
	}
	for i := range g.Level.Frogs.Cap() {
		f := g.Level.Frogs.At(i)
		if f == nil {
			continue
		}
		h.Add(uint64(i), uint64(f.Heading), uint64(f.Hop), uint64(f.Rest), uint64(f.Life), uint64(f.Sightings), uint64(f.Sector))
		h.AddPoint(f.At)
	}
	for _, e := range g.systems.ring.Events.Get(g.systems.base) {
		h.Add(uint64(e.Tick), uint64(e.Kind), uint64(e.Who))
		h.AddPoint(e.At)
	}
	f := g.Level.system
	h.Add(g.systems.ring.Count, f.Spawned, f.Croaked, f.Caught, f.Died, f.Refused)
	return h
}
