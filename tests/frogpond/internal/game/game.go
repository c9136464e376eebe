// Package game plays maps. A [Server] boots the library and the systems, loads maps, and begins a
// [Game] on each:
//
//	s, err := game.Boot(ctx, options, b)
//	level, err := s.Load(ctx, s.Maps[0], 8) // players
//	g, err := s.Begin(level, seed)
//	err = g.Step() // a tick, as often as you like
//
// In a tick the workers of a crew decide in parallel for the players and frogs. Then the game
// applies the decisions, the commands, in order.
//
// Begin with room.go, which has the state, and this file, which has a tick. server.go, systems.go
// and level.go load, and crew.go has the workers. players.go, frogs.go and bots.go have the rules.
// trace.go and grid.go find obstacles and bodies, way.go and chart.go find ways, and seen.go makes
// a network player's view. The package writes no output except the log.
//
// Many games can tick at the same time, if each game has a slot of the region level, and each
// goroutine has a crew: see [Open], [Alone], [Server.LoadInto], [Server.BeginEmpty], [Game.StepBy].
package game

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Game is a game on one map. A tick takes an input for each player, from bots or from the caller.
// First the crew decides, in parallel and only reading; then one goroutine applies the commands in
// order. So the state after a tick depends only on the state before it and the inputs,
// not on the number of workers.
type Game struct {
	budget  *budget.Budget
	Level   *Level
	Choices []Choice // by a frog's place; a frog without a choice chooses by itself
	crew    *Crew
	// The method sing as a value. It is made once, since a tick must not allocate.
	chorus  func(scope.Scope) error
	inputs  []Input // of this tick
	hearing uint64  // the first event that frogs hear in this tick

	// In the frame or on scratch, freed with the tick.
	playerCommands []playerCommand
	frogCommands   []frogCommand
}

var (
	playerCommandMaker = scope.Plain[playerCommand]()
	frogCommandMaker   = scope.Plain[frogCommand]()
)

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

// Step plays one tick with bots' inputs.
func (g *Game) Step() error { return g.StepWith(g.Decide()) }

// StepWith plays one tick with an input for each player. The crew shares the work, and the tick's
// temporary memory is in the frame. It returns an error if the frame or a scratch arena is full.
func (g *Game) StepWith(inputs []Input) error {
	frame := g.budget.Frame()
	g.inputs = inputs
	err := g.tick(g.crew, frame)
	if err := errors.Join(err, g.budget.NextFrame()); err != nil {
		return err
	}
	return g.crew.full()
}

// StepBy plays one tick with an input for each player, on the caller's goroutine. The tick's
// temporary memory is on the scratch arenas of c, a crew of one worker. So independent games can
// tick at the same time, each with its own crew. StepBy returns an error if a scratch arena is
// full, or if a finalizer of the tick fails. A panic leaves no scope open.
func (g *Game) StepBy(c *Crew, inputs []Input) error {
	c.full() // forget an error that another game's panic left
	g.inputs, c.game = inputs, g
	if err := c.workers[0].scratches[0].Do("tick", c.tick); err != nil {
		return err
	}
	return c.full()
}

// tick plays one tick with a crew, and its temporary memory in s. If s is full, it returns nil, and
// the owner of s reports the ErrFull.
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

// apply applies the commands in order. Frogs come first, since a frog that is spawned in this tick
// has no command.
func (g *Game) apply() {
	w := g.Level.World
	w.script.runner.Begin() // from here on the world may change
	for i := range g.frogCommands {
		g.applyFrog(i)
	}
	for i := range g.playerCommands {
		g.applyPlayer(i)
	}
	w.run()
	w.script.runner.End()
}
