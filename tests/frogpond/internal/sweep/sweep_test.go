package sweep

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rooms returns five rooms in a row from west to east, each of 64 by 64 units. Line 0, between
// rooms 0 and 1, has its front in the west and carries the special.
func rooms(t *testing.T, special, tag uint16) *Map {
	t.Helper()
	lumps := map[string][]byte{}
	put := func(lump string, words ...int) {
		for _, w := range words {
			lumps[lump] = binary.LittleEndian.AppendUint16(lumps[lump], uint16(w))
		}
	}
	for i, s := range [][5]int{ // floor, ceiling, light, special, tag
		{0, 128, 160, 0, 0},
		{0, 0, 160, 0, 1},
		{0, 128, 96, 0, 0},
		{64, 128, 112, 5, 2},
		{-32, 160, 80, 8, 3},
	} {
		put("SECTORS", s[0], s[1])
		lumps["SECTORS"] = append(lumps["SECTORS"], "FLAT\x00\x00\x00\x00CEIL\x00\x00\x00\x00"...)
		put("SECTORS", s[2], s[3], s[4])
		put("VERTEXES", 64*i, 0, 64*i, 64)
		put("SIDEDEFS", make([]int, 14)...)
		put("SIDEDEFS", i)
	}
	put("VERTEXES", 320, 0, 320, 64)
	for i := 1; i < 5; i++ { // the line goes south, so its right side is in the west
		kind := [2]int{}
		if i == 1 {
			kind = [2]int{int(special), int(tag)}
		}
		put("LINEDEFS", 2*i+1, 2*i, twoSided, kind[0], kind[1], i-1, i)
	}
	for i := range 5 {
		put("LINEDEFS", 2*i+2, 2*i, 0, 0, 0, i, 0xffff)
		put("LINEDEFS", 2*i+1, 2*i+3, 0, 0, 0, i, 0xffff)
	}
	put("LINEDEFS", 0, 1, 0, 0, 0, 0, 0xffff)
	put("LINEDEFS", 11, 10, 0, 0, 0, 4, 0xffff)
	put("THINGS", 32, 32, 0, 1, 7, 288, 32, 90, landing, 7)
	m, err := Parse(func(name string) []byte { return lumps[name] })
	require.NoError(t, err)
	return m
}

type faults struct {
	height, wait, scroll, light, turn, beside, exits, hurt, carry int
	speed                                                         int // twice, 3 times ...
	anyKind, anyKey, anyone, anySide, more, elsewhere             bool
	keepsSpecial, dark, stuck, early, tired, behind               bool
}

// fake is a world with a few types of lines, whose heights by tick are written by hand.
type fake struct {
	*now
	faults
	special uint16
	ways    map[*int64][]int64 // heights to come
	cycle   map[*int64][]int64
	fired   bool
	tick    int
	exit    int
	body    [3]int
}

// to appends the heights of a movement from from to to, and of a wait.
func (f *fake) to(list []int64, from, to, speed int64, wait int) []int64 {
	speed *= int64(max(f.speed, 1))
	for from != to {
		if from < to {
			from = min(from+speed, to)
		} else {
			from = max(from-speed, to)
		}
		list = append(list, from)
	}
	for range wait {
		list = append(list, to)
	}
	return list
}

// knows lists the types of the fake world: the action, whether only the front works, the bodies and
// the key.
var knows = map[uint16]struct {
	kind     Kind
	front    bool
	monster  int // 1: monsters too, 2: monsters only
	key      Keys
	again    bool
	teleport bool
}{
	1:   {kind: Use, front: true, monster: 1, again: true},
	26:  {kind: Use, front: true, key: Blue, again: true},
	31:  {kind: Use, front: true},
	133: {kind: Use, front: true, key: Blue},
	16:  {kind: Walk},
	62:  {kind: Use, front: true, again: true},
	58:  {kind: Walk},
	92:  {kind: Walk, again: true},
	37:  {kind: Walk},
	47:  {kind: Shoot},
	53:  {kind: Walk},
	25:  {kind: Walk},
	97:  {kind: Walk, front: true, monster: 1, again: true, teleport: true},
	39:  {kind: Walk, front: true, monster: 1, teleport: true},
	125: {kind: Walk, front: true, monster: 2, teleport: true},
	11:  {kind: Use, front: true},
	13:  {kind: Walk},
	48:  {kind: Walk},
	244: {kind: Walk, front: true, monster: 1, again: true, teleport: true},
	252: {kind: Walk},
}

