package game

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/scope/flow/source"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom/doomtest"
)

// strip loads a map of rooms in a row from west to east, each 128 by 128 units. The line between
// two rooms has its front in the western one. A player stands in the middle of the first room.
// things are pairs of a room and a kind.
func strip(t *testing.T, rooms []room, lines []special, things ...int) (*World, *Player) {
	t.Helper()
	s := stripServer(t, rooms, lines, things...)
	g, err := s.start(t, s.Maps[0], 1)
	require.NoError(t, err)
	g.Level.World.script.runner.Begin()
	return g.Level.World, g.Level.Players.At(0)
}

// stripServer returns a server with only the map of strip.
func stripServer(t testing.TB, rooms []room, lines []special, things ...int) *Server {
	t.Helper()
	var vertexes, sides, linedefs, sectors []byte
	add := func(to *[]byte, values ...int) { *to = append(*to, doomtest.Row(values...)...) }
	vertex, count := 0, 0
	line := func(x1, y1, x2, y2, front, back int, s special) {
		add(&vertexes, x1, y1, x2, y2)
		flags, left := 1, 0xffff
		add(&sides, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, front)
		count++
		right := count - 1
		if back >= 0 {
			add(&sides, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, back)
			flags, left = doom.TwoSided, count
			count++
		}
		add(&linedefs, vertex, vertex+1, flags, s.kind, s.tag, right, left)
		vertex += 2
	}
	const u = 128
	for i := range len(rooms) - 1 { // first, so that line i is between rooms i and i+1
		s := special{}
		if i < len(lines) {
			s = lines[i]
		}
		line((i+1)*u, u, (i+1)*u, 0, i, i+1, s)
	}
	for i, r := range rooms {
		line(i*u, u, (i+1)*u, u, i, -1, special{})
		line((i+1)*u, 0, i*u, 0, i, -1, special{})
		add(&sectors, r.floor, r.ceiling, int('A')+r.flat, 0, 0, 0, 0, 0, 0, 0, r.light, r.special, r.tag)
	}
	line(0, 0, 0, u, 0, -1, special{})
	line(len(rooms)*u, u, len(rooms)*u, 0, len(rooms)-1, -1, special{})
	all := []int{u / 2, u / 2, 0, 1, 7}
	for i := 0; i < len(things); i += 2 {
		all = append(all, things[i]*u+u/2, u/2, 90, things[i+1], 7)
	}
	doomtest.Write(t, "strip.wad", doom.MakeWAD([]doom.Lump{{Name: "MAP01"},
		{Name: "THINGS", Data: doomtest.Row(all...)}, {Name: "LINEDEFS", Data: linedefs},
		{Name: "SIDEDEFS", Data: sides}, {Name: "VERTEXES", Data: vertexes}, {Name: "SECTORS", Data: sectors}}))
	small := plan
	small.GoHeap = 0 // several budgets are open at a time
	return openWith(t, small, "strip.wad")
}

type room struct{ floor, ceiling, light, special, tag, flat int }

type special struct{ kind, tag int }

// fireAs triggers the line between room i and the next, from the west.
func (w *World) fireAs(p *Player, i int) bool {
	by := doom.SpecialOf(w.Lines[i].Special).Trigger
	if by == doom.Pushed {
		by = doom.Used
	}
	return w.fire(uint16(i), by, true, activator{is: doom.Players, player: p})
}

func (w *World) ticks(n int) {
	for range n {
		w.run()
	}
}

func units(v int) int32 { return int32(v) << doom.UnitBits }

// until returns the number of ticks until a height is v units, or -1.
func (w *World) until(height *int32, v int) int {
	for n := range 3000 {
		if *height == units(v) {
			return n
		}
		w.run()
	}
	return -1
}

