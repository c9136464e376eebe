package sweep

import "slices"

// Kind is an action on a line.
type Kind uint8

const (
	Walk  Kind = iota // cross it
	Use               // push it, from its front
	Shoot             // hit it
)

// Keys are the colours of a body's keys; a card and a skull open the same locks.
type Keys uint8

const (
	Blue Keys = 1 << iota
	Yellow
	Red
	everyKey = Blue | Yellow | Red
)

// family is the usual name of a group of line types.
type family string

// The bodies that may trigger a line.
const (
	players = 1 << iota
	monsters
	both = players | monsters
)

// rule is the effect of a type of lines.
type rule struct {
	family family
	kind   Kind
	again  bool // the line works more than once
	who    int
	key    Keys // any of these opens; 0: no key needed

	manual   bool // affects the sector behind the line, not the sectors with its tag
	moves    func(e *effect, sector int)
	light    func(n *now, sector int) int
	teleport func(m *Map, line int) *arrival // nil: none
	exit     bool
	scroll   int  // units a tick, from the load on, without a trigger
	carries  bool // bodies on the floors with its tag, from the load on
}

// columns are the types with one effect, by their trigger, as the game's mappers name them. W is by
// walking, S by a switch and G by a shot; 1 is once and R repeatedly.
type columns struct{ W1, WR, S1, SR, G1, GR uint16 }

var rules = map[uint16]rule{}

func with(f family, c columns, r rule) {
	r.family = f
	for i, special := range []uint16{c.W1, c.WR, c.S1, c.SR, c.G1, c.GR} {
		if special == 0 {
			continue
		}
		one := r
		one.kind, one.again, one.who = []Kind{Walk, Use, Shoot}[i/2], i%2 == 1, players
		if one.kind == Shoot {
			one.family = "shot"
		}
		if _, twice := rules[special]; twice {
			panic("sweep: the table has a line type twice")
		}
		rules[special] = one
	}
}

// Speeds in 1/65536 units a tick, and heights in 1/65536 units.
const (
	unit  = 1 << 16
	slow  = 2 * unit // doors
	blaze = 8 * unit
	walk  = 1 * unit // floors and ceilings
	turbo = 4 * unit
)

