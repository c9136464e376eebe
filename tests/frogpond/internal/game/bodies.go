package game

import "github.com/upfront-mem/upfront/tests/frogpond/internal/doom"

const (
	fullHealth  = 100
	crushDamage = 10
	useLength   = 64 // units that a player reaches
	nearlyDead  = 10
	keyDistance = 36
	useRest     = 70 // ticks until a player tries again
)

// moved triggers the special lines that a step crosses, and updates the body's sector. It reports
// whether a line took the body elsewhere.
func (w *World) moved(who activator, from, to doom.Point, sector *uint16) (elsewhere bool) {
	if from == to {
		return false
	}
	var list [16]doom.Crossing
	crossings := w.Crossings(list[:], from, to)
	if len(crossings) > 0 {
		*sector = w.sectorOf(to, *sector)
	}
	for _, c := range crossings {
		if w.Lines[c.Line].Special == 0 {
			continue
		}
		w.fire(c.Line, doom.Walked, c.Front, who)
		if w.who.arrived {
			return true
		}
	}
	return false
}

// sectorOf returns the number of the sector at a point, or was if the point is in no sector.
func (w *World) sectorOf(p doom.Point, was uint16) uint16 {
	if s := w.SectorAt(p); s != nil {
		return s.Number
	}
	return was
}

// reach uses the first special line between two points, and reports whether the line acted. A body
// reaches through lines before it only if they have an opening.
func (w *World) reach(who activator, from, to doom.Point) bool {
	var list [16]doom.Crossing
	for _, c := range w.Crossings(list[:], from, to) {
		n := &w.Lines[c.Line]
		if n.Special != 0 {
			return w.fire(c.Line, doom.Used, c.Front, who)
		}
		if n.Back.IsNil() {
			return false
		}
		front, back := n.Front.Get(w.Base), n.Back.Get(w.Base)
		if min(front.Ceiling, back.Ceiling) <= max(front.Floor, back.Floor) {
			return false
		}
	}
	return false
}

// Teleport takes the body to the landing in a sector with the tag. It reports whether a landing
// exists.
func (w *World) Teleport(tag uint16) bool {
	for i := w.NextTagged(tag, -1); i >= 0; i = w.NextTagged(tag, i) {
		for k := range w.landings {
			if d := &w.landings[k]; int(d.Sector) == i {
				w.land(d.At, uint32(d.Heading), d.Sector)
				return true
			}
		}
	}
	return false
}

func (a *activator) place() (at doom.Point, heading uint32) {
	switch {
	case a.player != nil:
		return a.player.At, a.player.Heading
	case a.frog != nil:
		return a.frog.At, uint32(a.frog.Heading)
	}
	return at, heading
}

// land puts the body at a point, with a heading, and marks it as arrived.
func (w *World) land(at doom.Point, heading uint32, sector uint16) {
	w.who.arrived = true
	switch {
	case w.who.player != nil:
		w.who.player.land(at, heading, sector)
	case w.who.frog != nil:
		f := w.who.frog
		f.At, f.Heading, f.Sector, f.Hop = at, uint8(heading), sector, 0
	}
}

func (p *Player) land(at doom.Point, heading uint32, sector uint16) {
	p.At, p.Heading, p.Sector, p.Still = at, heading, sector, 0
}

// LineTeleport takes the body to the front of the other line with the tag. The body is at the same
// fraction of that line, counted from the other end, and turned by the angle between the lines.
// LineTeleport reports whether such a line exists.
func (w *World) LineTeleport(n *doom.Line) bool {
	for i := range w.Lines {
		to := &w.Lines[i]
		if to == n || to.Tag != n.Tag || to.Back.IsNil() {
			continue
		}
		at, heading := w.who.place()
		at = to.At(1<<doom.UnitBits-n.Along(at)).Step(to.Heading()+12, 2)
		at = w.Inside(at)
		w.land(at, (heading+to.Heading()-n.Heading()+8)&15, w.sectorOf(at, 0))
		return true
	}
	return false
}

// Exit takes a player to a start; the level goes on. It reports whether the body is a player.
func (w *World) Exit() bool {
	p := w.who.player
	if p == nil {
		return w.who.is == doom.Players // a probe without a body
	}
	p.Exits++
	w.restartPlayer(p)
	w.who.arrived = true
	return true
}

// restartPlayer puts a player at a start, in full health.
func (w *World) restartPlayer(p *Player) {
	p.Health = fullHealth
	k := doom.Random(w.Room.Seed^0x57a7, w.Room.Tick, p.Exits<<16|p.Deaths) % uint64(len(w.Starts))
	p.land(w.Starts[k], p.Heading, w.starts[k])
}

// harm applies the damage and secrets of floors to players for this tick, and gives keys to players
// near them.
func (w *World) harm() {
	for i := range w.Players.Cap() {
		if p := w.Player(i); p != nil {
			w.harmOne(p)
		}
	}
}