func TestDoors(t *testing.T) {
	closed := []room{{0, 128, 0, 0, 0, 0}, {0, 0, 0, 0, 1, 0}, {0, 96, 0, 0, 0, 0}}
	t.Run("raise", func(t *testing.T) {
		w, p := strip(t, closed, []special{{1, 0}})
		c := &w.Sectors[1].Ceiling
		require.True(t, w.fireAs(p, 0))
		assert.Equal(t, 46, w.until(c, 92), "2 units a tick, to 4 below the lower neighbour")
		w.ticks(1 + 149)
		assert.Equal(t, units(92), *c, "it waits")
		assert.Equal(t, 47, w.until(c, 0), "and closes")
		w.ticks(2)
		assert.Zero(t, w.movers.Live())
		require.True(t, w.fireAs(p, 0), "again")
		w.ticks(10)
		require.True(t, w.fireAs(p, 0), "it turns")
		assert.Equal(t, 10, w.until(c, 0))
		w.ticks(2)
		require.True(t, w.fireAs(p, 0))
		w.ticks(10)
		monster := activator{is: doom.Monsters}
		assert.False(t, w.fire(0, doom.Used, true, monster), "no monster closes a door")
		require.True(t, w.fireAs(p, 0))
		assert.True(t, w.fire(0, doom.Used, true, monster), "but opens one")
		assert.False(t, w.fire(0, doom.Used, false, monster), "from the front")
	})
	t.Run("blazing", func(t *testing.T) {
		w, p := strip(t, closed, []special{{117, 0}})
		require.True(t, w.fireAs(p, 0))
		assert.Equal(t, 12, w.until(&w.Sectors[1].Ceiling, 92))
	})
	t.Run("once", func(t *testing.T) {
		w, p := strip(t, closed, []special{{2, 1}})
		require.True(t, w.fireAs(p, 0))
		assert.Equal(t, 46, w.until(&w.Sectors[1].Ceiling, 92))
		w.ticks(500)
		assert.Equal(t, units(92), w.Sectors[1].Ceiling, "it stays open")
		assert.False(t, w.fireAs(p, 0))
	})
	t.Run("close, wait, open", func(t *testing.T) {
		w, p := strip(t, []room{{0, 128, 0, 0, 0, 0}, {0, 128, 0, 0, 1, 0}}, []special{{16, 1}})
		c := &w.Sectors[1].Ceiling
		require.True(t, w.fireAs(p, 0))
		assert.Equal(t, 64, w.until(c, 0))
		w.ticks(1 + 30*35)
		assert.Equal(t, 64, w.until(c, 128))
	})
	t.Run("locked", func(t *testing.T) {
		w, p := strip(t, closed, []special{{28, 0}}, 1, 38)
		assert.False(t, w.fireAs(p, 0), "without a key")
		p.At = w.keys[0].At
		w.ticks(1)
		assert.Equal(t, uint32(doom.Red), p.Keys)
		assert.True(t, w.fireAs(p, 0))
	})
	t.Run("locked switch", func(t *testing.T) {
		w, p := strip(t, closed, []special{{133, 1}})
		p.Keys = uint32(doom.Red | doom.Yellow)
		assert.False(t, w.fireAs(p, 0))
		p.Keys = uint32(doom.Blue)
		assert.True(t, w.fireAs(p, 0))
	})
	t.Run("shot", func(t *testing.T) {
		w, p := strip(t, closed, []special{{46, 1}})
		assert.False(t, w.fire(0, doom.Used, true, activator{is: doom.Players, player: p}))
		assert.True(t, w.fireAs(p, 0))
	})
	t.Run("somebody in it", func(t *testing.T) {
		w, p := strip(t, closed, []special{{1, 0}})
		c := &w.Sectors[1].Ceiling
		require.True(t, w.fireAs(p, 0))
		w.until(c, 92)
		p.At.X, p.Sector = units(192), 1
		w.ticks(1 + 150 + 20)
		assert.Greater(t, *c, units(56), "it turned when it touched the head")
		assert.Equal(t, int32(fullHealth), p.Health)
		w.until(c, 92)
		p.At.X = units(120) // the middle is outside, an edge is inside
		p.Sector = 0
		w.ticks(1 + 150 + 20)
		assert.Greater(t, *c, units(56))
	})
	t.Run("by the clock", func(t *testing.T) {
		w, _ := strip(t, []room{{0, 128, 0, 0, 0, 0}, {0, 100, 0, 10, 0, 0}, {0, 0, 0, 14, 0, 0}}, nil)
		w.ticks(30*35 - 1)
		assert.Equal(t, units(100), w.Sectors[1].Ceiling)
		assert.Equal(t, 51, w.until(&w.Sectors[1].Ceiling, 0))
		w.ticks(5*60*35 - 30*35 - 51)
		assert.Zero(t, w.Sectors[2].Ceiling)
		w.ticks(2)
		assert.Positive(t, w.Sectors[2].Ceiling)
	})
}

