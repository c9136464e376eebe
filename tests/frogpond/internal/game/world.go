package game

import (
	"fmt"
	"slices"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// World holds the parts of a level that specials change: movers, lights, moving textures. Its
// memory is the level's.
type World struct {
	*Level
	movers   scope.Pool[mover]
	lights   []light
	scrolls  []scroll
	carries  []carry
	begun    begun
	keys     []key
	landings []landing
	starts   []uint16 // the sectors of the level's starts
	script   script
	who      activator // the body that triggers the current line
}

// activator is the body that triggers a line: a player, a frog, or neither.
type activator struct {
	is      doom.Who
	player  *Player
	frog    *Frog
	arrived bool // a teleporter or an exit took it elsewhere
}

// scroll is a wall with a moving texture.
type scroll struct {
	Line   uint32
	Step   int32 // units a tick
	Offset int32
}

// begun holds copies of the scrolls and carries that the level began with. It isn't part of the
// state.
type begun struct {
	scrolls []scroll // with offsets of 0
	carries []carry
}

// carry is a floor that moves bodies along.
type carry struct {
	Step   doom.Point
	Sector uint16
	_      [2]byte
}

// key is a key's place on the map. A player that comes near has the key from then on.
type key struct {
	At   doom.Point
	Kind doom.Key
	_    [3]uint8
}

// landing is the destination of a teleporter.
type landing struct {
	At              doom.Point
	Heading, Sector uint16
}

const landingThing = 14

var (
	moverMaker   = scope.Plain[mover]()
	lightMaker   = scope.Plain[light]()
	scrollMaker  = scope.Plain[scroll]()
	carryMaker   = scope.Plain[carry]()
	keyMaker     = scope.Plain[key]()
	landingMaker = scope.Plain[landing]()
)

// keyThings has the key for each kind of thing that is one.
var keyThings = map[uint16]doom.Key{5: doom.Blue, 40: doom.Blue, 6: doom.Yellow, 39: doom.Yellow,
	13: doom.Red, 38: doom.Red}

// makeState makes the pool and slices for specials in s, with space for the largest case.
func (w *World) makeState(s scope.Scope) {
	movers, lights, scrolls, carries := 0, 0, 0, 0
	for i := range w.Lines {
		switch e := doom.SpecialOf(w.Lines[i].Special); {
		case e.Action == doom.Stairs:
			movers += w.steps(w.Lines[i].Tag)
		case e.Action == doom.Donut:
			movers += w.tagged(w.Lines[i].Tag) // the rings have no tag
		case e.Action == doom.StrobeLight:
			lights += w.tagged(w.Lines[i].Tag)
		case e.Action == doom.ScrollWall:
			scrolls++
		case e.Action == doom.CarryFloor:
			carries += w.tagged(w.Lines[i].Tag)
		case e.Trigger == doom.Pushed:
			movers++ // too many, since most doors have two such lines
		}
	}
	for i := range w.Sectors {
		special := doom.SectorSpecialOf(w.Sectors[i].Special)
		if w.Outlines[i].Tag != 0 {
			movers += 2
		}
		if special.CloseIn != 0 || special.RaiseIn != 0 {
			movers++
		}
		if special.Light != doom.SteadyLight {
			lights++
		}
	}
	w.movers = moverMaker.Pool(s, min(movers, 2*len(w.Sectors)))
	w.Room.Lights = stored(w.Base, lightMaker.Slice(s, min(lights, len(w.Sectors))))
	w.Room.Scrolls = stored(w.Base, scrollMaker.Slice(s, scrolls))
	w.Room.Carries = stored(w.Base, carryMaker.Slice(s, carries))
	w.script.graph.Instances(1)
}

// stored is arena.SliceOf, but returns a zero Slice for an empty list, so that its address isn't
// part of the state.
func stored[T any](base arena.Base, list []T) arena.Slice[T] {
	if len(list) == 0 {
		return arena.Slice[T]{}
	}
	return arena.SliceOf(base, list)
}

func (l *Level) tagged(tag uint16) (n int) {
	for i := l.NextTagged(tag, -1); i >= 0; i = l.NextTagged(tag, i) {
		n++
	}
	return n
}

// steps returns the number of sectors without the tag in the stairs that begin at sectors with it.
func (w *World) steps(tag uint16) (n int) {
	if tag == 0 {
		return 0 // see the method all
	}
	seen := map[*doom.Sector]bool{}
	skip := func(s *doom.Sector) bool { return seen[s] }
	for i := w.NextTagged(tag, -1); i >= 0; i = w.NextTagged(tag, i) {
		s := &w.Sectors[i]
		for flat := s.Flat; s != nil; s = w.NextStep(s, flat, skip) {
			if seen[s] = true; w.Outline(s).Tag != tag {
				n++
			}
		}
	}
	return n
}

// findThings lists the level's keys and landings, and the sectors of the players' starts.
func (w *World) findThings(s scope.Scope) {
	keys, landings := 0, 0
	for i := range w.Things {
		switch kind := w.Things[i].Kind; {
		case kind == landingThing:
			landings++
		case keyThings[kind] != 0:
			keys++
		}
	}
	w.keys, w.landings = keyMaker.Slice(s, keys)[:0], landingMaker.Slice(s, landings)[:0]
	for i := range w.Things {
		t := &w.Things[i]
		switch at := w.Inside(t.Point()); {
		case t.Kind == landingThing:
			heading := uint32(t.Angle) * 16 / 360 & 15
			sector := w.sectorOf(at, 0)
			w.landings = append(w.landings, landing{At: at, Heading: uint16(heading), Sector: sector})
		case keyThings[t.Kind] != 0:
			w.keys = append(w.keys, key{At: at, Kind: keyThings[t.Kind]})
		}
	}
	w.starts = wordMaker.Slice(s, len(w.Starts))
	for i := range w.starts {
		w.starts[i] = w.sectorOf(w.Starts[i], 0)
	}
}

// begin starts the specials that work from the start on. All random numbers of the game derive from
// the seed.
func (w *World) begin(seed uint64) error {
	w.Room.Seed = seed
	for i := range w.Sectors {
		special := doom.SectorSpecialOf(w.Sectors[i].Special)
		w.timedDoor(&w.Sectors[i], &special)
	}
	c := &w.script
	if c.instance = c.graph.New(); c.instance == 0 {
		return fmt.Errorf("%s: its graph: %w", w.Name, scope.ErrFull)
	}
	w.Room.Instance = c.instance
	c.runner.Begin()
	w.check(began.Fire(c.runner, c.graph, w.Room.Instance, 0, struct{}{}))
	c.runner.End()
	w.begun = begun{slices.Clone(w.scrolls), slices.Clone(w.carries)}
	return nil
}

// check counts an error of the graph; the level goes on.
func (w *World) check(err error) {
	if err != nil {
		w.Room.Errors++
	}
}

// Scroll moves the texture of a line's front by step units in each tick.
func (w *World) Scroll(line uint32, step int32) {
	if len(w.scrolls) < cap(w.scrolls) {
		w.scrolls = append(w.scrolls, scroll{Line: line, Step: step})
		w.Room.ScrollCount++
	}
}

// Carry makes the floors with a tag move bodies along a line, by a 32nd of it in each tick.
func (w *World) Carry(tag uint16, n *doom.Line) {
	free := cap(w.carries) - len(w.carries)
	for i := w.NextTagged(tag, -1); i >= 0 && free > 0; i = w.NextTagged(tag, i) {
		free--
		step := doom.Point{X: n.DX << (doom.UnitBits - 5), Y: n.DY << (doom.UnitBits - 5)}
		w.carries = append(w.carries, carry{Sector: uint16(i), Step: step})
		w.Room.CarryCount++
	}
}

// timedDoor starts the timed door of a sector, if it has one.
func (w *World) timedDoor(c *doom.Sector, special *doom.SectorSpecial) {
	door := doom.SpecialOf(1).Effect
	switch {
	case special.CloseIn != 0:
		if m := w.start(c, ceilingPlane, &door); m != nil {
			m.State, m.Next, m.Ends, m.Left, m.High = waiting, falling, true, special.CloseIn, w.Goal(c, &door)
		}
	case special.RaiseIn != 0:
		if m := w.start(c, ceilingPlane, &door); m != nil {
			m.State, m.Next, m.Left, m.High = waiting, rising, special.RaiseIn, w.Goal(c, &door)
		}
	}
}

// fire triggers a line by walking, using or shooting, from its front or back. It reports whether
// the line acted.
func (w *World) fire(line uint16, by doom.Trigger, front bool, who activator) bool {
	if by == doom.Used && !front {
		return false // no body reaches through a wall
	}
	w.who = who
	touch, kind := doom.Touch{Front: front}, 1
	if who.is == doom.Players {
		kind = 0
		if who.player != nil {
			keys := doom.Key(who.player.Keys)
			touch.Blue, touch.Yellow, touch.Red = keys&doom.Blue != 0, keys&doom.Yellow != 0, keys&doom.Red != 0
		}
	}
	c := &w.script
	c.acted = false
	w.check(events[by][kind].Fire(c.runner, c.graph, w.Room.Instance, int32(line), touch))
	if c.acted {
		w.Room.Fired++
	}
	return c.acted
}

// all applies an action to all sectors with a tag, and reports whether one changed. The sector in
// front of line is the model for a changed floor.
func (w *World) all(tag, line int32, e doom.Effect) (acted bool) {
	if tag == 0 && e.Action != doom.SetLight && e.Action != doom.StrobeLight {
		w.Room.Nowhere++
		return false // most sectors have tag 0; a line with tag 0 isn't meant for them
	}
	found := false
	for i := w.NextTagged(uint16(tag), -1); i >= 0; i = w.NextTagged(uint16(tag), i) {
		found = true
		if w.affect(&w.Sectors[i], &w.Lines[line], &e) {
			acted = true
		}
	}
	if !found {
		w.Room.Nowhere++
	}
	return acted
}

func (w *World) affect(c *doom.Sector, n *doom.Line, e *doom.Effect) bool {
	switch e.Action {
	case doom.OpenDoor, doom.CloseDoor, doom.RaiseDoor, doom.ReopenDoor:
		return w.Door(c, e)
	case doom.MoveFloor:
		return w.Floor(c, e, n.Front.Get(w.Base))
	case doom.MoveCeiling:
		return w.Ceiling(c, e)
	case doom.Crusher:
		return w.Crusher(c, e)
	case doom.StopCrusher:
		return w.Stop(c, ceilingPlane, doom.Crusher)
	case doom.Lift:
		return w.Lift(c, e)
	case doom.Perpetual:
		return w.Perpetual(c, e)
	case doom.StopLift:
		return w.Stop(c, floorPlane, doom.Perpetual)
	case doom.Stairs:
		return w.Stairs(c, e)
	case doom.Donut:
		return w.Donut(c, e)
	case doom.SetLight:
		return w.SetLight(c, e)
	case doom.StrobeLight:
		return w.Strobe(c, e)
	}
	return false
}

// run plays a tick of movers, lights, scrolls, carries and floors. It runs after players and frogs.
func (w *World) run() {
	w.check(w.script.runner.Tick(w.script.graph))
	w.moveAll()
	w.shine()
	for i := range w.scrolls {
		w.scrolls[i].Offset += w.scrolls[i].Step
	}
	w.carryAll()
	w.harm()
	w.Room.Tick++
}
