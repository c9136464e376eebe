// Package rollback is the program rollback, written by upfront's docs only.
package rollback

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/strangers/work"
)

//go:embed plan.json
var planFile []byte

// A match goes back to before a tick of at most MostLate ticks ago. An input that hasn't arrived
// is that of the tick before, so a tick more is kept of the inputs.
const (
	snapshots = work.MostLate + 1
	kept      = work.MostLate + 2
)

// Unit is a unit of a match.
type Unit struct {
	work.Unit
	_      [4]byte // a state has no padding
	Target arena.Handle[Unit]
}

// State is the data of a match that a tick changes, without the units.
type State struct {
	Next   uint32 // the ID of the next unit
	Lost   [work.Players]uint32
	Ground [work.GroundSize]byte
}

var (
	units  = scope.Plain[Unit]()
	states = scope.Plain[State]()
)

// match is a match with the inputs that it needs to play ticks again.
type match struct {
	slot   budget.Region
	number int
	tick   int // the next one
	back   int // the tick from which the match plays again: tick, if no input was late
	inputs [kept]inputs

	state *State
	units scope.HandlePool[Unit]
	ring  *save.Ring
}

// inputs are the inputs of a tick.
type inputs struct {
	keys    [work.Players]uint32 // with which the tick is played
	arrived [work.Players]bool
}

type server struct {
	b       *budget.Budget
	matches [work.Matches]match
}

// Play plays the program rollback.
func Play(m *work.Meter) (sum uint64, err error) {
	plan, err := budget.ParsePlan(planFile)
	if err != nil {
		return 0, err
	}
	b, err := budget.Open(plan)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	s := &server{b: b}
	slots := b.Slots("match")
	for place := range s.matches {
		if s.matches[place].slot, err = slots.AcquireAt(place); err != nil {
			return 0, err
		}
	}
	defer func() {
		for place := range s.matches {
			err = errors.Join(err, s.matches[place].slot.Release(context.Background()))
		}
	}()
	m.Ready()
	return s.play(m)
}

func (s *server) play(m *work.Meter) (uint64, error) {
	var (
		stream work.Inputs
		sum    work.Sum
	)
	for stream.Tick() {
		m.Start()
		for in, ok := stream.Next(); ok; in, ok = stream.Next() {
			s.matches[in.Place].input(in)
		}
		var total uint64
		for place := range s.matches {
			reported, err := s.matches[place].turn(place)
			if err != nil {
				return 0, fmt.Errorf("the match in place %d: %w", place, err)
			}
			total += reported
		}
		sum.Add(total)
		m.Stop()
	}
	return uint64(sum), nil
}

// input takes an input that arrived.
func (m *match) input(in work.Input) {
	at := &m.inputs[in.Tick%kept]
	if in.Tick < m.tick && at.keys[in.Player] != in.Keys { // played with another input
		m.back = min(m.back, in.Tick)
	}
	at.keys[in.Player], at.arrived[in.Player] = in.Keys, true
}

// turn plays the next tick of the match, and before it all ticks since the first one with an input
// that was late. It returns the hash if the match reports it.
func (m *match) turn(place int) (reported uint64, err error) {
	if m.state == nil {
		if err = m.load(); err != nil {
			return 0, err
		}
	}
	if m.back < m.tick {
		if err = m.ring.Restore(context.Background(), uint64(m.back)); err != nil {
			return 0, err
		}
	}
	for ; m.back <= m.tick; m.back++ {
		if err = m.ring.Take(uint64(m.back)); err != nil {
			return 0, err
		}
		m.play(m.back)
	}
	last := m.tick == work.MatchTicks(place, m.number)-1
	if last || work.Reports(m.tick) {
		reported = m.hash()
	}
	m.tick++
	m.inputs[m.tick%kept] = inputs{}
	if last {
		*m = match{slot: m.slot, number: m.number + 1}
	}
	return reported, nil
}

// load makes the match. It ends the match before.
func (m *match) load() error {
	_, err := budget.Load(context.Background(), m.slot, func(s scope.Scope) (*State, error) {
		state, root := save.Begin(m.slot, s, states)
		m.state = root
		m.state.Next = 1
		m.units = units.HandlePool(s, work.MostUnits)
		m.ring = save.NewRing(s, snapshots, state)
		return root, nil
	})
	return err
}

// play plays a tick.
func (m *match) play(tick int) {
	in := &m.inputs[tick%kept]
	for player := range in.keys {
		if in.arrived[player] {
			continue
		}
		in.keys[player] = 0
		if tick > 0 {
			in.keys[player] = m.inputs[(tick-1)%kept].keys[player]
		}
	}
	for _, u := range m.units.All() {
		u.Move(in.keys[u.Owner], m.state.Ground[:])
	}
	for _, u := range m.units.All() {
		if target := m.units.At(u.Target); target != nil {
			target.Hull -= u.Shoot(&target.Unit)
		}
	}
	for h, u := range m.units.All() {
		if u.Hull <= 0 {
			m.state.Lost[u.Owner]++
			m.units.Put(h)
		}
	}
	for _, u := range m.units.All() {
		if u.Looks(tick) && m.units.At(u.Target) == nil {
			u.Target = m.nearest(u)
		}
	}
	for player, keys := range in.keys {
		if !work.Builds(keys, tick) {
			continue
		}
		if u, _ := m.units.Get(); u != nil {
			u.Unit = work.NewUnit(uint32(player), m.state.Next)
			m.state.Next++
		}
	}
}

// nearest returns the enemy that is nearest to the unit.
func (m *match) nearest(u *Unit) (found arena.Handle[Unit]) {
	var best *Unit
	var distance int32
	for h, v := range m.units.All() {
		if v.Owner == u.Owner {
			continue
		}
		if d := u.Distance(&v.Unit); best == nil || d < distance || d == distance && v.ID < best.ID {
			best, distance, found = v, d, h
		}
	}
	return found
}

// hash returns the hash of the match.
func (m *match) hash() uint64 {
	var all uint64
	for _, u := range m.units.All() {
		var target uint32
		if v := m.units.At(u.Target); v != nil {
			target = v.ID
		}
		all += u.Digest(target)
	}
	var sum work.Sum
	sum.Add(all)
	sum.Add(uint64(m.state.Next)<<32 | uint64(m.units.Live()))
	for _, n := range m.state.Lost {
		sum.Add(uint64(n))
	}
	sum.Bytes(m.state.Ground[:])
	return uint64(sum)
}