func TestFloors(t *testing.T) {
	rooms := []room{{0, 128, 0, 0, 0, 0}, {40, 200, 0, 7, 1, 0}, {64, 128, 0, 0, 0, 2}, {16, 96, 0, 5, 1, 3}}
	for _, c := range []struct {
		kind, goal, ticks int // of room 1
	}{
		{5, 128, 88}, {56, 120, 80}, {19, 64, 1}, {38, 0, 40}, {119, 64, 24}, {130, 64, 6}, {58, 64, 24},
		{59, 64, 24}, {22, 64, 48}, {15, 64, 48}, {14, 72, 64}, {140, 200, 160}, {36, 72, 1},
	} {
		t.Run(fmt.Sprint("type ", c.kind), func(t *testing.T) {
			w, p := strip(t, rooms, []special{{c.kind, 1}})
			require.True(t, w.fireAs(p, 0))
			assert.Equal(t, c.ticks, w.until(&w.Sectors[1].Floor, c.goal))
			w.ticks(20)
			assert.Equal(t, units(c.goal), w.Sectors[1].Floor, "it stays")
		})
	}
	t.Run("all with the tag", func(t *testing.T) {
		w, p := strip(t, rooms, []special{{23, 1}})
		require.True(t, w.fireAs(p, 0))
		w.ticks(100)
		assert.Equal(t, []int32{0, 0, units(64), units(16)}, []int32{w.Sectors[0].Floor, w.Sectors[1].Floor,
			w.Sectors[2].Floor, w.Sectors[3].Floor})
	})
	t.Run("changes", func(t *testing.T) {
		w, p := strip(t, rooms, []special{{37, 1}})
		require.True(t, w.fireAs(p, 0))
		w.ticks(20)
		assert.Equal(t, uint16(7), w.Sectors[1].Special, "not before it is there")
		w.ticks(30)
		assert.Zero(t, w.Sectors[1].Special)
		w, p = strip(t, rooms, []special{{22, 1}})
		require.True(t, w.fireAs(p, 0))
		assert.Zero(t, w.Sectors[1].Special, "at once")
	})
	t.Run("lifted, and stopped below the ceiling", func(t *testing.T) {
		w, p := strip(t, rooms, []special{{5, 1}})
		w.Sectors[1].Special = 0
		w.Sectors[1].Ceiling = units(110)
		p.At.X, p.Sector = units(192), 1
		require.True(t, w.fireAs(p, 0))
		w.ticks(200)
		assert.Equal(t, units(110-56), w.Sectors[1].Floor)
		assert.Equal(t, int32(fullHealth), p.Health)
	})
	t.Run("crushed", func(t *testing.T) {
		w, p := strip(t, rooms, []special{{56, 1}})
		w.Sectors[1].Special = 0
		p.At.X, p.Sector = units(192), 1
		w.Sectors[1].Ceiling = units(110)
		require.True(t, w.fireAs(p, 0))
		w.ticks(40)
		assert.Less(t, p.Health, int32(fullHealth))
		assert.Greater(t, w.Sectors[1].Floor, units(110-56))
	})
	t.Run("donut", func(t *testing.T) {
		w, p := strip(t, []room{{64, 128, 0, 0, 1, 0}, {-8, 128, 0, 7, 0, 1}, {16, 128, 0, 0, 0, 2}}, []special{{9, 1}})
		require.True(t, w.fireAs(p, 0))
		w.ticks(100)
		assert.Equal(t, []int32{units(16), units(16)}, []int32{w.Sectors[0].Floor, w.Sectors[1].Floor})
		assert.Equal(t, w.Sectors[2].Flat, w.Sectors[1].Flat)
		assert.Zero(t, w.Sectors[1].Special)
	})
}