func (f *fake) Fire(_ int, by By) {
	k := knows[f.special]
	f.body = [3]int{32, 32, 0}
	switch {
	case f.special == 48, f.special == 252, !f.anyKind && by.Kind != k.kind,
		!f.anyKey && k.key != 0 && by.Keys&k.key == 0:
		return
	case !f.anySide && k.front && by.Back, f.fired && (f.tired || !k.again && !f.more):
		return
	case !f.anyone && (by.Monster && k.monster == 0 || !by.Monster && k.monster == 2):
		return
	}
	f.fired = true
	h := int64(f.faults.height) * unit
	move := func(height *int64, list []int64) {
		if !f.stuck && len(f.ways[height]) == 0 {
			f.ways[height] = list
		}
	}
	door, floor := &f.ceilings[1], &f.floors[3]
	switch f.special {
	case 1, 26:
		list := f.to(nil, *door, 124*unit+h, 2*unit, 150+f.wait)
		move(door, f.to(list, 124*unit+h, 0, 2*unit, 0))
	case 31:
		move(door, f.to(nil, *door, 124*unit+h, 2*unit, 0))
	case 133:
		move(door, f.to(nil, *door, 124*unit+h, 8*unit, 0))
	case 16: // room 3 closes and opens again
		list := f.to(nil, 128*unit, 64*unit, 2*unit, 1050+f.wait)
		move(&f.ceilings[3], f.to(list, 64*unit, 128*unit+h, 2*unit, 0))
	case 62:
		list := f.to(nil, 64*unit, -32*unit+h, 4*unit, 105+f.wait)
		move(floor, f.to(list, -32*unit+h, 64*unit, 4*unit, 0))
	case 58, 92:
		move(floor, f.to(nil, *floor, *floor+24*unit+h, unit, 0))
	case 37:
		move(floor, f.to(nil, 64*unit, -32*unit+h, unit, 0))
		if !f.keepsSpecial {
			f.now.special[3] = 8
		}
	case 47: // the door's floor, to that of room 3
		move(&f.floors[2], f.to(nil, 0, 64*unit+h, unit/2, 0))
		f.now.special[2] = 0
	case 53: // the sector's own floor is the highest
		list := f.to(nil, 64*unit, -32*unit+h, unit, 105+f.wait)
		f.cycle[floor] = f.to(list, -32*unit+h, 64*unit, unit, 105)
		if !f.early { // the lift begins with a wait at the top
			move(floor, f.to(nil, *floor, *floor, 1, 105))
		}
	case 25:
		list := f.to(nil, 128*unit, 72*unit+h, unit, 0)
		f.cycle[&f.ceilings[3]] = f.to(list, 72*unit+h, 128*unit, unit, 0)
	case 97, 39, 125:
		if f.body = [3]int{288, 32, 90 + f.turn}; f.elsewhere {
			f.body = [3]int{32, 32, 0}
		}
	case 244: // west of the door between the last two rooms, and back
		f.body = [3]int{254, 32, 180 + f.turn}
		if f.behind {
			f.body[0] = 258
		}
		if f.elsewhere {
			f.body[1] = 16
		}
	case 11:
		f.exit += 1 + f.exits
	case 13:
		f.lights[3] = 255 + f.faults.light
	}
	if f.beside != 0 {
		f.floors[4] += unit
	}
}

func (f *fake) Restore() {
	n := f.Map.now()
	copy(f.floors, n.floors)
	copy(f.ceilings, n.ceilings)
	copy(f.lights, n.lights)
	copy(f.now.special, n.special)
}

func (f *fake) Tick() {
	f.tick++
	for height, list := range f.cycle {
		if len(f.ways[height]) == 0 && !f.stuck {
			f.ways[height] = list
		}
	}
	for height, list := range f.ways {
		if len(list) > 0 {
			*height, f.ways[height] = list[0], list[1:]
		}
	}
	if room := &f.lights[4]; f.dark {
		*room -= 3
	}
}

func (f *fake) Floor(s int) int32    { return int32(f.floors[s]) }
func (f *fake) Ceiling(s int) int32  { return int32(f.ceilings[s]) }
func (f *fake) Light(s int) int      { return f.lights[s] }
func (f *fake) Special(s int) uint16 { return f.now.special[s] }
func (f *fake) Scroll(int) int32     { return int32(f.tick * (unit + f.scroll)) }
func (f *fake) Carried(s, x, y int) (dx, dy int32) {
	// The sector's line is 64 units long, to the south.
	if f.special == 252 && s == 3 && x == 224 && y == 32 {
		return 0, int32(-2*unit + f.carry)
	}
	return int32(f.beside), 0
}
func (f *fake) Body() (x, y, turn int) { return f.body[0], f.body[1], f.body[2] }
func (f *fake) Exits() int             { return f.exit }
func (f *fake) Hurt(s, ticks int) int  { return map[int]int{3: 10 * (ticks / 32)}[s] + f.hurt }

