package game

import (
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Frog is a frog of the level's pool.
type Frog struct {
	At        doom.Point
	Sightings uint32 // of players, so far
	Sector    uint16
	Life      uint16 // ticks left
	Hop, Rest uint8  // ticks left
	Heading   uint8  // one of 16 directions
	_         [5]byte
}

// frogCommand is a frog's change in this tick. Workers write commands in parallel, each for its own
// frogs. Later, one goroutine applies them all.
type frogCommand struct {
	Next  Frog
	Live  bool
	Dies  bool
	Croak bool
	Push  bool // uses the obstacle
}

// Choice is the next action of a waiting frog, if the program chooses it instead of the frog.
type Choice struct {
	Made    bool  // false: the frog chooses by itself
	Heading uint8 // one of 16 directions
	Hop     uint8 // ticks
	Rest    uint8 // ticks, after the hop
	Croak   bool
}

// Waits reports whether the frog chooses its next action in the next tick.
func (f *Frog) Waits() bool { return f.Hop == 0 && f.Rest == 0 }

const (
	hopLength   = 10  // units a tick
	pushLength  = 24  // units that a frog reaches
	frogSight   = 512 // units
	frogHearing = 256
	frogSpace   = 8
)

func (g *Game) decideFrog(w *worker, i int) {
	f := g.Level.Frogs.At(i)
	if f == nil {
		return
	}
	c := &g.frogCommands[i]
	c.Live, c.Next = true, *f
	n := &c.Next
	n.Life--
	switch {
	case n.Life == 0:
		c.Dies = true
	case n.Hop > 0:
		n.Hop--
		g.hop(i, c)
	case n.Rest > 0:
		n.Rest--
	case i < len(g.Choices) && g.Choices[i].Made:
		c.take(g.Choices[i])
	default:
		g.chooseHop(w, i, c)
	}
}

func (c *frogCommand) take(chosen Choice) {
	c.Next.Heading, c.Next.Hop, c.Next.Rest = chosen.Heading&15, chosen.Hop, chosen.Rest
	c.Croak = chosen.Croak
}

// hop moves a frog by a tick. A line or another frog in the way ends the hop. The frog then pushes
// the line, as monsters do.
func (g *Game) hop(i int, c *frogCommand) {
	f := &c.Next
	to := f.At.Step(uint32(f.Heading), hopLength)
	c.Push = g.Level.stopped(f.At, to, &frogBody)
	if c.Push || g.Level.crowded(i, f.At, to) {
		f.Hop = 0
		return
	}
	f.At = to
}

// chooseHop turns a frog away from the nearest player that it sees. If it sees no player, it turns
// toward a croak of the last tick, or else in a random direction.
func (g *Game) chooseHop(w *worker, i int, c *frogCommand) {
	f := &c.Next
	room := g.Level.Room
	r := doom.Random(room.Seed^0xf209, room.Tick, uint32(i))
	f.Hop, f.Rest = 4+uint8(r%8), 8+uint8(r>>8%24)
	f.Heading = uint8(r >> 16 & 15)
	c.Croak = r>>24%8 == 0

	seen := w.scratches[0].Open("players that a frog sees")
	defer w.close(seen)
	players := g.playersSeen(w, seen, f.At)
	f.Sightings += uint32(len(players))
	if len(players) > 0 {
		away := f.At.Toward(nearest(f.At, players)) + 7 + uint32(f.Heading)%3 // about opposite
		f.Heading = uint8(away & 15)
		return
	}
	own := g.Level.Frogs.handles[i]
	for k := g.hearing; k < room.Heard; k++ { // events of the last tick
		e := &g.Level.events[k%eventsLength]
		if e.Kind == croaked && e.Frog != own && e.At.Near(f.At, frogHearing) {
			f.Heading = uint8(f.At.Toward(e.At))
			return
		}
	}
}

// playersSeen lists the positions of the players in sight of a point, in the scope result. The
// queries use the worker's other scratch arena.
func (g *Game) playersSeen(w *worker, result scope.Scope, from doom.Point) []doom.Point {
	list := pointMaker.TrySlice(result, g.Level.Players.Cap())
	n := 0
	scratch := w.scratches[1].Open("sight")
	defer w.close(scratch)
	for i := range list {
		p := g.Level.Player(i)
		if p != nil && p.At.Near(from, frogSight) && w.sees(g.Level, scratch, from, p.At, &frogBody, &playerBody) {
			list[n] = p.At
			n++
		}
	}
	return list[:n]
}

// nearest returns the point of a list that is nearest to p: the first of several.
func nearest(p doom.Point, list []doom.Point) doom.Point {
	best, least := list[0], int64(1<<62)
	for _, q := range list {
		dx, dy := (int64(p.X)-int64(q.X))>>8, (int64(p.Y)-int64(q.Y))>>8
		if d := dx*dx + dy*dy; d < least {
			best, least = q, d
		}
	}
	return best
}

func (g *Game) applyFrog(i int) {
	c := &g.frogCommands[i]
	if !c.Live {
		return
	}
	f := g.Level.Frogs.At(i)
	from := f.At
	*f = c.Next
	who := activator{is: doom.Monsters, frog: f}
	g.Level.World.moved(who, from, f.At, &f.Sector)
	if c.Push {
		g.Level.World.reach(who, f.At, f.At.Step(uint32(f.Heading), pushLength))
	}
	if c.Croak {
		g.Level.Room.Croaked++
		g.Level.happen(croaked, i, f.At)
	}
	if c.Dies {
		g.Level.Room.Died++
		g.Level.happen(died, i, f.At)
		g.Level.Frogs.put(i)
	}
}

// spawn takes a frog from the pool and puts it at a point. If the pool is full, spawn counts the
// refusal, which is no error.
func (g *Game) spawn(at doom.Point, r uint64) {
	l := g.Level
	f, i := l.Frogs.get()
	if f == nil {
		l.Room.FrogsRefused++
		return
	}
	*f = Frog{At: at, Sector: l.World.sectorOf(at, 0), Heading: uint8(r & 15),
		Life: 105 + uint16(r>>8%245)} // 3 to 10 seconds
	l.Room.Spawned++
	l.happen(spawned, i, at)
}
