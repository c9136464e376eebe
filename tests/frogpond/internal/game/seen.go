package game

import (
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Seen is a thing that a player is shown.
type Seen struct {
	Number  uint16 // of the player, the frog's place in the pool, the sector
	X, Y    int16  // in map units; of a sector the floor and the ceiling
	Kind    uint8
	Heading uint8 // of the compass
}

// Kinds of what is seen: players, frogs, and sectors whose floor or ceiling isn't where it was
// loaded.
const (
	SeenPlayer = 1 + iota
	SeenFrog
	SeenSector
)

const (
	farthest  = 1024 // units: a trace may be no longer
	lookTurns = 4    // a player looks at a quarter of what is near, each time another one
)

// sights are who was seen when it was looked at last: players, then frogs by their place, a bit
// each for each player who looks. They lie beside the state and are nobody's state.
type sights struct {
	words int
	bits  []uint64
	turns []uint32 // by player who looks; 0: it looks at all
}

func newSights(s scope.Scope, players, frogs int) sights {
	words := (players + frogs + 63) / 64
	return sights{words: words, bits: seenMaker.Slice(s, players*words),
		turns: countMaker.Slice(s, players)}
}

// of are the bits of who looks; nil: there are none.
func (s *sights) of(player int) []uint64 {
	if s.bits == nil {
		return nil
	}
	return s.bits[player*s.words:][:s.words]
}

// forget has a player look at all the next time.
func (s *sights) forget(player int) {
	if s.bits != nil {
		s.turns[player] = 0
	}
}

// look is a player's, at what is near, or a watcher's, who sees everything.
type look struct {
	level   *Level
	worker  *worker // nil: a watcher's
	scratch scope.Scope
	player  int
	from    doom.Point
	bits    []uint64 // nil: it looks at all
	turn    uint32
	list    []Seen
}

// See appends what a player sees, in the order of kind and number, until list is full; whole says
// whether all fitted. player < 0 is a watcher, who sees everything; who is away sees nothing. In a
// level of LoadInto a player looks at each thing in every fourth call, and keeps in mind what it
// saw. c is a crew of the caller's goroutine alone.
func (g *Game) See(c *Crew, player int, list []Seen) (seen []Seen, whole bool) {
	v := look{level: g.Level, player: player, list: list}
	if player < 0 {
		return v.all()
	}
	p := g.Level.Player(player)
	if p == nil {
		return list, true
	}
	c.game, v.worker, v.from = g, c.workers[0], p.At
	v.scratch = v.worker.scratches[1].Open("look")
	defer v.worker.close(v.scratch)
	if s := &g.Level.sights; s.bits != nil {
		v.bits, v.turn = s.of(player), s.turns[player]
		s.turns[player]++
	}
	return v.all()
}

// all looks at all kinds.
func (v *look) all() (seen []Seen, whole bool) {
	whole = v.players() && v.frogs() && v.sectors()
	return v.list, whole
}

// players adds those that are seen, and says whether there was room; so do the next two.
func (v *look) players() bool {
	for i := range v.level.Players.Cap() {
		p := v.level.Player(i)
		switch {
		case p == nil || i == v.player:
			v.note(i, false)
		case v.sees(i, p.At, &playerBody) && !v.add(SeenPlayer, i, p.At, uint8(p.Heading)):
			return false
		}
	}
	return true
}

func (v *look) frogs() bool {
	first := v.level.Players.Cap()
	for i := range v.level.Frogs.Cap() {
		f := v.level.Frogs.At(i)
		switch {
		case f == nil:
			v.note(first+i, false)
		case v.sees(first+i, f.At, &frogBody) && !v.add(SeenFrog, i, f.At, f.Heading):
			return false
		}
	}
	return true
}

func (v *look) sectors() bool {
	for i := range v.level.Sectors {
		is, was := &v.level.Sectors[i], &v.level.loaded[i]
		if is.Floor == was.Floor && is.Ceiling == was.Ceiling || !v.isNear(&v.level.Outlines[i]) {
			continue
		}
		if !v.add(SeenSector, i, doom.Point{X: is.Floor, Y: is.Ceiling}, 0) {
			return false
		}
	}
	return true
}

// sees says whether a body is seen: as it was when it was looked at last, if it isn't its turn.
func (v *look) sees(i int, at doom.Point, who *body) bool {
	switch {
	case v.worker == nil:
		return true
	case !at.Near(v.from, farthest):
		v.note(i, false)
		return false
	case v.bits == nil || v.turn == 0 || (v.turn+uint32(i))%lookTurns == 0:
		seen := v.worker.sees(v.level, v.scratch, v.from, at, &playerBody, who)
		v.note(i, seen)
		return seen
	}
	return v.bits[i/64]>>(i%64)&1 != 0
}

// note keeps in mind whether a body is seen.
func (v *look) note(i int, seen bool) {
	switch bit := uint64(1) << (i % 64); {
	case v.bits == nil:
	case seen:
		v.bits[i/64] |= bit
	default:
		v.bits[i/64] &^= bit
	}
}

// isNear says whether a sector is near, with the nearest corner or edge of its box.
func (v *look) isNear(o *doom.Outline) bool {
	x := min(max(v.from.X, int32(o.Min.X)<<doom.UnitBits), int32(o.Max.X)<<doom.UnitBits)
	y := min(max(v.from.Y, int32(o.Min.Y)<<doom.UnitBits), int32(o.Max.Y)<<doom.UnitBits)
	return v.worker == nil || v.from.Near(doom.Point{X: x, Y: y}, farthest)
}

// add says whether there was room.
func (v *look) add(kind uint8, number int, at doom.Point, heading uint8) bool {
	if len(v.list) == cap(v.list) {
		return false
	}
	v.list = append(v.list, Seen{Number: uint16(number), X: int16(at.X >> doom.UnitBits),
		Y: int16(at.Y >> doom.UnitBits), Kind: kind, Heading: heading & 15})
	return true
}