func sweeps(t *testing.T, special uint16, is faults) Result {
	t.Helper()
	tag := map[uint16]uint16{133: 1, 97: 3, 39: 3, 125: 3, 244: 9}
	if tag[special] == 0 {
		tag[special] = 2
	}
	m := rooms(t, special, tag[special])
	if special == 244 {
		m.Lines[3].Tag = tag[special]
	}
	if special == 47 {
		m.Sectors[2].Tag, m.Sectors[3].Tag = 2, 0
	}
	r, err := Lines(m, func() (World, error) {
		return &fake{now: m.now(), faults: is, special: special,
			ways: map[*int64][]int64{}, cycle: map[*int64][]int64{}}, nil
	})
	require.NoError(t, err)
	return r
}

func TestAWorldThatIsRightIsFoundRight(t *testing.T) {
	for special := range knows {
		r := sweeps(t, special, faults{})
		assert.Empty(t, r.Wrong, "type %d", special)
		assert.Zero(t, r.Idle, "type %d", special)
		assert.Equal(t, map[string]int{string(rules[special].family): 1}, r.Lines)
	}
	assert.Equal(t, map[int]int{340: 1}, sweeps(t, 340, faults{}).Unknown)
	assert.Empty(t, sweeps(t, 53, faults{early: true}).Wrong, "it may begin with either way")
}

func TestEachFaultIsTold(t *testing.T) {
	for _, c := range []struct {
		special uint16
		is      faults
		said    string
	}{
		{1, faults{height: -1}, "sector 1: ceiling: tick 62: at 123, expected 124"},
		{1, faults{height: 1}, "ceiling"},
		{1, faults{wait: -10}, "moves after 140 ticks of standing, expected 150"},
		{1, faults{wait: 10}, "expected 122"},
		{1, faults{speed: 2}, "tick 1: at 4, expected 2"},
		{1, faults{stuck: true}, "tick 3: at 0, expected 2"},
		{1, faults{anySide: true}, "uses from the back with keys 000: nothing may happen"},
		{1, faults{anyKind: true}, "walks with keys 111: nothing may happen"},
		{1, faults{beside: 1}, "sector 4: floor at -31, expected -32"},
		{26, faults{anyKey: true}, "a player uses with keys 110: nothing may happen"},
		{26, faults{anyone: true}, "a monster uses with keys 111: nothing may happen"},
		{31, faults{height: 4}, "at 126, expected 124"},
		{133, faults{anyKey: true}, "with keys 110: nothing may happen"},
		{16, faults{wait: 100}, "expected 66"},
		{62, faults{height: 8}, "at -24, expected -28"},
		{62, faults{speed: 2}, "at 56, expected 60"},
		{58, faults{more: true}, "nothing may happen, but sector 3: floor at"},
		{31, faults{more: true}, "nothing may happen, but sector 1: ceiling at 8, expected 0"},
		{13, faults{more: true}, "nothing may happen, but sector 3: light 255, expected 112"},
		{62, faults{tired: true}, "sector 3: floor: tick 3: at 64, expected 60"},
		{92, faults{height: 1}, "at 89, expected 88"},
		{37, faults{keepsSpecial: true}, "sector 3: special 5, expected 8"},
		{47, faults{speed: 2}, "at 1, expected 0.5"},
		{47, faults{anyKind: true}, "a player walks with keys 111: nothing may happen"},
		{53, faults{height: -1}, "at"},
		{53, faults{wait: 30}, "at"},
		{53, faults{stuck: true}, "expected"},
		{25, faults{height: -8}, "at 71, expected 73"},
		{25, faults{stuck: true}, "at 128, expected 127"},
		{97, faults{elsewhere: true}, "it is at (32, 32), expected (288, 32)"},
		{97, faults{turn: 180}, "it looks at 270 degrees, expected 90"},
		{97, faults{anySide: true}, "it was teleported"},
		{39, faults{more: true}, "it was teleported"},
		{125, faults{anyone: true}, "keys 111: nothing may happen, but it was teleported"},
		{11, faults{exits: -1}, "0 exits were taken"},
		{11, faults{anySide: true}, "an exit was taken"},
		{13, faults{light: -1}, "light 254, expected 255"},
		{48, faults{scroll: 1}, "in 10 ticks, expected 10"},
		{244, faults{elsewhere: true}, "it is at (254, 16), expected (256, 32)"},
		{244, faults{behind: true}, "it is at (258, 32), behind the line"},
		{244, faults{turn: 30}, "it looks at 210 degrees, expected 180"},
		{244, faults{anySide: true}, "it was teleported"},
		{244, faults{tired: true}, "it is at (32, 32), expected (256, 32)"},
		{252, faults{carry: 1}, "sector 3 carries (0, -1.9"},
		{252, faults{beside: unit}, "sector 0 carries (1, 0) units a tick, expected (0, 0)"},
	} {
		r := sweeps(t, c.special, c.is)
		if assert.Len(t, r.Wrong, 1, "type %d %+v", c.special, c.is) {
			assert.Contains(t, r.Wrong[0], c.said)
		}
		assert.Empty(t, r.Lines)
	}
}

