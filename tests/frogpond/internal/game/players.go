package game

import "github.com/upfront-mem/upfront/tests/frogpond/internal/doom"

// Player is a player of the level's pool. It walks about, and catches frogs in reach.
type Player struct {
	At                     doom.Point
	Heading                uint32
	Still                  uint32 // ticks without a possible step
	Caught                 uint32
	Health                 int32
	Keys                   uint32 // doom.Key
	Exits, Deaths, Secrets uint32
	Sector                 uint16
	Away                   uint8 // 1: it can't be seen or reached, and does nothing; 0: it plays
	_                      [5]byte
}

// Input is a player's input for a tick. Inputs, from bots, recordings or the network, are the
// simulation's only data from outside. Impossible actions have no effect.
type Input struct {
	SpawnAt doom.Point
	Heading uint8 // one of 16 directions
	Flags   Flags
	_       [2]byte
}

// Flags are the actions of an input.
type Flags uint8

// A player may walk a stride, use the line ahead, and make a frog appear. Only the program may set
// Enter, Fresh and Leave. They are also inputs, so that inputs are enough to reproduce the state.
const (
	Walk Flags = 1 << iota
	Use
	Spawn
	Enter // the player plays from this tick on, at its last position
	Fresh // with Enter: at a start, as a new player
	Leave // the player is away from the next tick on

	FromAfar = Walk | Use | Spawn // the flags that a network player may send
)

// Guess returns a guess of the player's next input: the player goes on walking or using, but
// doesn't repeat Spawn, Enter, Fresh and Leave.
func (in Input) Guess() Input {
	in.Flags &^= Spawn | Enter | Fresh | Leave
	return in
}

// playerCommand is the effect of an input in this tick.
type playerCommand struct {
	To     doom.Point // the new position
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
	maxStill    = 70 // ticks, then the player restarts elsewhere
)

// Player returns the i-th player, or nil if it is away.
func (l *Level) Player(i int) *Player {
	if p := l.Players.At(i); p != nil && p.Away == 0 {
		return p
	}
	return nil
}

// beginPlayer puts the i-th player at a start, as a new player.
func (l *Level) beginPlayer(i int) {
	k := i % len(l.Starts)
	*l.Players.At(i) = Player{At: l.Starts[k], Sector: l.World.starts[k], Heading: uint32(i) & 15,
		Health: fullHealth}
}

// enter lets players enter, before their inputs.
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

// leave lets players leave, after their inputs.
func (g *Game) leave() {
	for i := range g.Level.Players.Cap() {
		if g.input(i).Flags&Leave != 0 {
			g.Level.Players.At(i).Away = 1
		}
	}
}

// input returns the i-th player's input for this tick, or an empty one.
func (g *Game) input(i int) (in Input) {
	if i < len(g.inputs) {
		in = g.inputs[i]
	}
	return in
}

func (g *Game) random(i int) uint64 {
	return doom.Random(g.Level.Room.Seed^0xb07, g.Level.Room.Tick, uint32(i))
}

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

// walk returns the position after a step, and whether a step was possible. The step turns aside by
// up to three directions if a line is in the way.
func (l *Level) walk(from doom.Point, heading uint32) (to doom.Point, walks bool) {
	for _, turn := range [...]uint32{0, 1, 15, 2, 14, 3, 13} {
		if to := from.Step(heading+turn, stride); !l.blocked(from, to, &playerBody) {
			return to, true
		}
	}
	return from, false
}

// maySpawn reports whether a frog can appear at a place near a player. A frog must be able to walk
// to the place, so that it doesn't appear on the far side of a wall.
func (g *Game) maySpawn(w *worker, from, at doom.Point) bool {
	l := g.Level
	if !at.Near(from, spawnReach) || l.blocked(from, at, &frogBody) || l.crowded(-1, from, at) {
		return false
	}
	scratch := w.scratches[1].Open("spawn")
	defer w.close(scratch)
	return w.walkable(l, scratch, from, at, &frogBody)
}

// applyPlayer applies the command of a player. Commands of frogs and other players came first, so
// the frog to catch may be gone, and another in its place.
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