func init() {
	moves := func(f func(*effect, int)) rule { return rule{moves: f} }
	// Doors. Each opens to four units below the lowest ceiling around it.
	with("door", columns{W1: 4, WR: 90, S1: 29, SR: 63}, moves(door(slow, 150)))
	with("door", columns{W1: 2, WR: 86, S1: 103, SR: 61, GR: 46}, moves(opening(slow)))
	with("door", columns{W1: 3, WR: 75, S1: 50, SR: 42}, moves(closing(slow)))
	with("door", columns{W1: 16, WR: 76, S1: 175, SR: 196}, moves(closed30))
	with("door", columns{W1: 108, WR: 105, S1: 111, SR: 114}, moves(door(blaze, 150)))
	with("door", columns{W1: 109, WR: 106, S1: 112, SR: 115}, moves(opening(blaze)))
	with("door", columns{W1: 110, WR: 107, S1: 113, SR: 116}, moves(closing(blaze)))
	for i, key := range []Keys{0, Blue, Yellow, Red} {
		opens, stays := []uint16{1, 26, 27, 28}[i], []uint16{31, 32, 34, 33}[i]
		with("door", columns{SR: opens}, rule{key: key, manual: true, moves: door(slow, 150)})
		with("door", columns{S1: stays}, rule{key: key, manual: true, moves: opening(slow)})
	}
	with("door", columns{S1: 118}, rule{manual: true, moves: opening(blaze)})
	with("door", columns{SR: 117}, rule{manual: true, moves: door(blaze, 150)})
	with("locked", columns{S1: 133, SR: 99}, rule{key: Blue, moves: opening(blaze)})
	with("locked", columns{S1: 137, SR: 136}, rule{key: Yellow, moves: opening(blaze)})
	with("locked", columns{S1: 135, SR: 134}, rule{key: Red, moves: opening(blaze)})

	with("lift", columns{W1: 10, WR: 88, S1: 21, SR: 62}, moves(lift(4*unit, 105)))
	with("lift", columns{W1: 121, WR: 120, S1: 122, SR: 123}, moves(lift(8*unit, 105)))
	with("lift", columns{W1: 53, WR: 87, S1: 162, SR: 181}, moves(perpetual))

	with("floor", columns{W1: 22, WR: 95, S1: 20, SR: 68, G1: 47}, moves(func(e *effect, s int) {
		e.floor(s, up(e.nextFloor(s), unit/2))
		e.become(s, 0)
	}))
	with("floor", columns{W1: 143, WR: 148, S1: 15, SR: 66}, moves(higher(24, unit/2)))
	with("floor", columns{W1: 144, WR: 149, S1: 14, SR: 67}, moves(higher(32, unit/2)))
	with("floor", columns{W1: 58, WR: 92, S1: 161, SR: 180}, moves(higher(24, walk)))
	with("floor", columns{W1: 142, WR: 147, S1: 140, SR: 178}, moves(higher(512, walk)))
	with("floor", columns{W1: 59, WR: 93, S1: 160, SR: 179}, moves(func(e *effect, s int) {
		higher(24, walk)(e, s)
		e.become(s, e.special[e.Lines[e.line].Front])
	}))
	with("floor", columns{W1: 19, WR: 83, S1: 102, SR: 45}, moves(func(e *effect, s int) {
		e.floor(s, down(e.highestFloor(s), walk))
	}))
	with("floor", columns{W1: 38, WR: 82, S1: 23, SR: 60}, moves(func(e *effect, s int) {
		e.floor(s, down(e.lowestFloor(s), walk))
	}))
	with("floor", columns{W1: 36, WR: 98, S1: 71, SR: 70}, moves(func(e *effect, s int) {
		to := e.highestFloor(s)
		if to != e.floors[s] {
			to += 8 * unit
		}
		e.floor(s, down(to, turbo))
	}))
	with("floor", columns{W1: 37, WR: 84, S1: 159, SR: 177}, moves(func(e *effect, s int) {
		to := e.lowestFloor(s)
		e.floor(s, down(to, walk))
		for _, other := range e.around(s) {
			if e.floors[other] == to {
				e.become(s, e.special[other])
				break
			}
		}
	}))
	with("floor", columns{W1: 5, WR: 91, S1: 101, SR: 64, G1: 24}, moves(func(e *effect, s int) {
		e.floor(s, up(min(e.lowestCeiling(s), e.ceilings[s]), walk))
	}))
	with("floor", columns{W1: 56, WR: 94, S1: 55, SR: 65}, moves(func(e *effect, s int) {
		e.floor(s, up(min(e.lowestCeiling(s), e.ceilings[s])-8*unit, walk))
	}))
	with("floor", columns{W1: 119, WR: 128, S1: 18, SR: 69}, moves(func(e *effect, s int) {
		e.floor(s, up(e.nextFloor(s), walk))
	}))
	with("floor", columns{W1: 130, WR: 129, S1: 131, SR: 132}, moves(func(e *effect, s int) {
		e.floor(s, up(e.nextFloor(s), turbo))
	}))
	with("floor", columns{W1: 146, WR: 155, S1: 9, SR: 191}, moves(donut))
	with("stairs", columns{W1: 8, S1: 7}, moves(stairs(8, unit/4)))
	with("stairs", columns{W1: 100, S1: 127}, moves(stairs(16, turbo)))

	// The floor stays, as in the game.
	with("ceiling", columns{W1: 40}, moves(func(e *effect, s int) {
		e.ceiling(s, up(e.highestCeiling(s), walk))
	}))
	with("ceiling", columns{W1: 145, WR: 152, S1: 41, SR: 43}, moves(func(e *effect, s int) {
		e.ceiling(s, down(e.floors[s], walk))
	}))
	with("ceiling", columns{W1: 44, WR: 72, S1: 167, SR: 187}, moves(func(e *effect, s int) {
		e.ceiling(s, down(e.floors[s]+8*unit, walk))
	}))
	with("crusher", columns{W1: 25, WR: 73, S1: 49}, moves(crusher(walk)))
	with("crusher", columns{W1: 6, WR: 77}, moves(crusher(2*unit)))
	with("crusher", columns{W1: 141}, moves(crusher(walk)))
	// No crusher moves after a load.
	with("crusher", columns{W1: 57, WR: 74}, moves(func(*effect, int) {}))

	with("teleport", columns{W1: 39, WR: 97}, rule{teleport: toThing})
	with("teleport", columns{W1: 125, WR: 126}, rule{teleport: toThing})
	with("teleport", columns{W1: 243, WR: 244}, rule{teleport: toLine})
	with("exit", columns{W1: 52, S1: 11}, rule{exit: true})
	with("exit", columns{W1: 124, S1: 51}, rule{exit: true})
	rules[48] = rule{family: "scroller", scroll: 1}
	rules[85] = rule{family: "scroller", scroll: -1}
	rules[252] = rule{family: "scroller", carries: true}

	full := func(v int) func(*now, int) int { return func(*now, int) int { return v } }
	with("light", columns{W1: 13, WR: 81, SR: 138}, rule{light: full(255)})
	with("light", columns{W1: 35, WR: 79, SR: 139}, rule{light: full(35)})
	with("light", columns{W1: 12, WR: 80}, rule{light: (*now).brightest})
	with("light", columns{W1: 104}, rule{light: (*now).darkest})

	for _, special := range []uint16{1, 4, 10, 39, 46, 88, 97, 243, 244} {
		let(special, both)
	}
	for _, special := range []uint16{125, 126} {
		let(special, monsters)
	}
}

