package game

import "github.com/upfront-mem/upfront/tests/frogpond/internal/doom"

// Player walks about, and catches frogs that it meets.
type Player struct {
	At                     doom.Point
	Heading                uint32
	Still                  uint32 // ticks in which it couldn't walk
	Caught                 uint32
	Health                 int32
	Keys                   uint32 // doom.Key
	Exits, Deaths, Secrets uint32
	Sector                 uint16
	Away                   uint8 // 1: neither seen nor met, and it does nothing; 0: here
	_                      [5]byte
}

// Input is what a player wants in a tick, and all that the simulation has from outside: from a bot,
// a recording, or afar. What can't be isn't done.
type Input struct {
	SpawnAt doom.Point
	Heading uint8 // of the compass
	Flags   Flags
	_       [2]byte
}

// Flags are what a player does.
type Flags uint8

// What a player does: it walks a stride, uses what is before it, has a frog appear; and what only
// who runs the game may say of it: it comes and goes. So inputs alone make the same state again.
const (
	Walk Flags = 1 << iota
	Use
	Spawn
	Enter // it is here from this tick on, where it was
	Fresh // with Enter: at a start, as if it had never played
	Leave // it is away from the next tick on

	FromAfar = Walk | Use | Spawn // what a player may say of itself
)

// Guess is what a player is taken to want after this input, as long as nothing was heard of it: it
// goes on, and does nothing once more that happens once.
func (in Input) Guess() Input {
	in.Flags &^= Spawn | Enter | Fresh | Leave
	return in
}

// playerCommand is what an input comes to in this tick.
type playerCommand struct {
	To     doom.Point // where it walks
	Catch  int32      // a frog's place in the pool plus 1
	Walks  bool
	Spawns bool
	_      [2]byte
}

const (
	stride      = 8 // units a tick
	reach       = 28
	playerSight = 384
	spawnReach  = 64 + 192 + 2*stride
	maxStill    = 70 // ticks, then the player starts again elsewhere
)

// Player is the i-th player, or nil: it is away.
func (l *Level) Player(i int) *Player {
	if p := l.Players.At(i); p != nil && p.Away == 0 {
		return p
	}
	return nil
}

// beginPlayer puts the i-th player to a start, as one that never played.
func (l *Level) beginPlayer(i int) {
	k := i % len(l.Starts)
	*l.Players.At(i) = Player{At: l.Starts[k], Sector: l.World.starts[k], Heading: uint32(i) & 15,
		Health: fullHealth}
}

// enter lets those in who come in this tick.
func (g *Game) enter() {
	for i := range g.Level.Players.Cap() {
		flags := g.input(i).Flags
		if flags&Enter == 0 {
			continue
		}
		g.Level.sights.forget(i)
		g.Level.Players.At(i).Away = 0
		if flags&Fresh != 0 {
			g.Level.beginPlayer(i)
		}
	}
}

// leave lets those go who leave in this tick: all else of it happened.
func (g *Game) leave() {
	for i := range g.Level.Players.Cap() {
		if g.input(i).Flags&Leave != 0 {
			g.Level.Players.At(i).Away = 1
		}
	}
}

// input is the i-th player's in this tick; who gives none does nothing.
func (g *Game) input(i int) (in Input) {
	if i < len(g.inputs) {
		in = g.inputs[i]
	}
	return in
}

// random is the draw of the i-th player in this tick.
func (g *Game) random(i int) uint64 {
	return doom.Random(g.Level.Room.Seed^0xb07, g.Level.Room.Tick, uint32(i))
}

// decidePlayer fills the command of the i-th player.
func (g *Game) decidePlayer(w *worker, i int) {
	p, c, in := g.Level.Player(i), &g.playerCommands[i], g.input(i)
	if p == nil {
		return
	}
	c.Catch = g.Level.frogNear(p.At, reach)
	c.To = p.At
	if in.Flags&Walk != 0 {
		c.To, c.Walks = g.Level.walk(p.At, uint32(in.Heading))
	}
	c.Spawns = in.Flags&Spawn != 0 && g.maySpawn(w, c.To, in.SpawnAt)
}

// walk is a step, or one beside the heading where a line is in the way.
func (l *Level) walk(from doom.Point, heading uint32) (to doom.Point, walks bool) {
	for _, turn := range [...]uint32{0, 1, 15, 2, 14, 3, 13} {
		if to := from.Step(heading+turn, stride); !l.blocked(from, to, &playerBody) {
			return to, true
		}
	}
	return from, false
}

// maySpawn says whether a frog can appear at a place near a player: it must be within a frog's way,
// so none appears behind a wall.
func (g *Game) maySpawn(w *worker, from, at doom.Point) bool {
	l := g.Level
	if !at.Near(from, spawnReach) || l.blocked(from, at, &frogBody) || l.crowded(-1, from, at) {
		return false
	}
	scratch := w.scratches[1].Open("spawn")
	defer w.close(scratch)
	return w.walkable(l, scratch, from, at, &frogBody)
}

// applyPlayer makes a command true. Frogs went before, and another player may
// have been quicker, so the frog to be caught may be gone and another in its chunk.
func (g *Game) applyPlayer(i int) {
	l, c, in := g.Level, &g.playerCommands[i], g.input(i)
	p := l.Player(i)
	if p == nil {
		return
	}
	from, r := p.At, g.random(i)
	p.Heading = uint32(in.Heading & 15)
	if c.Walks {
		p.At, p.Still = c.To, 0
	} else if in.Flags&Walk != 0 {
		p.Still++
	}
	who := activator{is: doom.Players, player: p}
	if p.Still > maxStill {
		k := r % uint64(len(l.Starts))
		p.At, p.Sector, p.Still = l.Starts[k], l.World.starts[k], 0
	} else if !l.World.moved(who, from, p.At, &p.Sector) && in.Flags&Use != 0 {
		l.World.reach(who, p.At, p.At.Step(p.Heading, useLength))
	}
	if c.Catch != 0 {
		if f := l.Frogs.At(int(c.Catch - 1)); f != nil && f.At.Near(p.At, 2*reach) {
			p.Caught++
			l.Room.Caught++
			l.happen(caught, int(c.Catch-1), f.At)
			l.Frogs.put(int(c.Catch - 1))
		}
	}
	if c.Spawns {
		g.spawn(in.SpawnAt, r)
	}
}