func TestCeilings(t *testing.T) {
	w, p := strip(t, []room{{0, 128, 0, 0, 0, 0}, {8, 64, 0, 0, 1, 0}}, []special{{40, 1}})
	require.True(t, w.fireAs(p, 0))
	assert.Equal(t, 64, w.until(&w.Sectors[1].Ceiling, 128))
	assert.Equal(t, units(8), w.Sectors[1].Floor)
	w, p = strip(t, []room{{0, 128, 0, 0, 0, 0}, {8, 64, 0, 0, 1, 0}}, []special{{44, 1}})
	require.True(t, w.fireAs(p, 0))
	assert.Equal(t, 48, w.until(&w.Sectors[1].Ceiling, 16))
}

func TestCrushers(t *testing.T) {
	rooms := []room{{0, 128, 0, 0, 0, 0}, {0, 108, 0, 0, 1, 0}, {0, 128, 0, 0, 0, 0}}
	w, p := strip(t, rooms, []special{{73, 1}, {74, 1}})
	c := &w.Sectors[1].Ceiling
	require.True(t, w.fireAs(p, 0))
	assert.Equal(t, 100, w.until(c, 8))
	w.ticks(1)
	assert.Equal(t, 100, w.until(c, 108))
	w.ticks(11)
	assert.False(t, w.fireAs(p, 0), "it runs")
	require.True(t, w.fireAs(p, 1))
	w.ticks(50)
	assert.Equal(t, units(98), *c)
	require.True(t, w.fireAs(p, 0), "and goes on")
	p.At.X, p.Sector = units(192), 1
	w.ticks(43)
	before := *c
	w.ticks(8)
	assert.Equal(t, before-units(1), *c, "an eighth of its speed")
	assert.Less(t, p.Health, int32(fullHealth))
	w, p = strip(t, rooms, []special{{77, 1}})
	require.True(t, w.fireAs(p, 0))
	assert.Equal(t, 50, w.until(&w.Sectors[1].Ceiling, 8))
}

func TestLifts(t *testing.T) {
	rooms := []room{{0, 128, 0, 0, 0, 0}, {64, 256, 0, 0, 1, 0}, {96, 256, 0, 0, 0, 0}}
	w, p := strip(t, rooms, []special{{62, 1}})
	c := &w.Sectors[1].Floor
	require.True(t, w.fireAs(p, 0))
	assert.False(t, w.fireAs(p, 0), "it is on its way")
	assert.Equal(t, 16, w.until(c, 0))
	w.ticks(1 + 104)
	assert.Zero(t, *c)
	assert.Equal(t, 17, w.until(c, 64))
	w.ticks(1)
	assert.Zero(t, w.movers.Live())

	w, p = strip(t, rooms, []special{{87, 1}, {89, 1}})
	c = &w.Sectors[1].Floor
	require.True(t, w.fireAs(p, 0))
	require.NotEqual(t, -1, w.until(c, 96))
	assert.Equal(t, 1+104+1+96, w.until(c, 0)+w.stopAndGo(t, p), "up and down, and nothing while it is stopped")
	require.NotEqual(t, -1, w.until(c, 96), "for ever")
	w.ticks(50)
	w.stopAndGo(t, p)
	assert.Equal(t, 105-49+96, w.until(c, 0), "it waits on where it was stopped while it waited")
}

// stopAndGo stops a lift by line 1, checks that it rests, and restarts it by line 0. It returns the
// ticks that the lift moved meanwhile: 0.
func (w *World) stopAndGo(t *testing.T, p *Player) int {
	t.Helper()
	require.True(t, w.fireAs(p, 1))
	at := w.Sectors[1].Floor
	w.ticks(50)
	assert.Equal(t, at, w.Sectors[1].Floor)
	require.True(t, w.fireAs(p, 0))
	return 0
}

// TestPushedLifts checks Boom's lifts, which move the sector behind the line for any tag.
func TestPushedLifts(t *testing.T) {
	const pushed, perpetual = 0x3400 | 7, 3 << 8
	rooms := []room{{0, 128, 0, 0, 1, 0}, {64, 256, 0, 0, 0, 0}, {96, 256, 0, 0, 1, 0}}
	w, p := strip(t, rooms, []special{{pushed, 1}})
	require.True(t, w.fireAs(p, 0))
	assert.Equal(t, 32, w.until(&w.Sectors[1].Floor, 0), "2 units a tick")
	assert.Equal(t, 1, w.movers.Live())
	w, p = strip(t, rooms, []special{{pushed | perpetual, 1}})
	require.True(t, w.fireAs(p, 0))
	assert.NotEqual(t, -1, w.until(&w.Sectors[1].Floor, 0))
	assert.NotEqual(t, -1, w.until(&w.Sectors[1].Floor, 96))
}

