package game

import (
	"fmt"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// World is what the specials of a level change, and what they need to know: its movers, lights and
// moving walls, and who triggered what. All of its memory is the level's.
type World struct {
	*Level
	movers   scope.Pool[mover]
	lights   []light
	scrolls  []scroll
	carries  []carry
	keys     []key
	landings []landing
	starts   []uint32 // the sectors of the level's starts
	seed     uint64
	tick     uint32
	script   script
	who      activator // of the line that is being triggered
	hurts    bool      // in this tick, what crushes hurts

	// Lines that did something; that didn't for want of a mover; whose tag no sector has; events of the
	// graph that took too many steps.
	Fired, Refused, Nowhere, Errors uint32
}

// activator is who triggers a line: a player, or a frog, or somebody without a body.
type activator struct {
	is      doom.Who
	player  *Player
	frog    *Frog
	arrived bool // elsewhere: by a teleporter, or an exit
}

// scroll is a wall whose texture moves.
type scroll struct {
	Line   uint32
	Step   int32 // units a tick
	Offset int32
}

// carry is a floor that moves bodies on.
type carry struct {
	Sector uint32
	Step   doom.Point
}

// key is a key's place on the map; whoever comes there has it from then on.
type key struct {
	At   doom.Point
	Kind doom.Key
	_    [3]uint8
}

// landing is where a teleporter takes bodies to.
type landing struct {
	At              doom.Point
	Heading, Sector uint32
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

// keyThings are the kinds of things that are cards and skulls.
var keyThings = map[uint16]doom.Key{5: doom.Blue, 40: doom.Blue, 6: doom.Yellow, 39: doom.Yellow,
	13: doom.Red, 38: doom.Red}

// newWorld makes the world of a level in s, of exactly the size that its specials can need.
func newWorld(s scope.Scope, l *Level) (w *World, err error) {
	w = &World{Level: l}
	movers, lights, scrolls, carries := 0, 0, 0, 0
	stairs, strobes := 0, false
	for i := range l.Lines {
		switch e := doom.SpecialOf(l.Lines[i].Special); {
		case e.Action == doom.Stairs || e.Action == doom.Donut:
			stairs = len(l.Sectors) // the steps have no tag
		case e.Action == doom.StrobeLight:
			strobes = true
		case e.Action == doom.ScrollWall:
			scrolls++
		case e.Action == doom.CarryFloor:
			carries += l.tagged(l.Lines[i].Tag)
		case e.Trigger == doom.Pushed:
			movers++ // at most: a door has mostly two lines
		}
	}
	for i := range l.Sectors {
		c := &l.Sectors[i]
		special := doom.SectorSpecialOf(c.Special)
		if c.Tag != 0 {
			movers += 2
		}
		if special.CloseIn != 0 || special.RaiseIn != 0 {
			movers++
		}
		if special.Light != doom.SteadyLight || strobes {
			lights++
		}
	}
	w.movers = moverMaker.Pool(s, min(movers+stairs, 2*len(l.Sectors)))
	w.lights = lightMaker.Slice(s, lights)[:0]
	w.scrolls = scrollMaker.Slice(s, scrolls)[:0]
	w.carries = carryMaker.Slice(s, carries)[:0]
	w.findThings(s)
	w.starts = countMaker.Slice(s, len(l.Starts))
	for i := range w.starts {
		w.starts[i] = w.sectorOf(l.Starts[i], 0)
	}
	w.script, err = loadScript(s, w)
	return w, err
}

// tagged is how many sectors have a tag.
func (l *Level) tagged(tag uint16) (n int) {
	for i := l.NextTagged(tag, -1); i >= 0; i = l.NextTagged(tag, i) {
		n++
	}
	return n
}

// findThings notes what of the level's things matters here.
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
			w.landings = append(w.landings, landing{At: at, Heading: heading, Sector: w.sectorOf(at, 0)})
		case keyThings[t.Kind] != 0:
			w.keys = append(w.keys, key{At: at, Kind: keyThings[t.Kind]})
		}
	}
}

