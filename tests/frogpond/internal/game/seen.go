package game

import (
	"math"

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

// sights are what players saw when they looked last: players, then frogs by their place. They lie
// beside the state and are nobody's state.
type sights struct {
	targets int
	marks   []uint16 // by player who looks and by target
	turns   []uint32 // by player who looks; 0: it looks at all
}

// What is known of a target; above these, the number of the wall that hides it.
const (
	unseen = iota
	inSight
	behind
)

func newSights(s scope.Scope, players, frogs int) sights {
	targets := players + frogs
	return sights{targets, wordMaker.Slice(s, players*targets), countMaker.Slice(s, players)}
}

// of are the marks of who looks.
func (s *sights) of(player int) []uint16 { return s.marks[player*s.targets:][:s.targets] }

// forget has a player look at all the next time.
func (s *sights) forget(player int) {
	if s.marks != nil {
		s.turns[player] = 0
	}
}

// look is a player's, at what is near, or a watcher's, who sees everything.
type look struct {
	level  *Level
	player int // who looks; -1: a watcher
	from   doom.Point
	hits   []hit    // memory of traces
	seen   []uint64 // and theirs, too
	marks  []uint16 // nil: it looks at all
	turn   uint32
	list   []Seen
}

// See appends what a player sees, in the order of kind and number, until list is full; whole says
// whether all fitted. player < 0 is a watcher, who sees everything; who is away sees nothing. In a
// level of LoadInto a player looks at each thing in every fourth call, and keeps in mind what it
// saw. c is a crew of the caller's goroutine alone.
func (g *Game) See(c *Crew, player int, list []Seen) (seen []Seen, whole bool) {
	l, w := g.Level, c.workers[0]
	v := look{level: l, player: player, list: list}
	if player < 0 {
		return v.all()
	}
	p := l.Player(player)
	if p == nil {
		return list, true
	}
	c.game, v.from = g, p.At
	scratch := w.scratches[1].Open("look")
	defer w.close(scratch)
	v.hits, v.seen = hitMaker.TrySlice(scratch, maxHits), seenMaker.TrySlice(scratch, l.seenWords())
	if v.hits == nil || v.seen == nil {
		return list, false
	}
	if s := &l.sights; s.marks != nil {
		v.marks, v.turn = s.of(player), s.turns[player]
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
			v.note(i, unseen)
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
			v.note(first+i, unseen)
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

// sees says whether a target is seen: as it was when it was looked at last, if it isn't its turn.
func (v *look) sees(i int, at doom.Point, who *body) bool {
	switch {
	case v.player < 0:
		return true
	case !at.Near(v.from, farthest):
		v.note(i, unseen)
		return false
	case v.marks == nil:
		return v.mark(unseen, at, who) == inSight
	case v.turn == 0 || (v.turn+uint32(i))%lookTurns == 0:
		v.marks[i] = v.mark(v.marks[i], at, who)
	}
	return v.marks[i] == inSight
}

// mark looks at a target, of which something is known: mostly that the same wall hides it still.
func (v *look) mark(known uint16, at doom.Point, who *body) uint16 {
	l := v.level
	if known >= behind {
		if _, hides := cross(&l.Lines[known-behind], v.from, at); hides {
			return known
		}
	}
	clear(v.seen)
	hits, ok := l.crossed(v.hits, v.seen, v.from, at)
	if !ok {
		return unseen
	}
	for _, h := range hits {
		if l.Lines[h.Line].Back.IsNil() && h.Line <= math.MaxUint16-behind {
			return behind + h.Line
		}
	}
	if l.opens(hits, &playerBody, who) {
		return inSight
	}
	return unseen
}

// note keeps in mind what is known of a target.
func (v *look) note(i int, mark uint16) {
	if v.marks != nil {
		v.marks[i] = mark
	}
}

// isNear says whether a sector is near, with the nearest corner or edge of its box.
func (v *look) isNear(o *doom.Outline) bool {
	x := min(max(v.from.X, int32(o.Min.X)<<doom.UnitBits), int32(o.Max.X)<<doom.UnitBits)
	y := min(max(v.from.Y, int32(o.Min.Y)<<doom.UnitBits), int32(o.Max.Y)<<doom.UnitBits)
	return v.player < 0 || v.from.Near(doom.Point{X: x, Y: y}, farthest)
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
