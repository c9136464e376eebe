package game

import (
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// mover is a floor or a ceiling in motion. Each floor and each ceiling has at most one, from a pool
// of the level. If none is free, the action does nothing, and is counted.
type mover struct {
	Action    doom.Action // the action that started it
	Plane     plane
	State     state
	Next      state // after waiting
	Crush     bool
	Steady    bool
	Ends      bool // the next arrival is the last
	Stopped   bool // until the same action starts it again
	Changes   bool // at its end the sector takes on Special and Flat
	_         byte
	Special   uint16
	Flat      uint16
	Sector    uint16
	Speed     int32 // units a tick, 16.16
	Pace      int32 // the current speed, lower while a body is in the way
	Low, High int32
	Wait      int32
	Left      int32 // ticks of waiting
}

type plane uint8

// The planes, as bits.
const (
	floorPlane plane = iota + 1
	ceilingPlane
)

type state uint8

const (
	rising state = iota + 1
	falling
	waiting
)

// mover returns the mover of a sector's floor or ceiling, or nil.
func (w *World) mover(sector uint16, p plane) *mover {
	for i := range w.movers.Cap() {
		if m := w.movers.At(i); m != nil && m.Sector == sector && m.Plane == p {
			return m
		}
	}
	return nil
}

// start makes the mover of a sector's floor or ceiling. It returns nil if there is one already, or
// if the pool is full; both are expected.
func (w *World) start(s *doom.Sector, p plane, e *doom.Effect) *mover {
	if w.mover(s.Number, p) != nil {
		return nil
	}
	m := w.movers.Get()
	if m == nil {
		w.Room.Refused++
		return nil
	}
	*m = mover{Action: e.Action, Plane: p, Sector: s.Number, Speed: e.Speed, Pace: e.Speed,
		Wait: e.Wait, Crush: e.Crush, Steady: e.Steady}
	return m
}

// Door makes a sector's ceiling open or close. It reports whether it began.
func (w *World) Door(s *doom.Sector, e *doom.Effect) bool {
	m := w.start(s, ceilingPlane, e)
	if m == nil {
		return false
	}
	switch e.Action {
	case doom.CloseDoor:
		m.State, m.Ends = falling, true
	case doom.ReopenDoor:
		m.State, m.High = falling, s.Ceiling
	default:
		m.State, m.High, m.Ends = rising, w.Goal(s, e), e.Action == doom.OpenDoor
	}
	return true
}

// Push opens or closes a door by hand, and reports whether it acted. A moving door that closes by
// itself turns round, but a monster can't push it shut.
func (w *World) Push(s *doom.Sector, e *doom.Effect) bool {
	m := w.mover(s.Number, ceilingPlane)
	if m == nil {
		return w.Door(s, e)
	}
	if m.Action != doom.RaiseDoor || e.Action != doom.RaiseDoor || m.State != falling && w.who.is == doom.Monsters {
		return false
	}
	if m.State == falling {
		m.State, m.Ends = rising, false
	} else {
		m.State, m.Ends = falling, true
	}
	return true
}

// Floor moves a sector's floor to its target, and reports whether it began.
func (w *World) Floor(s *doom.Sector, e *doom.Effect, front *doom.Sector) bool {
	m := w.start(s, floorPlane, e)
	if m == nil {
		return false
	}
	goal := w.Goal(s, e)
	m.Low, m.High, m.Ends, m.State = goal, goal, true, rising
	switch e.Target {
	case doom.LowestFloor, doom.HighestFloor, doom.NextLowerFloor:
		m.State = falling
	}
	switch e.Change {
	case doom.ChangeFlat:
		s.Flat = front.Flat
	case doom.ChangeHarm:
		s.Flat, s.Special = front.Flat, 0
	case doom.ChangeFront:
		s.Flat, s.Special = front.Flat, front.Special
	case doom.ChangeNumeric:
		if model := w.Model(s, goal); model != nil {
			m.Changes, m.Flat, m.Special = true, model.Flat, model.Special
		}
	}
	return true
}

// Ceiling moves a sector's ceiling to its target, and reports whether it began.
func (w *World) Ceiling(s *doom.Sector, e *doom.Effect) bool {
	m := w.start(s, ceilingPlane, e)
	if m == nil {
		return false
	}
	goal := w.Goal(s, e)
	m.Low, m.High, m.Ends, m.State = goal, goal, true, falling
	if e.Target == doom.HighestCeiling {
		m.State = rising
	}
	return true
}

// Crusher starts a crusher or restarts a stopped one, and reports whether it did.
func (w *World) Crusher(s *doom.Sector, e *doom.Effect) bool {
	if w.restart(s, ceilingPlane, e.Action) {
		return true
	}
	m := w.start(s, ceilingPlane, e)
	if m == nil {
		return false
	}
	m.Low, m.High, m.State = w.Goal(s, e), s.Ceiling, falling
	return true
}

// Lift lowers a sector's floor, and raises it again after a wait. It reports whether it began.
func (w *World) Lift(s *doom.Sector, e *doom.Effect) bool {
	m := w.start(s, floorPlane, e)
	if m == nil {
		return false
	}
	m.Low, m.High, m.State = min(w.Goal(s, e), s.Floor), s.Floor, falling
	return true
}

// Perpetual starts a lift that never ends, or restarts a stopped one. It reports whether it did.
func (w *World) Perpetual(s *doom.Sector, e *doom.Effect) bool {
	if w.restart(s, floorPlane, e.Action) {
		return true
	}
	m := w.start(s, floorPlane, e)
	if m == nil {
		return false
	}
	m.Low = min(w.Height(s, doom.LowestFloor), s.Floor)
	m.High = max(w.Height(s, doom.HighestFloor), s.Floor)
	m.State = rising + state(doom.Random(w.Room.Seed^0x11f7, w.Room.Tick, uint32(s.Number))&1)
	return true
}

// Stop stops a sector's crusher or perpetual lift. It reports whether it did.
func (w *World) Stop(s *doom.Sector, p plane, of doom.Action) bool {
	m := w.mover(s.Number, p)
	if m == nil || m.Action != of || m.Stopped {
		return false
	}
	m.Stopped = true
	return true
}

// restart resumes a mover that Stop stopped. It reports whether it did.
func (w *World) restart(s *doom.Sector, p plane, of doom.Action) bool {
	m := w.mover(s.Number, p)
	if m == nil || m.Action != of || !m.Stopped {
		return false
	}
	m.Stopped = false
	return true
}

// Stairs raises a sector by one step, its neighbour by two, and so on. It reports whether it began.
func (w *World) Stairs(s *doom.Sector, e *doom.Effect) bool {
	height, flat := int64(s.Floor), s.Flat
	began := false
	for s != nil {
		m := w.start(s, floorPlane, e)
		if m == nil {
			return began
		}
		height += int64(e.Amount) << doom.UnitBits
		m.High, m.State, m.Ends = doom.Clamp(height), rising, true
		began = true
		s = w.NextStep(s, flat, w.floorMoves)
	}
	return began
}

func (w *World) floorMoves(s *doom.Sector) bool { return w.mover(s.Number, floorPlane) != nil }

// Donut lowers a pillar and raises the ring around it, both to the floor outside. It reports
// whether it began.
func (w *World) Donut(pillar *doom.Sector, e *doom.Effect) bool {
	ring, around := w.Ring(pillar)
	if ring == nil || w.floorMoves(pillar) || w.floorMoves(ring) {
		return false
	}
	if m := w.start(ring, floorPlane, e); m != nil {
		m.High, m.State, m.Ends = around.Floor, rising, true
		m.Changes, m.Flat = true, around.Flat
	}
	if m := w.start(pillar, floorPlane, e); m != nil {
		m.Low, m.State, m.Ends = around.Floor, falling, true
	}
	return true
}

// moves reports whether an action has movers.
func moves(a doom.Action) bool {
	switch a {
	case doom.OpenDoor, doom.CloseDoor, doom.RaiseDoor, doom.ReopenDoor, doom.MoveFloor,
		doom.MoveCeiling, doom.Crusher, doom.Lift, doom.Perpetual, doom.Stairs, doom.Donut:
		return true
	}
	return false
}

func (m *mover) isDoor() bool { return doom.OpenDoor <= m.Action && m.Action <= doom.ReopenDoor }

func (w *World) moveAll() {
	for i := range w.movers.Cap() {
		if m := w.movers.At(i); m != nil {
			w.step(m)
		}
	}
}

func (w *World) step(m *mover) {
	switch {
	case m.Stopped:
		return
	case m.State == waiting:
		if m.Left--; m.Left <= 0 {
			m.State = m.Next
		}
		return
	}
	arrived, blocked := w.move(m)
	switch {
	case blocked:
		w.turnBack(m)
	case arrived && (m.Ends || m.Action == doom.Lift && m.State == rising):
		w.end(m)
	case arrived:
		w.turn(m)
	}
}

// turn handles an arrival that isn't the last.
func (w *World) turn(m *mover) {
	m.Pace = m.Speed
	m.Next = rising + falling - m.State
	if m.Action == doom.Crusher {
		m.State = m.Next
		return
	}
	// A door ends after its second way. A lift ends when it is up again.
	m.Ends = m.Action == doom.RaiseDoor || m.Action == doom.ReopenDoor
	m.State, m.Left = waiting, m.Wait
}

// turnBack slows or turns a mover that a body blocks, by the kind of mover.
func (w *World) turnBack(m *mover) {
	switch {
	case m.Action == doom.Crusher && !m.Steady:
		m.Pace = m.Speed / 8
	case m.Crush || m.Ends && m.Action != doom.RaiseDoor:
		// The mover pushes on.
	case m.Action == doom.RaiseDoor || m.Action == doom.ReopenDoor:
		m.State = rising
		m.Ends = m.Action == doom.ReopenDoor
	case m.Action == doom.Lift || m.Action == doom.Perpetual:
		m.State, m.Next, m.Left = falling, rising, m.Wait
	}
}

func (w *World) end(m *mover) {
	if m.Changes {
		s := &w.Sectors[m.Sector]
		s.Flat, s.Special = m.Flat, m.Special
	}
	w.movers.Put(m)
}

// move moves the plane by a tick, to its goal at most, and reports whether it arrived. If a body no
// longer fits, the plane is blocked; unless it crushes, it takes this step back. A plane that
// arrives takes the step back in any case, but isn't blocked.
func (w *World) move(m *mover) (arrived, blocked bool) {
	s := &w.Sectors[m.Sector]
	height, goal, step := &s.Floor, m.High, int64(m.Pace)
	if m.Plane == ceilingPlane {
		height = &s.Ceiling
	}
	if m.State == falling {
		goal, step = m.Low, -step
	}
	switch {
	case m.Plane == floorPlane:
		goal = min(goal, s.Ceiling)
	case m.isDoor() && m.State == falling:
		goal = s.Floor
	case m.State == falling:
		goal = max(goal, s.Floor)
	}
	before, next := *height, int64(*height)+step
	if arrived = step < 0 && next < int64(goal) || step > 0 && next > int64(goal); arrived {
		next = int64(goal)
	}
	*height = doom.Clamp(next)
	narrows := (m.Plane == floorPlane) == (*height > before)
	if *height == before || !narrows || w.fits(s, m.Crush) {
		return arrived, false
	}
	if !m.Crush || arrived {
		*height = before
	}
	return arrived, !arrived
}