// let sets the bodies that may trigger a type. Without let only players may.
func let(special uint16, who int) {
	r := rules[special]
	r.who = who
	rules[special] = r
}

// ruleOf returns the rule of a type, and whether it is known. Generalized types have their
// parameters in their bits.
func ruleOf(special uint16) (r rule, known bool) {
	if r, known = rules[special]; known {
		return r, true
	}
	bits := int(special)
	kind, speed := bits&7, 1<<(bits>>3&3)
	r = rule{kind: []Kind{Walk, Use, Shoot, Use}[kind/2], again: kind%2 == 1, manual: kind >= 6,
		who: players}
	switch {
	case 0x3c00 <= bits && bits < 0x4000 && bits>>5&3 <= 1:
		r.family = "door"
		wait := []int{35, 150, 300, 1050}[bits>>8&3]
		if r.moves = door(int64(speed)*slow, wait); bits>>5&3 == 1 {
			r.moves = opening(int64(speed) * slow)
		}
		if bits&0x80 != 0 {
			r.who = both
		}
	case 0x3400 <= bits && bits < 0x3800 && bits>>8&3 == 0:
		r.family = "lift"
		r.moves = lift(int64(speed)*2*unit, []int{35, 105, 175, 350}[bits>>6&3])
		if bits&0x20 != 0 {
			r.who = both
		}
	default:
		return rule{}, false
	}
	return r, true
}

// door opens, waits and closes.
func door(speed int64, wait int) func(*effect, int) {
	return func(e *effect, s int) {
		e.ceiling(s, up(e.lowestCeiling(s)-4*unit, speed).then(wait), down(e.floors[s], speed))
	}
}

func opening(speed int64) func(*effect, int) {
	return func(e *effect, s int) { e.ceiling(s, up(e.lowestCeiling(s)-4*unit, speed)) }
}

func closing(speed int64) func(*effect, int) {
	return func(e *effect, s int) { e.ceiling(s, down(e.floors[s], speed)) }
}

// closed30 closes for half a minute, and opens to the former height.
func closed30(e *effect, s int) {
	e.ceiling(s, down(e.floors[s], slow).then(30*35), up(e.ceilings[s], slow))
}

// lift goes down to the lowest floor around, waits, and comes back.
func lift(speed int64, wait int) func(*effect, int) {
	return func(e *effect, s int) {
		e.floor(s, down(e.lowestFloor(s), speed).then(wait), up(e.floors[s], speed))
	}
}