func (w *World) harmOne(p *Player) {
	for i := range w.keys {
		if w.keys[i].At.Near(p.At, keyDistance) {
			p.Keys |= uint32(w.keys[i].Kind)
		}
	}
	c := &w.Sectors[p.Sector]
	special := doom.SectorSpecialOf(c.Special)
	if special.Secret {
		p.Secrets++
		c.Special = 0
	}
	switch {
	case special.Harm == 0 || w.Room.Tick%32 != 0:
	case special.Exit:
		if p.Health = max(p.Health-special.Harm, 1); p.Health <= nearlyDead {
			w.who = activator{is: doom.Players, player: p}
			w.Exit()
		}
	default:
		w.hurt(p, special.Harm)
	}
}

// hurt takes health from a player. A player without health restarts.
func (w *World) hurt(p *Player, damage int32) {
	if p.Health -= damage; p.Health > 0 {
		return
	}
	p.Deaths++
	w.restartPlayer(p)
}

// fits reports whether all bodies in a sector fit between floors and ceilings. With crush, every
// fourth tick damages players and kills frogs that don't fit.
func (w *World) fits(c *doom.Sector, crush bool) bool {
	all, hurts := true, w.Room.Tick%4 == 0
	for i := range w.Players.Cap() {
		if p := w.Player(i); p != nil && w.inside(c, p.At, p.Sector, &playerBody) &&
			!w.stands(p.At, p.Sector, &playerBody) {
			all = false
			if crush && hurts {
				w.hurt(p, crushDamage)
			}
		}
	}
	for i := range w.Frogs.Cap() {
		if f := w.Frogs.At(i); f != nil && w.inside(c, f.At, f.Sector, &frogBody) &&
			!w.stands(f.At, f.Sector, &frogBody) {
			all = false
			if crush && hurts {
				f.Life = 1 // it dies in the next tick
			}
		}
	}
	return all
}

// inside reports whether a body is in a sector, with its middle or with an edge.
func (w *World) inside(c *doom.Sector, at doom.Point, sector uint16, who *body) bool {
	x, y, r := at.X>>doom.UnitBits, at.Y>>doom.UnitBits, who.radius
	o := w.Outline(c)
	if x < int32(o.Min.X)-r || x > int32(o.Max.X)+r || y < int32(o.Min.Y)-r || y > int32(o.Max.Y)+r {
		return false
	}
	if sector == c.Number {
		return true
	}
	for _, i := range w.LinesOf(c) {
		if n := &w.Lines[i]; !n.Back.IsNil() && touches(n, at, who.radius) {
			return true
		}
	}
	return false
}

// stands reports whether a body has enough height in all sectors that it is in, with its middle or
// an edge.
func (w *World) stands(at doom.Point, sector uint16, who *body) bool {
	own := &w.Sectors[sector]
	floor, ceiling := int64(own.Floor), int64(own.Ceiling)
	b := &w.Blocks
	x, y := b.Relative(at)
	r := int64(who.radius) << 8
	left, right := max((x-r)>>doom.CellBits, 0), min((x+r)>>doom.CellBits, int64(b.Columns)-1)
	low, high := max((y-r)>>doom.CellBits, 0), min((y+r)>>doom.CellBits, int64(b.Rows)-1)
	for row := low; row <= high; row++ {
		for column := left; column <= right; column++ {
			for _, i := range w.Near(int(row)*b.Columns + int(column)) {
				n := &w.Lines[i]
				if n.Back.IsNil() || !touches(n, at, who.radius) {
					continue
				}
				front, back := n.Front.Get(w.Base), n.Back.Get(w.Base)
				floor = max(floor, int64(front.Floor), int64(back.Floor))
				ceiling = min(ceiling, int64(front.Ceiling), int64(back.Ceiling))
			}
		}
	}
	return ceiling-floor >= int64(who.height)<<doom.UnitBits
}

func (w *World) carryAll() {
	for i := range w.carries {
		c := &w.carries[i]
		for k := range w.Players.Cap() {
			if p := w.Player(k); p != nil && p.Sector == c.Sector {
				w.carryOn(activator{is: doom.Players, player: p}, &p.At, &p.Sector, c.Step, &playerBody)
			}
		}
		for k := range w.Frogs.Cap() {
			if f := w.Frogs.At(k); f != nil && f.Sector == c.Sector {
				w.carryOn(activator{is: doom.Monsters, frog: f}, &f.At, &f.Sector, c.Step, &frogBody)
			}
		}
	}
}

func (w *World) carryOn(who activator, at *doom.Point, sector *uint16, step doom.Point, shape *body) {
	from := *at
	to := doom.Point{X: doom.Clamp(int64(from.X) + int64(step.X)), Y: doom.Clamp(int64(from.Y) + int64(step.Y))}
	if !w.stopped(from, to, shape) {
		*at = to
		w.moved(who, from, to, sector)
	}
}
