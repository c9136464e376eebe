package game

import (
	"fmt"

	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// maxTick is two years of play. The bound keeps the tick from wrapping to 0.
const maxTick = 1<<31 - 1

// verify refuses a state from outside if play can't produce a number that a tick indexes by, counts
// with or loops over. Package save has already checked pools, links and bools. Other numbers may
// have any value: they make another game and do no harm.
func (l *Level) verify(v save.View) error {
	for _, part := range []func(save.View) error{l.verifyRoom, l.verifySectors, l.verifyFrogs,
		l.verifyPlayers, l.verifySounds, l.World.verifyLights, l.World.verifySlides,
		l.World.verifyMovers} {
		if err := part(v); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return nil
}

// verifyRoom checks the room's counts, and that its slices and instance are the level's own: no
// tick changes these.
func (l *Level) verifyRoom(v save.View) error {
	r := save.At(v, l.Room)
	slices := *r
	slices.counts = counts{}
	switch {
	case slices != l.made:
		return fmt.Errorf("a slice of the room differs from the level's")
	case r.Instance != l.World.script.instance:
		return fmt.Errorf("the graph's instance is %#x, not %#x", r.Instance,
			l.World.script.instance)
	case r.Tick > maxTick:
		return fmt.Errorf("tick %d: at most %d", r.Tick, maxTick)
	case r.Heard > r.Happened:
		return fmt.Errorf("%d events heard of %d", r.Heard, r.Happened)
	}
	return nil
}

func (l *Level) sector(number uint16) bool { return int(number) < len(l.loaded) }

func (l *Level) verifySectors(v save.View) error {
	for i := range save.SliceAt(v, l.Sectors) {
		switch c := &save.SliceAt(v, l.Sectors)[i]; {
		case int(c.Number) != i:
			return fmt.Errorf("sector %d: its number is %d", i, c.Number)
		case !l.sector(c.Flat):
			return fmt.Errorf("sector %d: its flat is that of sector %d of %d", i, c.Flat, len(l.loaded))
		}
	}
	return nil
}

// verifyBody checks that a body is within the map, in an existing sector, with a valid heading.
func (l *Level) verifyBody(at doom.Point, sector uint16, heading uint32) error {
	switch {
	case at != l.Inside(at):
		return fmt.Errorf("it is at %d, %d, beyond the map", at.X, at.Y)
	case !l.sector(sector):
		return fmt.Errorf("it is in sector %d of %d", sector, len(l.loaded))
	case heading > 15:
		return fmt.Errorf("its heading is %d of 16", heading)
	}
	return nil
}

// verifyFrogs also checks that each place has a handle of its own chunk. Otherwise one frog could
// be in two places and be freed twice.
func (l *Level) verifyFrogs(v save.View) error {
	handles := save.SliceAt(v, l.Frogs.handles)
	for i, h := range handles {
		if h != 0 && int(uint32(h)) != i { // the lower half of a handle is the number of its chunk
			return fmt.Errorf("the frog at place %d has the handle %#x, of another place", i, h)
		}
	}
	for h, f := range save.AllHandles(v, l.Frogs.pool) {
		place := uint32(h)
		err := l.verifyBody(f.At, f.Sector, uint32(f.Heading))
		switch {
		case err != nil:
		case handles[place] != h:
			err = fmt.Errorf("its handle is %#x, and its place has %#x", h, handles[place])
		case f.Life == 0:
			err = fmt.Errorf("it has no tick left")
		}
		if err != nil {
			return fmt.Errorf("frog %d: %w", place, err)
		}
	}
	return nil
}

func (l *Level) verifyPlayers(v save.View) error {
	all := 0
	for i, p := range save.All(v, l.Players) {
		all++
		err := l.verifyBody(p.At, p.Sector, p.Heading)
		switch {
		case err != nil:
		case p.Away > 1:
			err = fmt.Errorf("its away is %d: 0 or 1", p.Away)
		case p.Still > maxStill:
			err = fmt.Errorf("it stands still for %d ticks: %d is the most", p.Still, maxStill)
		case p.Health < 1 || p.Health > fullHealth:
			err = fmt.Errorf("its health is %d: 1 to %d", p.Health, fullHealth)
		case p.Keys&^uint32(doom.Blue|doom.Yellow|doom.Red) != 0:
			err = fmt.Errorf("its keys are %#x", p.Keys)
		}
		if err != nil {
			return fmt.Errorf("player %d: %w", i, err)
		}
	}
	if all != l.Players.Cap() {
		return fmt.Errorf("%d players of %d", all, l.Players.Cap())
	}
	return nil
}

// verifySounds checks events and voices. Any handle is valid, since their frogs may be gone.
func (l *Level) verifySounds(v save.View) error {
	for i := range save.SliceAt(v, l.events) {
		switch e := &save.SliceAt(v, l.events)[i]; {
		case e.Kind > died:
			return fmt.Errorf("event %d: its kind is %d of %d", i, e.Kind, died)
		case e.Kind != 0 && e.At != l.Inside(e.At):
			return fmt.Errorf("event %d: it is at %d, %d, beyond the map", i, e.At.X, e.At.Y)
		}
	}
	for i, voice := range save.All(v, l.voices) {
		if voice.Left < 1 || voice.Left > songTicks {
			return fmt.Errorf("voice %d: it sings for %d ticks of %d", i, voice.Left, songTicks)
		}
	}
	return nil
}

func (w *World) verifyLights(v save.View) error {
	r := save.At(v, w.Room)
	lights, count := save.GetSlice(v, r.Lights), int(r.LightCount)
	if count > len(lights) {
		return fmt.Errorf("%d lights, with room for %d", count, len(lights))
	}
	for i := range lights[:count] {
		switch n := &lights[i]; {
		case !w.sector(n.Sector):
			return fmt.Errorf("light %d: it is in sector %d of %d", i, n.Sector, len(w.loaded))
		case n.Kind == doom.SteadyLight || n.Kind > doom.StrobeInStep:
			return fmt.Errorf("light %d: its kind is %d of %d", i, n.Kind, doom.StrobeInStep)
		case n.Up > 1:
			return fmt.Errorf("light %d: its up is %d: 0 or 1", i, n.Up)
		}
	}
	return nil
}

// verifySlides checks the moving textures and carrying floors. The begin event makes them; a tick
// changes only a texture's offset.
func (w *World) verifySlides(v save.View) error {
	r, made := save.At(v, w.Room), &w.begun
	if int(r.ScrollCount) != len(made.scrolls) || int(r.CarryCount) != len(made.carries) {
		return fmt.Errorf("%d scrolls and %d carries; the level has %d and %d", r.ScrollCount, r.CarryCount,
			len(made.scrolls), len(made.carries))
	}
	for i, n := range save.GetSlice(v, r.Scrolls)[:r.ScrollCount] {
		if s := &made.scrolls[i]; n.Line != s.Line || n.Step != s.Step {
			return fmt.Errorf("scroll %d: line %d by %d; the level has line %d by %d", i, n.Line, n.Step,
				s.Line, s.Step)
		}
	}
	for i, n := range save.GetSlice(v, r.Carries)[:r.CarryCount] {
		if n != made.carries[i] {
			return fmt.Errorf("carry %d: %+v; the level has %+v", i, n, made.carries[i])
		}
	}
	return nil
}

// verifyMovers also checks that no floor or ceiling has two movers.
func (w *World) verifyMovers(v save.View) error {
	moved := make([]plane, len(w.loaded))
	for i, m := range save.All(v, w.movers) {
		var err error
		switch {
		case !w.sector(m.Sector):
			err = fmt.Errorf("it is of sector %d of %d", m.Sector, len(w.loaded))
		case m.Plane != floorPlane && m.Plane != ceilingPlane:
			err = fmt.Errorf("its plane is %d of %d", m.Plane, ceilingPlane)
		case moved[m.Sector]&m.Plane != 0:
			err = fmt.Errorf("sector %d has another", m.Sector)
		case m.State < rising || m.State > waiting, m.Next > falling, m.State == waiting && m.Next == 0:
			err = fmt.Errorf("its state is %d, and then %d", m.State, m.Next)
		case !moves(m.Action):
			err = fmt.Errorf("its action is %d", m.Action)
		case m.Changes && !w.sector(m.Flat):
			err = fmt.Errorf("its flat is that of sector %d of %d", m.Flat, len(w.loaded))
		}
		if err != nil {
			return fmt.Errorf("mover %d: %w", i, err)
		}
		moved[m.Sector] |= m.Plane
	}
	return nil
}
