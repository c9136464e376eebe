package game

import "github.com/upfront-mem/upfront/tests/frogpond/internal/doom"

// Player is a bot; it walks about, and catches frogs that it meets.
type Player struct {
	At                     doom.Point
	Target                 doom.Point // a frog that it saw
	Chase                  uint32     // ticks left to run after it
	Sated                  uint32     // ticks to run after nothing
	Heading                uint32
	Wander                 uint32 // ticks to walk straight on
	Still                  uint32 // ticks without a step
	Caught                 uint32
	Way                    [wayLength]doom.Point // from findWay
	WayNext                uint32
	WayCount               uint32
	Sector                 uint32
	Health                 int32
	Keys                   uint32 // doom.Key
	Rest                   uint32 // ticks until it may use something again
	Exits, Deaths, Secrets uint32
}

// playerCommand is what a player is to become, and do, in this tick.
type playerCommand struct {
	Next    Player
	Catch   int32 // a frog's place in the pool plus 1
	Spawn   bool
	Use     bool
	SpawnAt doom.Point
	Random  uint64
}

const (
	stride      = 8 // units a tick
	reach       = 28
	playerSight = 384
	maxStill    = 70 // ticks, then the player starts again elsewhere
)

// decidePlayer fills the command of the i-th player.
func (g *Game) decidePlayer(w *worker, i int) {
	c := &g.playerCommands[i]
	c.Random = doom.Random(g.seed^0xb07, g.tick, uint32(i))
	c.Next = *g.Level.Players.At(i)
	p := &c.Next
	c.Catch = g.frogNear(p.At, reach)
	if p.Sated > 0 {
		p.Sated--
	} else if (g.tick+uint32(i))%8 == 0 {
		g.look(w, p)
	}
	g.steer(w, p, c.Random)
	against := g.walk(p, c.Random)
	if p.Rest > 0 {
		p.Rest--
	} else if against { // it may be a door
		c.Use, p.Rest = true, useRest
	}
	if (g.tick+uint32(i))%2 == 0 {
		g.chooseSpawn(w, c)
	}
}

// look finds the nearest frog in sight and runs after it for a while.
func (g *Game) look(w *worker, p *Player) {
	scratch := w.scratches[1].Open("look")
	defer w.close(scratch)
	grid := &g.systems.grid
	column, row := p.At.X>>gridBits, p.At.Y>>gridBits
	const squares = playerSight >> (gridBits - doom.UnitBits)
	least := int64(playerSight)
	for y := row - squares; y <= row+squares; y++ {
		for x := column - squares; x <= column+squares; x++ {
			for k := grid.heads[gridCell(x, y)]; k != 0; k = grid.next[k-1] {
				at := g.Level.Frogs.At(int(k - 1)).At
				if at.Near(p.At, least) && w.sees(g.Level, scratch, p.At, at, &playerBody, &frogBody) {
					p.Target, p.Chase = at, 35
					least = max(least/2, reach) // only much nearer ones are better
				}
			}
		}
	}
}

// steer chooses the heading: after a frog, along a way, or straight on.
func (g *Game) steer(w *worker, p *Player, r uint64) {
	switch {
	case p.Wander > 0:
		p.Wander--
	case p.Chase > 0 && !p.At.Near(p.Target, stride):
		p.Chase--
		p.Heading = p.At.Toward(p.Target)
	case p.WayNext < p.WayCount:
		p.Chase = 0
		way := p.Way[p.WayNext]
		if p.At.Near(way, 2*stride) {
			p.WayNext++
		} else {
			p.Heading = p.At.Toward(way)
		}
	default:
		p.Chase = 0
		p.WayNext, p.WayCount = 0, 0
		g.findWay(w, p, r)
		if p.WayCount == 0 {
			p.Wander, p.Heading = 8+uint32(r>>32%32), uint32(r>>40&15)
		}
	}
}

// walk takes a step, or one beside the heading where a line is in the way. It says whether one is.
func (g *Game) walk(p *Player, r uint64) (against bool) {
	for i, turn := range [...]uint32{0, 1, 15, 2, 14, 3, 13} {
		to := p.At.Step(p.Heading+turn, stride)
		if !g.Level.blocked(p.At, to, &playerBody) {
			p.At, p.Still = to, 0
			return i > 0
		}
	}
	p.Still++
	p.Chase, p.WayCount = 0, 0
	p.Wander, p.Heading = 8+uint32(r>>32%16), uint32(r>>40&15)
	if p.Still > maxStill {
		k := r % uint64(len(g.Level.Starts))
		p.At = g.Level.Starts[k]
		p.Sector, p.Still = g.Level.World.starts[k], 0
	}
	return true
}

// chooseSpawn looks for a place for a frog around the player: it must be within
// a frog's way, so none appears behind a wall.
func (g *Game) chooseSpawn(w *worker, c *playerCommand) {
	r := c.Random
	at := c.Next.At.Step(uint32(r>>4&15), 64+int32(r>>8%192))
	if g.Level.blocked(c.Next.At, at, &frogBody) || g.crowded(-1, c.Next.At, at) {
		return
	}
	scratch := w.scratches[1].Open("spawn")
	defer w.close(scratch)
	if w.walkable(g.Level, scratch, c.Next.At, at, &frogBody) {
		c.Spawn, c.SpawnAt = true, at
	}
}

// frogNear is the place plus 1 of a frog within a distance of at most a square, or 0.
func (g *Game) frogNear(p doom.Point, distance int64) int32 {
	grid := &g.systems.grid
	column, row := p.X>>gridBits, p.Y>>gridBits
	for y := row - 1; y <= row+1; y++ {
		for x := column - 1; x <= column+1; x++ {
			for k := grid.heads[gridCell(x, y)]; k != 0; k = grid.next[k-1] {
				if g.Level.Frogs.At(int(k-1)).At.Near(p, distance) {
					return k
				}
			}
		}
	}
	return 0
}

// applyPlayer makes a command true. Frogs went before, and another player may
// have been quicker, so the frog to be caught may be gone and another in its chunk.
func (g *Game) applyPlayer(i int) {
	c := &g.playerCommands[i]
	p := g.Level.Players.At(i)
	from := p.At
	*p = c.Next
	w := g.Level.World
	who := activator{is: doom.Players, player: p}
	if from.Near(p.At, 2*stride) { // it walked
		if !w.moved(who, from, p.At, &p.Sector) && c.Use {
			w.reach(who, p.At, p.At.Step(p.Heading, useLength))
		}
	}
	if c.Catch != 0 {
		if f := g.Level.Frogs.At(int(c.Catch - 1)); f != nil && f.At.Near(p.At, 2*reach) {
			p.Caught++
			p.Chase, p.Sated = 0, 70
			g.Level.system.Caught++
			g.happen(caught, int(c.Catch-1), f.At)
			g.Level.Frogs.put(int(c.Catch - 1))
		}
	}
	if c.Spawn {
		g.spawn(c.SpawnAt, c.Random)
	}
}
