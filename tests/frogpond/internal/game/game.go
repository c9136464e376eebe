// Package game is the play: a [Server] boots the library and the systems, loads maps, and begins a
// [Game] on each; a tick of it is decided by the crew, in parallel, and then applied.
//
// server.go and systems.go are what outlives a map, level.go and game.go a map and its ticks,
// room.go what one tick leaves for the next, frogsystem.go what its frogs belong to, log.go what
// each writes of itself, crew.go the workers. players.go and frogs.go say what each of them does in
// a tick, bots.go what a player wants that nobody else plays; trace.go and grid.go what stops them
// and what they see, way.go and chart.go where they can walk; seen.go what who plays from afar is
// shown. It says nothing to anybody but the log: options, figures and words are the program's.
//
// Many games tick at the same time when each has a slot of the region level, and each goroutine a
// crew of its own: [Open], [Alone], [Server.LoadInto], [Server.BeginEmpty], [Game.StepBy].
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
	Choices []Choice // for frogs, by place; none is made where there is nobody who chooses
	crew    *Crew
	chorus  func(scope.Scope) error // sing, made once: play must not allocate
	inputs  []Input                 // of this tick
	hearing uint64                  // the first event that is heard in this tick

	// In the frame, or on scratch: gone with the tick.
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
		if g.Level.Players.Get() == nil {
			return fmt.Errorf("%s: player %d: %w", g.Level.Name, i, scope.ErrFull)
		}
		g.Level.beginPlayer(i)
	}
	return g.Level.World.begin(uint64(h))
}

// Step plays one tick with bots.
func (g *Game) Step() error { return g.StepWith(g.Decide()) }

// StepWith plays one tick with an input for each player. The crew shares the work, and what is gone
// with the tick lies in the frame.
func (g *Game) StepWith(inputs []Input) error {
	frame := g.budget.Frame()
	g.inputs = inputs
	err := g.tick(g.crew, frame)
	if err := errors.Join(err, g.budget.NextFrame()); err != nil {
		return err
	}
	return g.crew.full()
}

// StepBy plays one tick with an input for each player, by the caller's goroutine alone: what is
// gone with the tick lies on the first scratch arena of the crew, whose only worker it is. So games
// tick at the same time that have nothing in common, each by a crew of its own. A full is an error,
// and so is what ends with the tick and fails; a panic leaves no scope open.
func (g *Game) StepBy(c *Crew, inputs []Input) error {
	c.full() // of another game, in a tick that a panic ended
	g.inputs, c.game = inputs, g
	if err := c.workers[0].scratches[0].Do("tick", c.tick); err != nil {
		return err
	}
	return c.full()
}

// tick is one with a crew; s is for what is gone with it. That s is full says who closes it.
func (g *Game) tick(c *Crew, s scope.Scope) error {
	g.playerCommands = playerCommandMaker.TrySlice(s, g.Level.Players.Cap())
	g.frogCommands = frogCommandMaker.TrySlice(s, g.Level.Frogs.Cap())
	if s.Err() != nil {
		return nil
	}
	room := g.Level.Room
	g.enter()
	g.hearing, room.Heard = room.since(room.Heard), room.Happened
	g.Level.fillGrid()
	c.run(g, false)
	g.apply()
	g.leave()
	g.Level.grid.filled = false
	return s.Do("chorus", g.chorus)
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
