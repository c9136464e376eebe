// Package game is the play: a [Server] boots the library and the systems, loads maps, and begins a
// [Game] on each; a tick of it is decided by the crew, in parallel, and then applied.
//
// server.go and systems.go are what outlives a map, level.go and game.go a map and its ticks,
// room.go what one tick leaves for the next, frogsystem.go what its frogs belong to, log.go what
// each writes of itself, crew.go the workers. players.go and frogs.go say what each of them does in
// a tick, bots.go what a player wants that nobody else plays; trace.go and grid.go what stops them
// and what they see, way.go and chart.go where they can walk. It says nothing to anybody but the
// log: options, figures and words are the program's.
package game

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Game is the play of one map. In a tick bots decide what they want; who plays otherwise gives
// inputs of his own. The tick itself has two halves: the crew decides, in parallel and only
// reading; then the commands are applied one after the other. So the state after a tick follows
// from that before it and from the inputs, and from nothing else: not from the number of workers.
type Game struct {
	budget  *budget.Budget
	Level   *Level
	crew    *crew
	chorus  func(scope.Scope) error // sing, made once: play must not allocate
	inputs  []Input                 // of this tick
	hearing uint64                  // the first event that is heard in this tick

	// In the frame: gone with the tick.
	playerCommands []playerCommand
	frogCommands   []frogCommand
}

var (
	playerCommandMaker = scope.Plain[playerCommand]()
	frogCommandMaker   = scope.Plain[frogCommand]()
)

// begin puts the players on their starts.
func (g *Game) begin(seed uint64) error {
	h := doom.HashStart
	h.Add(seed)
	for _, c := range []byte(g.Level.Name) {
		h.Add(uint64(c))
	}
	g.chorus = g.sing
	for i := range g.Level.Players.Cap() {
		p := g.Level.Players.Get()
		if p == nil {
			return fmt.Errorf("%s: player %d: %w", g.Level.Name, i, scope.ErrFull)
		}
		p.At = g.Level.Starts[i%len(g.Level.Starts)]
		p.Heading = uint32(i) & 15
		p.Sector, p.Health = g.Level.World.starts[i%len(g.Level.Starts)], fullHealth
	}
	for _, w := range g.crew.workers {
		w.game, w.err = g, nil
	}
	return g.Level.World.begin(uint64(h))
}

// Step plays one tick with bots.
func (g *Game) Step() error { return g.StepWith(g.Decide()) }

// StepWith plays one tick with an input for each player.
func (g *Game) StepWith(inputs []Input) error {
	frame, room := g.budget.Frame(), g.Level.Room
	g.inputs = inputs
	g.playerCommands = playerCommandMaker.TrySlice(frame, g.Level.Players.Cap())
	g.frogCommands = frogCommandMaker.TrySlice(frame, g.Level.Frogs.Cap())
	var err error
	if frame.Err() == nil { // else NextFrame returns it
		g.hearing, room.Heard = room.since(room.Heard), room.Happened
		g.Level.fillGrid()
		g.crew.run(false)
		g.apply()
		g.Level.grid.filled = false
		err = frame.Do("chorus", g.chorus)
	}
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
}