// perpetual goes up and down for ever, between the lowest and the highest of its own floor and
// those around it. The first direction is random.
func perpetual(e *effect, s int) {
	low, high := e.lowestFloor(s), max(e.highestFloor(s), e.floors[s])
	fall, rise := down(low, unit).then(105), up(high, unit).then(105)
	e.forever(s, false, fall, rise)
	e.courses[len(e.courses)-1].or = []leg{rise, fall, rise, fall}
}

func higher(by, speed int64) func(*effect, int) {
	return func(e *effect, s int) { e.floor(s, up(e.floors[s]+by*unit, speed)) }
}

// crusher goes down to eight units above the floor, and up again, for ever.
func crusher(speed int64) func(*effect, int) {
	return func(e *effect, s int) {
		e.forever(s, true, down(e.floors[s]+8*unit, speed), up(e.ceilings[s], speed))
	}
}

// stairs raises a sector by one step, the next sector with the same flat by two, and so on. The
// next sector is behind the first line with its front in the sector.
func stairs(size, speed int64) func(*effect, int) {
	return func(e *effect, s int) {
		flat, height := e.Sectors[s].Flat, e.floors[s]
		for ok := true; ok; {
			height += size * unit
			e.floor(s, up(height, speed))
			ok = false
			for _, line := range e.Sectors[s].lines {
				l := &e.Lines[line]
				if next := e.beyond(line, s); next >= 0 && l.Front == s &&
					e.Sectors[next].Flat == flat && !e.moving(next) {
					s, ok = next, true
					break
				}
			}
		}
	}
}

// donut moves the hole and the ring around it to the height of the floor outside of the ring.
func donut(e *effect, hole int) {
	ring := e.beyond(e.Sectors[hole].lines[0], hole)
	if ring < 0 {
		return
	}
	for _, line := range e.Sectors[ring].lines {
		if out := e.Lines[line].Back; out >= 0 && out != hole {
			e.floor(ring, up(e.floors[out], unit/2))
			e.become(ring, 0)
			e.floor(hole, down(e.floors[out], unit/2))
			return
		}
	}
}

// now is a map with its current heights, in 1/65536 units.
type now struct {
	*Map
	floors, ceilings []int64
	special          []uint16
	lights           []int
}

func (m *Map) now() *now {
	n := &now{Map: m}
	for i := range m.Sectors {
		s := &m.Sectors[i]
		n.floors = append(n.floors, int64(s.Floor)*unit)
		n.ceilings = append(n.ceilings, int64(s.Ceiling)*unit)
		n.special = append(n.special, s.Special)
		n.lights = append(n.lights, s.Light)
	}
	return n
}

func of[T any](list []T, sectors []int) (of []T) {
	for _, s := range sectors {
		of = append(of, list[s])
	}
	return of
}

// nowhere is a height that no map has. It stands for the heights of missing neighbours.
const nowhere = 32000 * unit

func (n *now) lowestCeiling(s int) int64 {
	return slices.Min(append(of(n.ceilings, n.around(s)), nowhere))
}

func (n *now) highestCeiling(s int) int64 {
	return slices.Max(append(of(n.ceilings, n.around(s)), -nowhere))
}

func (n *now) highestFloor(s int) int64 {
	return slices.Max(append(of(n.floors, n.around(s)), -nowhere))
}

// lowestFloor returns the lowest floor of the sector and those around it.
func (n *now) lowestFloor(s int) int64 {
	return slices.Min(append(of(n.floors, n.around(s)), n.floors[s]))
}

// nextFloor returns the lowest floor around that is above the sector's, or the sector's own.
func (n *now) nextFloor(s int) int64 {
	least := int64(nowhere)
	for _, floor := range of(n.floors, n.around(s)) {
		if floor > n.floors[s] {
			least = min(least, floor)
		}
	}
	if least == nowhere {
		return n.floors[s]
	}
	return least
}

func (n *now) brightest(s int) int {
	return slices.Max(append(of(n.lights, n.around(s)), 0))
}

func (n *now) darkest(s int) int {
	return slices.Min(append(of(n.lights, n.around(s)), n.lights[s]))
}
