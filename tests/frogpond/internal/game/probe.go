package game

import (
	"slices"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Probe triggers a level's lines one by one, with a body of its own, and reads their effects. The
// level's players and frogs do nothing meanwhile.
type Probe struct {
	w       *World
	player  Player
	frog    Frog
	monster bool // whether the last Fire was a monster's
	loaded  []doom.Sector
}

// Probe returns a probe of a game that has begun. It is on the Go heap.
func (g *Game) Probe() *Probe {
	return &Probe{w: g.Level.World, loaded: slices.Clone(g.Level.Sectors)}
}

// Fire triggers a line as a player with these keys or as a monster, from the front or the back. The
// body walks an eighth of a unit over the middle of the line, reaches as far, or shoots.
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
	default: // the game has no shots, so fire directly
		p.w.fire(uint16(line), by, front, who)
	}
}

// over returns the ends of a way of an eighth of a unit over the middle of a line.
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

// Tick plays a tick of the world.
func (p *Probe) Tick() {
	p.w.script.runner.Begin()
	p.w.run()
	p.w.script.runner.End()
}

// Restore restores all sectors and ends all movers. Lines keep their used state.
func (p *Probe) Restore() {
	copy(p.w.Sectors, p.loaded)
	for i := range p.w.movers.Cap() {
		if m := p.w.movers.At(i); m != nil {
			p.w.movers.Put(m)
		}
	}
}

// Floor returns the height of a sector's floor, in 1/65536 units.
func (p *Probe) Floor(sector int) int32 { return p.w.Sectors[sector].Floor }

// Ceiling returns the height of a sector's ceiling, in 1/65536 units.
func (p *Probe) Ceiling(sector int) int32 { return p.w.Sectors[sector].Ceiling }

// Light returns a sector's light level.
func (p *Probe) Light(sector int) int { return int(p.w.Sectors[sector].Light) }

// Special returns a sector's special.
func (p *Probe) Special(sector int) uint16 { return p.w.Sectors[sector].Special }

// Scroll returns the offset of the texture of a line's front, in 1/65536 units.
func (p *Probe) Scroll(line int) int32 {
	for i := range p.w.scrolls {
		if c := &p.w.scrolls[i]; c.Line == uint32(line) {
			return doom.Clamp(int64(c.Offset) << doom.UnitBits)
		}
	}
	return 0
}

// Body returns the probe's position, in units, and its heading, in degrees counter-clockwise from
// east.
func (p *Probe) Body() (x, y, angle int) {
	at, heading := p.player.At, p.player.Heading
	if p.monster {
		at, heading = p.frog.At, uint32(p.frog.Heading)
	}
	return int(at.X >> doom.UnitBits), int(at.Y >> doom.UnitBits), int(heading) * 360 / 16
}

// Exits returns the number of exits that the probe took.
func (p *Probe) Exits() int { return int(p.player.Exits) }

// Hurt returns the health that a player in a sector loses in that many ticks.
func (p *Probe) Hurt(sector, ticks int) int {
	p.player.Health, p.player.Sector = fullHealth, uint16(sector)
	for range ticks {
		p.w.harmOne(&p.player)
		p.Tick()
	}
	return int(fullHealth - p.player.Health)
}
