package game

import "github.com/upfront-mem/upfront/tests/frogpond/internal/doom"

// brain is what a bot keeps in mind. It is no state: a bot looks at the state, as who plays from
// afar does, and all that the simulation has of it is an Input a tick.
type brain struct {
	Target   doom.Point // a frog that it saw
	Meant    doom.Point // where it should be by now
	Way      [wayLength]doom.Point
	WayNext  uint32
	WayCount uint32
	Chase    uint32 // ticks left to run after the target
	Sated    uint32 // ticks to run after nothing
	Wander   uint32 // ticks to walk straight on
	Rest     uint32 // ticks until it may use something again
	Caught   uint32 // by it, as far as it knows
}

// Decide is what the bots want in this tick: an input for each player, until the next call. It only
// reads the state, and the crew shares the work.
func (g *Game) Decide() []Input {
	g.Level.fillGrid()
	g.crew.run(g, true)
	return g.Level.inputs
}

// think gives the input of the i-th player.
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
	case against: // it may be a door
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

// notice looks what became of the last input. It says whether something was in the way.
func (b *brain) notice(p *Player) (against bool) {
	if b.Caught != p.Caught {
		b.Caught, b.Chase, b.Sated = p.Caught, 0, 70
	}
	if !p.At.Near(b.Meant, 2*stride) { // a line took it elsewhere
		b.Chase, b.WayCount, b.Wander = 0, 0, 0
		return false
	}
	return p.At != b.Meant
}

// look finds the nearest frog in sight and runs after it for a while.
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
					least = max(least/2, reach) // only much nearer ones are better
				}
			}
		}
	}
}

// steer chooses the heading: anywhere if it can't go on, after a frog, along a way, or straight on.
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