func TestStairs(t *testing.T) {
	w, p := strip(t, []room{{0, 128, 0, 0, 0, 0}, {0, 128, 0, 0, 1, 1}, {0, 128, 0, 0, 0, 1}, {0, 128, 0, 0, 0, 1},
		{0, 128, 0, 0, 0, 0}}, []special{{8, 1}})
	require.True(t, w.fireAs(p, 0))
	assert.Equal(t, 4*24, w.until(&w.Sectors[3].Floor, 24))
	w.ticks(2)
	assert.Equal(t, []int32{units(8), units(16), 0}, []int32{w.Sectors[1].Floor, w.Sectors[2].Floor,
		w.Sectors[4].Floor})
	assert.Zero(t, w.movers.Live())
}

func TestTeleports(t *testing.T) {
	rooms := []room{{0, 128, 0, 0, 0, 0}, {0, 128, 0, 0, 0, 0}, {0, 128, 0, 0, 1, 0}}
	w, p := strip(t, rooms, []special{{97, 1}}, 2, landingThing)
	landing := doom.Point{X: units(2*128 + 64), Y: units(64)}
	from := doom.Point{X: units(132), Y: units(64)}
	p.At = from.Step(8, 8)
	who := activator{is: doom.Players, player: p}
	assert.False(t, w.moved(who, from, p.At, &p.Sector), "from behind")
	from, p.At = p.At, from
	require.True(t, w.moved(who, from, p.At, &p.Sector))
	assert.Equal(t, []any{landing, uint16(2), uint32(4)}, []any{p.At, p.Sector, p.Heading})

	w, p = strip(t, rooms, []special{{126, 1}}, 2, landingThing)
	assert.False(t, w.fireAs(p, 0), "of monsters alone")
	f, _ := w.Frogs.get()
	*f = Frog{At: doom.Point{X: units(132), Y: units(64)}}
	require.True(t, w.moved(activator{is: doom.Monsters, frog: f}, doom.Point{X: units(124), Y: units(64)}, f.At,
		&f.Sector))
	assert.Equal(t, landing, f.At)

	w, p = strip(t, rooms, []special{{244, 5}, {0, 5}})
	p.At = doom.Point{X: units(132), Y: units(40)}
	require.True(t, w.moved(activator{is: doom.Players, player: p}, doom.Point{X: units(124), Y: units(40)}, p.At,
		&p.Sector))
	assert.Equal(t, uint16(1), p.Sector, "before the other line's front")
	assert.Equal(t, doom.Point{X: units(256 - 2), Y: units(128 - 40)}, p.At)
}

func TestExits(t *testing.T) {
	w, p := strip(t, []room{{0, 128, 0, 0, 0, 0}, {0, 128, 0, 0, 0, 0}}, []special{{52, 0}})
	start := p.At
	p.At = doom.Point{X: units(132), Y: units(64)}
	require.True(t, w.moved(activator{is: doom.Players, player: p}, doom.Point{X: units(124), Y: units(64)}, p.At,
		&p.Sector))
	assert.Equal(t, []any{start, uint16(0), uint32(1)}, []any{p.At, p.Sector, p.Exits})
	assert.False(t, w.fire(0, doom.Walked, true, activator{is: doom.Monsters}))
}

