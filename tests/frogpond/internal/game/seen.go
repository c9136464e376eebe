package game

import (
	"math"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Seen is a body or sector in a player's view.
type Seen struct {
	Number  uint16 // of the player or sector, or the frog's place in the pool
	X, Y    int16  // in map units; for a sector its floor and ceiling
	Kind    uint8
	Heading uint8 // one of 16 directions
}

// The kinds of Seen: players, frogs, and sectors with a moved floor or ceiling.
const (
	SeenPlayer = 1 + iota
	SeenFrog
	SeenSector
)

const (
	farthest  = 1024 // units, the limit of a trace
	lookTurns = 4    // each look checks one target in four, in turn
)

// sights keeps the results of each player's last looks. Targets are the players, then the frogs by
// place. It isn't part of the state.
type sights struct {
	targets int
	marks   []uint16 // by looking player and by target
	turns   []uint32 // by looking player; 0: check all targets
}

// The marks of a target. A larger mark is behind plus the number of the wall that hides the target.
const (
	unseen = iota
	inSight
	behind
)

func newSights(s scope.Scope, players, frogs int) sights {
	targets := players + frogs
	return sights{targets, wordMaker.Slice(s, players*targets), countMaker.Slice(s, players)}
}

func (s *sights) of(player int) []uint16 { return s.marks[player*s.targets:][:s.targets] }

// forget makes a player's next look check all targets.
func (s *sights) forget(player int) {
	if s.marks != nil {
		s.turns[player] = 0
	}
}

// look is one look of a player, or of a watcher, which sees everything.
type look struct {
	level  *Level
	player int // the looking player; -1: a watcher
	from   doom.Point
	hits   []hit    // memory for traces
	seen   []uint64 // memory for traces
	marks  []uint16 // nil: check all targets
	turn   uint32
	list   []Seen
}

// See appends the bodies and sectors that a player sees, ordered by kind and number, until list is
// full. whole reports whether all fitted. A player < 0 is a watcher, which sees everything; a
// player that is away sees nothing. In a level of LoadInto, a call checks a quarter of the bodies
// and takes the last results of the others; a player's first call checks all. c is a crew of the
// caller's goroutine only.
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

func (v *look) all() (seen []Seen, whole bool) {
	whole = v.players() && v.frogs() && v.sectors()
	return v.list, whole
}

// players adds the players in sight. Like frogs and sectors, it reports whether all fitted.
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

// sees reports whether a target is in sight. If it isn't the target's turn, the last result counts.
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

// mark returns the new mark of a target. It first tests the wall that hid the target before, since
// that wall mostly still does.
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

func (v *look) note(i int, mark uint16) {
	if v.marks != nil {
		v.marks[i] = mark
	}
}

// isNear reports whether the bounding box of a sector is within sight.
func (v *look) isNear(o *doom.Outline) bool {
	x := min(max(v.from.X, int32(o.Min.X)<<doom.UnitBits), int32(o.Max.X)<<doom.UnitBits)
	y := min(max(v.from.Y, int32(o.Min.Y)<<doom.UnitBits), int32(o.Max.Y)<<doom.UnitBits)
	return v.player < 0 || v.from.Near(doom.Point{X: x, Y: y}, farthest)
}

// add appends a Seen to the list. It returns false if the list is full.
func (v *look) add(kind uint8, number int, at doom.Point, heading uint8) bool {
	if len(v.list) == cap(v.list) {
		return false
	}
	v.list = append(v.list, Seen{Number: uint16(number), X: int16(at.X >> doom.UnitBits),
		Y: int16(at.Y >> doom.UnitBits), Kind: kind, Heading: heading & 15})
	return true
}
