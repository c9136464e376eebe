package game

import "github.com/upfront-mem/upfront/tests/frogpond/internal/doom"

// brain is the memory of a bot. It isn't part of the state: a bot only reads the state, as a
// network player does, and its only effect on the game is an Input a tick.
type brain struct {
	Target   doom.Point // a frog in sight
	Meant    doom.Point // the expected position now
	Way      [wayLength]doom.Point
	WayNext  uint32
	WayCount uint32
	Chase    uint32 // ticks left to run after the target
	Sated    uint32 // ticks without a new target
	Wander   uint32 // ticks to walk straight on
	Rest     uint32 // ticks until it may use something again
	Caught   uint32 // the player's Caught when last noticed
}

// Decide returns the bots' inputs for this tick, one for each player, valid until the next call. It
// only reads the state, and the crew shares the work.
func (g *Game) Decide() []Input {
	g.Level.fillGrid()
	g.crew.run(g, true)
	return g.Level.inputs
}

func (g *Game) think(w *worker, i int) {
	p, b, in := g.Level.Player(i), &g.Level.brains[i], &g.Level.inputs[i]
	*in = Input{}
	if p == nil {
		return
	}
	tick := g.Level.Room.Tick
	r := g.random(i)
	against := b.notice(p)
	if b.Sated > 0 {
		b.Sated--
	} else if (tick+uint32(i))%8 == 0 {
		g.look(w, p, b)
	}
	heading := p.Heading
	switch {
	case b.Rest > 0:
		b.Rest--
		heading = g.steer(w, p, b, r)
	case against: // the obstacle may be a door
		in.Flags, b.Rest = Use, useRest
	default:
		heading = g.steer(w, p, b, r)
	}
	in.Heading = uint8(heading & 15)
	in.Flags |= Walk
	b.Meant = p.At.Step(heading, stride)
	if (tick+uint32(i))%2 == 0 {
		in.Flags |= Spawn
		in.SpawnAt = b.Meant.Step(uint32(r>>4&15), 64+int32(r>>8%192))
	}
}

// notice compares the position with the expected one. It reports whether an obstacle stopped the
// player.
func (b *brain) notice(p *Player) (against bool) {
	if b.Caught != p.Caught {
		b.Caught, b.Chase, b.Sated = p.Caught, 0, 70
	}
	if !p.At.Near(b.Meant, 2*stride) { // a line took the player elsewhere
		b.Chase, b.WayCount, b.Wander = 0, 0, 0
		return false
	}
	return p.At != b.Meant
}

// look makes the nearest frog in sight the bot's target for a while.
func (g *Game) look(w *worker, p *Player, b *brain) {
	scratch := w.scratches[1].Open("look")
	defer w.close(scratch)
	l := g.Level
	column, row := p.At.X>>gridBits, p.At.Y>>gridBits
	const squares = playerSight >> (gridBits - doom.UnitBits)
	least := int64(playerSight)
	for y := row - squares; y <= row+squares; y++ {
		for x := column - squares; x <= column+squares; x++ {
			for k := l.grid.heads[gridCell(x, y)]; k != 0; k = l.grid.next[k-1] {
				at := l.Frogs.At(int(k - 1)).At
				if at.Near(p.At, least) && w.sees(l, scratch, p.At, at, &playerBody, &frogBody) {
					b.Target, b.Chase = at, 35
					least = max(least/2, reach) // prefer another frog only if it is much nearer
				}
			}
		}
	}
}

// steer chooses the heading: a random one if the bot is stuck, toward its target, along its way, or
// straight on.
func (g *Game) steer(w *worker, p *Player, b *brain, r uint64) (heading uint32) {
	heading = p.Heading
	switch {
	case p.Still > 0:
		b.Chase, b.WayCount = 0, 0
		b.Wander, heading = 8+uint32(r>>32%16), uint32(r>>40&15)
	case b.Wander > 0:
		b.Wander--
	case b.Chase > 0 && !p.At.Near(b.Target, stride):
		b.Chase--
		heading = p.At.Toward(b.Target)
	case b.WayNext < b.WayCount:
		b.Chase = 0
		way := b.Way[b.WayNext]
		if p.At.Near(way, 2*stride) {
			b.WayNext++
		} else {
			heading = p.At.Toward(way)
		}
	default:
		b.Chase = 0
		b.WayNext, b.WayCount = 0, 0
		g.findWay(w, p, b, r)
		if b.WayCount == 0 {
			b.Wander, heading = 8+uint32(r>>32%32), uint32(r>>40&15)
		}
	}
	return heading
}