func TestLights(t *testing.T) {
	rooms := []room{{0, 128, 96, 0, 0, 0}, {0, 128, 160, 0, 1, 0}, {0, 128, 200, 0, 0, 0}}
	for kind, want := range map[int]int16{12: 200, 13: 255, 35: 35, 104: 96} {
		t.Run(fmt.Sprint("type ", kind), func(t *testing.T) {
			w, p := strip(t, rooms, []special{{kind, 1}})
			require.True(t, w.fireAs(p, 0))
			assert.Equal(t, want, w.Sectors[1].Light)
		})
	}
	levels := func(kind, ticks int) map[int16]int {
		seen := map[int16]int{}
		t.Run(fmt.Sprint("special ", kind), func(t *testing.T) { // its budget and files end with it
			rooms[1].special = kind
			w, _ := strip(t, rooms, nil)
			for range ticks {
				w.run()
				seen[w.Sectors[1].Light]++
			}
		})
		return seen
	}
	assert.Equal(t, map[int16]int{96: 350, 160: 50}, levels(12, 400), "5 ticks on, 35 off")
	assert.Equal(t, map[int16]int{96: 300, 160: 100}, levels(13, 400), "5 ticks on, 15 off")
	for _, kind := range []int{1, 2, 3, 17} {
		seen := levels(kind, 2000)
		assert.Greater(t, len(seen), 1, kind)
		for level := range seen {
			assert.True(t, 96 <= level && level <= 160, "special %d: %d", kind, level)
		}
	}
	glow := levels(8, 400)
	assert.Len(t, glow, 7, "8 brighter or darker in each tick")
	w, p := strip(t, []room{{0, 128, 96, 0, 0, 0}, {0, 128, 160, 0, 1, 0}}, []special{{17, 1}})
	require.True(t, w.fireAs(p, 0))
	w.ticks(50)
	assert.Len(t, w.lights, 1)
	w, p = strip(t, []room{{0, 128, 96, 0, 0, 0}, {0, 128, 160, 0, 1, 0}, {0, 128, 160, 0, 0, 0}},
		[]special{{17, 0}, {17, 1}})
	require.True(t, w.fireAs(p, 0), "those without a tag, too")
	require.True(t, w.fireAs(p, 1))
	assert.Len(t, w.lights, 3)
}

// TestMoversOfDoorsAndStairs checks that the pool has a mover for each door and stair while all
// others move.
func TestMoversOfDoorsAndStairs(t *testing.T) {
	w, p := strip(t, []room{{0, 128, 0, 0, 0, 0}, {0, 128, 0, 0, 1, 0}, {0, 0, 0, 0, 0, 0},
		{0, 0, 0, 0, 0, 0}, {0, 128, 0, 0, 0, 1}}, []special{{7, 1}, {1, 0}, {1, 0}})
	for i := range 3 {
		require.True(t, w.fireAs(p, i))
	}
	assert.Equal(t, 2+2+2, w.movers.Cap(), "two doors, both planes with the tag, two more steps")
	assert.Equal(t, 2+3, w.movers.Live())
	assert.Zero(t, w.Room.Refused)
}

func TestScrolls(t *testing.T) {
	w, _ := strip(t, []room{{0, 128, 0, 0, 0, 0}, {0, 128, 0, 0, 1, 0}}, []special{{48, 0}})
	w.ticks(10)
	assert.Equal(t, int32(10), w.scrolls[0].Offset)
	w, p := strip(t, []room{{0, 128, 0, 0, 0, 0}, {0, 128, 0, 0, 1, 0}}, []special{{252, 1}})
	p.At, p.Sector = doom.Point{X: units(192), Y: units(100)}, 1
	w.ticks(10)
	assert.Equal(t, units(60), p.At.Y, "a 32nd of the line's length in each tick")
}

// TestNobodyPassesAWall checks a frog that touches a wall, as next to a raised lift, and a body
// that a floor carries further in a tick than its width.
func TestNobodyPassesAWall(t *testing.T) {
	w, _ := strip(t, []room{{0, 128, 0, 0, 0, 0}, {64, 128, 0, 0, 0, 0}, {0, 128, 0, 0, 0, 0}}, nil)
	for _, x := range []int{120, 121, 127, 128} {
		from := doom.Point{X: units(x), Y: units(64)}
		assert.True(t, w.stopped(from, from.Step(0, hopLength), &frogBody), x)
		assert.False(t, w.stopped(from, from.Step(8, hopLength), &frogBody), x)
		assert.False(t, w.stopped(from.Step(0, 128), from.Step(0, 130), &frogBody), "down")
	}
	w, p := strip(t, []room{{0, 128, 0, 0, 1, 0}, {64, 128, 0, 0, 0, 0}, {0, 128, 0, 0, 0, 0}}, nil)
	w.carries = []carry{{Sector: 0, Step: doom.Point{X: units(200)}}}
	w.ticks(1)
	assert.Equal(t, units(64), p.At.X)
	w.carries[0].Step.X = units(40)
	w.ticks(1)
	assert.Equal(t, units(104), p.At.X)
}