func TestSectorsAreWatched(t *testing.T) {
	m := rooms(t, 0, 0)
	watch := func(is faults) Result {
		r, err := Sectors(m, func() (World, error) { return &fake{now: m.now(), faults: is}, nil })
		require.NoError(t, err)
		return r
	}
	m.Sectors[4].Special = 0
	r := watch(faults{})
	assert.Equal(t, 1, r.Sectors)
	assert.Empty(t, r.Wrong)
	assert.Equal(t, []string{"sector 3, special 5: takes 21 health in 64 ticks, expected 20"},
		watch(faults{hurt: 1}).Wrong)
	m.Sectors[4].Special, m.Sectors[3].Light = 8, 40
	assert.Contains(t, watch(faults{dark: true}).Wrong[0], "special 8: tick 1: light 77, expected 72")
	assert.Contains(t, watch(faults{}).Wrong[0], "sector 4, special 8: tick 1: light 80, expected 72")
}

// lights returns the levels of a light by tick, from pairs of a level and its duration.
func lights(pairs ...int) (seen []int) {
	for i := 0; len(seen) < watched; i = (i + 2) % len(pairs) {
		seen = append(seen, slices.Repeat(pairs[i:i+1], pairs[i+1])...)
	}
	return seen[:watched]
}

func TestLights(t *testing.T) {
	n := rooms(t, 0, 0).now() // room 3 has 112, and the darkest around it is 80
	glow := lights(104, 1, 96, 1, 88, 2, 96, 1, 104, 1)
	n.lights[2] = n.lights[3] // so that no neighbour is darker
	for _, c := range []struct {
		special uint16
		sector  int
		seen    []int
		right   bool
	}{
		{1, 3, lights(112, 1, 80, 3, 112, 65, 80, 8), true},
		{1, 3, lights(112, 1, 80, 9), false},
		{1, 3, lights(112, 1, 79, 3), false},
		{1, 3, lights(112, watched), false},
		{2, 3, lights(112, 5, 80, 15), true},
		{2, 3, lights(112, 6, 80, 15), false},
		{2, 3, lights(112, 5, 80, 14), false},
		{4, 3, lights(112, 5, 80, 35), false},
		{3, 3, lights(112, 5, 80, 35), true},
		{12, 3, lights(112, 5, 80, 35), false},
		{12, 3, lights(80, 35, 112, 5), true},
		{13, 2, lights(0, 15, 112, 5), true},
		{13, 2, lights(112, 5, 0, 15), false},
		{8, 3, glow, true},
		{8, 3, lights(112, 1, 104, 1), false},
		{8, 3, lights(112, 2, 104, 2), false},
		{17, 3, lights(112, 4, 96, 4, 96, 4), true},
		{17, 3, lights(112, 4, 80, 4), false},
		{17, 3, lights(112, 3, 96, 4), false},
		{17, 3, lights(112, watched), false},
	} {
		said := n.light(c.sector, c.special, c.seen)
		assert.Equal(t, c.right, said == "", "special %d: %v...: %s", c.special, c.seen[:40], said)
	}
	assert.Equal(t, uint16(13), lightOf(77))
	assert.Equal(t, 10, harmOf(77))
	assert.Equal(t, []int{20, 10, 5, 20, 20, 0},
		[]int{harmOf(4), harmOf(5), harmOf(7), harmOf(11), harmOf(16), harmOf(9)})
}

// The table has each number of the game's sources, except those that no map here has.
func TestTableIsWhole(t *testing.T) {
	missing := []uint16{17, 30, 54, 78, 89, 96} // strobes; shortest textures; a lift that stops
	for special := uint16(1); special <= 141; special++ {
		_, known := rules[special]
		assert.Equal(t, !slices.Contains(missing, special), known, "type %d", special)
	}
	for _, special := range []uint16{244, 252} { // Boom's types in the maps here
		_, known := rules[special]
		assert.True(t, known, "type %d", special)
	}
	lift, known := ruleOf(13331)
	assert.True(t, known && lift.kind == Use && lift.again && lift.family == "lift")
	door, known := ruleOf(15889)
	assert.True(t, known && door.kind == Walk && door.again && door.family == "door")
}