// begin starts what works from the start on. The seed is that of its chance.
func (w *World) begin(seed uint64) error {
	w.seed = seed
	for i := range w.Sectors {
		special := doom.SectorSpecialOf(w.Sectors[i].Special)
		w.timedDoor(&w.Sectors[i], &special)
	}
	c := &w.script
	if c.instance = c.graph.New(); c.instance == 0 {
		return fmt.Errorf("%s: its graph: %w", w.Name, scope.ErrFull)
	}
	c.runner.Begin()
	w.check(began.Fire(c.runner, c.graph, c.instance, 0, struct{}{}))
	c.runner.End()
	return nil
}

// check counts what goes wrong in the graph: the level goes on.
func (w *World) check(err error) {
	if err != nil {
		w.Errors++
	}
}

// Scroll makes the texture of a line's front move, so many units in each tick.
func (w *World) Scroll(line uint32, step int32) {
	if len(w.scrolls) < cap(w.scrolls) {
		w.scrolls = append(w.scrolls, scroll{Line: line, Step: step})
	}
}

// Carry makes the floors with a tag move bodies along a line, a 32nd of it in each tick.
func (w *World) Carry(tag uint16, n *doom.Line) {
	for i := w.NextTagged(tag, -1); i >= 0 && len(w.carries) < cap(w.carries); i = w.NextTagged(tag, i) {
		step := doom.Point{X: n.DX << (doom.UnitBits - 5), Y: n.DY << (doom.UnitBits - 5)}
		w.carries = append(w.carries, carry{Sector: uint32(i), Step: step})
	}
}

// timedDoor starts the door of a sector that closes or opens by the clock.
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

// fire is a line triggered: by who walks over it from a side, uses it, shoots at it. It says whether
// the line did something.
func (w *World) fire(line uint16, by doom.Trigger, front bool, who activator) bool {
	if by == doom.Used && !front {
		return false // nobody reaches through a wall
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
	w.check(events[by][kind].Fire(c.runner, c.graph, c.instance, int32(line), touch))
	if c.acted {
		w.Fired++
	}
	return c.acted
}

// all does what an action does on all sectors with a tag. The line is that whose front has the flat.
func (w *World) all(tag, line int32, e doom.Effect) (acted bool) {
	if tag == 0 && e.Action != doom.SetLight && e.Action != doom.StrobeLight {
		w.Nowhere++
		return false // most of a map's sectors have no tag; no such line means them
	}
	found := false
	for i := w.NextTagged(uint16(tag), -1); i >= 0; i = w.NextTagged(uint16(tag), i) {
		found = true
		if w.affect(&w.Sectors[i], &w.Lines[line], &e) {
			acted = true
		}
	}
	if !found {
		w.Nowhere++
	}
	return acted
}

// affect does what an action does, on one sector.
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

// run is a tick of all that moves by itself, after those who move themselves.
func (w *World) run() {
	w.check(w.script.runner.Tick(w.script.graph))
	w.hurts = w.tick%4 == 0
	w.moveAll()
	w.shine()
	for i := range w.scrolls {
		w.scrolls[i].Offset += w.scrolls[i].Step
	}
	w.carryAll()
	w.harm()
	w.tick++
}

// hash adds the state of the world beyond the level's own.
func (w *World) hash(h *doom.Hash) {
	h.Add(uint64(w.tick), uint64(w.Fired), uint64(w.Refused), uint64(w.Nowhere), uint64(w.Errors))
	for i := range w.movers.Cap() {
		m := w.movers.At(i)
		if m == nil {
			continue
		}
		h.Add(uint64(i), uint64(m.Action), uint64(m.Plane), uint64(m.State), uint64(m.Next), uint64(m.Sector),
			uint64(m.Speed), uint64(m.Pace), uint64(m.Low), uint64(m.High), uint64(m.Wait), uint64(m.Left),
			uint64(m.Special), m.Flat)
		for _, flag := range [...]bool{m.Crush, m.Steady, m.Ends, m.Stopped, m.Changes} {
			h.AddBool(flag)
		}
	}
	for i := range w.lights {
		n := &w.lights[i]
		h.Add(uint64(n.Kind), uint64(n.Up), uint64(n.Sector), uint64(n.Low), uint64(n.High), uint64(n.Bright),
			uint64(n.Dark), uint64(n.Left))
	}
	for i := range w.scrolls {
		h.Add(uint64(w.scrolls[i].Offset))
	}
	for i := range w.script.variables { // of which the graph has nothing but bools
		if w.script.graph.Value(w.script.instance, i).(bool) {
			h.Add(uint64(i))
		}
	}
}
