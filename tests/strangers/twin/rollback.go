package twin

import "github.com/upfront-mem/upfront/tests/strangers/work"

const (
	snapshots  = work.MostLate + 1 // the states before the last ticks
	keptInputs = work.MostLate + 2 // an input that is missing is that of the tick before
)

type unit struct {
	work.Unit
	age    uint32 // 0 in a slot that was never used; even while the slot is free
	target handle
}

// matchState is the data that a rollback restores. Freed slots are in the list.
type matchState struct {
	units  []unit
	free   []uint32
	live   int // units
	next   uint32
	lost   [work.Players]uint32
	ground [work.GroundSize]byte
}

type inputs struct {
	keys    [work.Players]uint32 // with which the tick is played
	arrived [work.Players]bool
}

type match struct {
	matchState
	number int
	tick   int // the next one
	back   int // the tick from which the match plays again: tick, if no input was late
	inputs [keptInputs]inputs
	before [snapshots]matchState // by tick
}

// Rollback plays the program rollback. A new match takes the memory of the match before it in the
// place, with its snapshots.
func Rollback(m *work.Meter) (uint64, error) {
	var (
		matches = make([]match, work.Matches)
		stream  work.Inputs
		sum     work.Sum
	)
	for place := range matches {
		matches[place].start()
	}
	m.Ready()
	for stream.Tick() {
		m.Start()
		for in, ok := stream.Next(); ok; in, ok = stream.Next() {
			matches[in.Place].input(in)
		}
		var total uint64
		for place := range matches {
			total += matches[place].turn(place)
		}
		sum.Add(total)
		m.Stop()
	}
	return uint64(sum), nil
}

// start empties the match and keeps its arrays.
func (m *match) start() {
	m.matchState = matchState{units: m.units[:0], free: m.free[:0], next: 1}
	m.tick, m.back, m.inputs[0] = 0, 0, inputs{}
}

func (m *match) input(in work.Input) {
	at := &m.inputs[in.Tick%keptInputs]
	if in.Tick < m.tick && at.keys[in.Player] != in.Keys {
		m.back = min(m.back, in.Tick)
	}
	at.keys[in.Player], at.arrived[in.Player] = in.Keys, true
}

// turn plays the match's next tick, and before it the ticks that were played with a wrong input.
func (m *match) turn(place int) (reported uint64) {
	if m.back < m.tick {
		m.matchState.copy(&m.before[m.back%snapshots])
	}
	for ; m.back <= m.tick; m.back++ {
		m.before[m.back%snapshots].copy(&m.matchState)
		m.play(m.back)
	}
	last := m.tick == work.MatchTicks(place, m.number)-1
	if last || work.Reports(m.tick) {
		reported = m.hash()
	}
	if last {
		m.number++
		m.start()
		return reported
	}
	m.tick++
	m.inputs[m.tick%keptInputs] = inputs{}
	return reported
}

func (m *match) play(tick int) {
	in := &m.inputs[tick%keptInputs]
	for player := range in.keys {
		if in.arrived[player] {
			continue
		}
		in.keys[player] = 0
		if tick > 0 {
			in.keys[player] = m.inputs[(tick-1)%keptInputs].keys[player]
		}
	}
	for i := range m.units {
		if u := &m.units[i]; u.age&1 == 1 {
			u.Move(in.keys[u.Owner], m.ground[:])
		}
	}
	for i := range m.units {
		if u := &m.units[i]; u.age&1 == 1 {
			if target := m.unit(u.target); target != nil {
				target.Hull -= u.Shoot(&target.Unit)
			}
		}
	}
	for i := range m.units {
		if u := &m.units[i]; u.age&1 == 1 && u.Hull <= 0 {
			m.lost[u.Owner]++
			u.age++
			m.free = append(m.free, uint32(i))
			m.live--
		}
	}
	for i := range m.units {
		if u := &m.units[i]; u.age&1 == 1 && u.Looks(tick) && m.unit(u.target) == nil {
			u.target = m.nearest(u)
		}
	}
	for player, keys := range in.keys {
		if work.Builds(keys, tick) && m.live < work.MostUnits {
			m.build(uint32(player))
		}
	}
}

func (m *match) build(player uint32) {
	var slot uint32
	if n := len(m.free); n > 0 {
		slot, m.free = m.free[n-1], m.free[:n-1]
	} else {
		slot = uint32(len(m.units))
		m.units = append(m.units, unit{})
	}
	u := &m.units[slot]
	*u = unit{Unit: work.NewUnit(player, m.next), age: u.age + 1}
	m.next++
	m.live++
}

func (m *match) nearest(u *unit) (found handle) {
	var best *unit
	var distance int32
	for i := range m.units {
		v := &m.units[i]
		if v.age&1 == 0 || v.Owner == u.Owner {
			continue
		}
		if d := u.Distance(&v.Unit); best == nil || d < distance || d == distance && v.ID < best.ID {
			best, distance, found = v, d, handle{uint32(i), v.age}
		}
	}
	return found
}

func (m *match) unit(h handle) *unit {
	if h.slot < uint32(len(m.units)) && h.age&1 == 1 && m.units[h.slot].age == h.age {
		return &m.units[h.slot]
	}
	return nil
}

// hash returns a number for the state that doesn't depend on slots.
func (m *match) hash() uint64 {
	var all uint64
	for i := range m.units {
		if u := &m.units[i]; u.age&1 == 1 {
			var target uint32
			if v := m.unit(u.target); v != nil {
				target = v.ID
			}
			all += u.Digest(target)
		}
	}
	var sum work.Sum
	sum.Add(all)
	sum.Add(uint64(m.next)<<32 | uint64(m.live))
	for _, n := range m.lost {
		sum.Add(uint64(n))
	}
	sum.Bytes(m.ground[:])
	return uint64(sum)
}

func (s *matchState) copy(from *matchState) {
	units, free := s.units[:0], s.free[:0]
	*s = *from
	s.units = append(units, from.units...)
	s.free = append(free, from.free...)
}