// TestFrogsPush checks that a door that stops a frog opens, if monsters may open it. A switch
// doesn't react.
func TestFrogsPush(t *testing.T) {
	for kind, opens := range map[int]bool{1: true, 26: false, 31: false} {
		w, _ := strip(t, []room{{0, 128, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}}, []special{{kind, 0}})
		f, i := w.Frogs.get()
		*f = Frog{At: doom.Point{X: units(120), Y: units(64)}, Hop: 3}
		g := &Game{Level: w.Level, frogCommands: make([]frogCommand, i+1)}
		c := &g.frogCommands[i]
		c.Live, c.Next = true, *f
		g.hop(i, c)
		assert.Zero(t, c.Next.Hop, "the door stops it")
		g.applyFrog(i)
		assert.Equal(t, opens, w.Room.Fired == 1, kind)
	}
}

func TestHarm(t *testing.T) {
	w, p := strip(t, []room{{0, 128, 0, 5, 0, 0}, {0, 128, 0, 9, 0, 0}}, nil)
	w.ticks(33)
	assert.Equal(t, int32(80), p.Health, "10 each 32 ticks")
	w.ticks(8 * 32)
	assert.Equal(t, []any{int32(fullHealth), uint32(1)}, []any{p.Health, p.Deaths})
	p.Sector = 1
	w.ticks(2)
	assert.Equal(t, uint32(1), p.Secrets, "once")
	w, p = strip(t, []room{{0, 128, 0, 11, 0, 0}}, nil)
	w.ticks(4 * 32)
	assert.Equal(t, []any{int32(20), uint32(0)}, []any{p.Health, p.Exits})
	w.ticks(1)
	assert.Equal(t, []any{uint32(0), uint32(1)}, []any{p.Deaths, p.Exits}, "who is nearly dead leaves")
}

// TestNowhere checks that a line with a tag that no sector has is counted.
func TestNowhere(t *testing.T) {
	w, p := strip(t, []room{{0, 128, 0, 0, 0, 0}, {0, 128, 0, 0, 0, 0}}, []special{{2, 9}})
	assert.False(t, w.fireAs(p, 0))
	assert.Equal(t, uint32(1), w.Room.Nowhere)
}

// TestEveryAction makes a graph of lines with each possible pair of trigger and action.
func TestEveryAction(t *testing.T) {
	var lines []special
	var seen [doom.Pushed + 1][doom.CarryFloor + 1]bool
	for kind := range 1 << 16 {
		s := doom.SpecialOf(uint16(kind))
		if known := &seen[s.Trigger][s.Action]; s.Action != doom.NoAction && !*known {
			*known = true
			lines = append(lines, special{kind, 1})
		}
	}
	w, p := strip(t, slices.Repeat([]room{{0, 128, 0, 0, 1, 0}}, len(lines)+1), lines)
	for i := range lines {
		for by := doom.Walked; by <= doom.Shot; by++ {
			w.fire(uint16(i), by, true, activator{is: doom.Players, player: p})
		}
	}
	w.ticks(9)
	assert.Zero(t, w.Room.Errors)
}

// TestGraphsExport checks that the JSON of each map's graph compiles to the same blob.
func TestGraphsExport(t *testing.T) {
	for _, s := range eachServer(t) {
		for _, m := range s.some() {
			level, err := s.Load(t.Context(), m, 0)
			require.NoError(t, err)
			want, _, err := flow.Compile(level.Graph(), Vocabulary())
			require.NoError(t, err)
			got, _, err := source.Compile(m.Name, source.Write(level.World.Script()), Vocabulary())
			require.NoError(t, err)
			require.Equal(t, want, got, m.Name)
			require.NoError(t, s.Budget.Region("level").Rewind(t.Context()))
		}
	}
}
