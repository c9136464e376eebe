package game

import (
	"slices"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Probe is somebody without a body who triggers a level's lines one by one and looks what they do: it
// stands in nobody's way, and the level's own players and frogs do nothing meanwhile.
type Probe struct {
	w       *World
	player  Player
	frog    Frog
	monster bool // it was one when it fired last
	loaded  []doom.Sector
}

// Probe is a probe in a game that has begun. It is on the Go heap.
func (g *Game) Probe() *Probe {
	return &Probe{w: g.Level.World, loaded: slices.Clone(g.Level.Sectors)}
}

// Fire does something to a line as a player with these keys or as a monster does, from the front or
// the back: it walks an eighth of a unit, over the middle of the line; it reaches as far; it shoots.
func (p *Probe) Fire(line int, by doom.Trigger, front, monster bool, keys doom.Key) {
	p.monster = monster
	who := activator{is: doom.Players, player: &p.player}
	if monster {
		who = activator{is: doom.Monsters, frog: &p.frog}
	}
	from, to := over(&p.w.Lines[line], front)
	p.player.Keys = uint32(keys)
	p.player.At, p.player.Heading = from, 0
	p.frog.At, p.frog.Heading = from, 0
	p.w.script.runner.Begin()
	defer p.w.script.runner.End()
	switch {
	case by == doom.Walked:
		var sector uint16
		p.player.At, p.frog.At = to, to
		p.w.moved(who, from, to, &sector)
	case by == doom.Used:
		p.w.reach(who, from, to)
	default: // nobody shoots in play
		p.w.fire(uint16(line), by, front, who)
	}
}

// over is a way of an eighth of a unit over the middle of a line.
func over(n *doom.Line, front bool) (from, to doom.Point) {
	at := n.At(1 << (doom.UnitBits - 1))
	x, y := int64(n.DY), -int64(n.DX) // to the right, which is the front
	length := max(abs(x), abs(y), 1)
	if front {
		length = -length
	}
	x, y = x<<(doom.UnitBits-4)/length, y<<(doom.UnitBits-4)/length
	return doom.Point{X: at.X - int32(x), Y: at.Y - int32(y)},
		doom.Point{X: at.X + int32(x), Y: at.Y + int32(y)}
}

// Tick lets a tick pass.
func (p *Probe) Tick() {
	p.w.script.runner.Begin()
	p.w.run()
	p.w.script.runner.End()
}

// Restore puts all sectors back as they were, and ends what moves; lines keep what they did.
func (p *Probe) Restore() {
	copy(p.w.Sectors, p.loaded)
	for i := range p.w.movers.Cap() {
		if m := p.w.movers.At(i); m != nil {
			p.w.movers.Put(m)
		}
	}
}

// Floor is the height of a sector's floor, in 1/65536 units.
func (p *Probe) Floor(sector int) int32 { return p.w.Sectors[sector].Floor }

// Ceiling is the height of a sector's ceiling.
func (p *Probe) Ceiling(sector int) int32 { return p.w.Sectors[sector].Ceiling }

// Light is a sector's.
func (p *Probe) Light(sector int) int { return int(p.w.Sectors[sector].Light) }

// Special is a sector's.
func (p *Probe) Special(sector int) uint16 { return p.w.Sectors[sector].Special }

// Scroll is how far the texture of a line's front has moved, in 1/65536 units.
func (p *Probe) Scroll(line int) int32 {
	for i := range p.w.scrolls {
		if c := &p.w.scrolls[i]; c.Line == uint32(line) {
			return doom.Clamp(int64(c.Offset) << doom.UnitBits)
		}
	}
	return 0
}

// Body is where the probe is, in units, and where it looks, in degrees counter-clockwise from east.
func (p *Probe) Body() (x, y, angle int) {
	at, heading := p.player.At, p.player.Heading
	if p.monster {
		at, heading = p.frog.At, uint32(p.frog.Heading)
	}
	return int(at.X >> doom.UnitBits), int(at.Y >> doom.UnitBits), int(heading) * 360 / 16
}

// Exits is how many exits the probe took.
func (p *Probe) Exits() int { return int(p.player.Exits) }

// Hurt is how much health a player loses in a sector in so many ticks.
func (p *Probe) Hurt(sector, ticks int) int {
	p.player.Health, p.player.Sector = fullHealth, uint16(sector)
	for range ticks {
		p.w.harmOne(&p.player)
		p.Tick()
	}
	return int(fullHealth - p.player.Health)
}
