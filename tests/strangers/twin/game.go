package twin

import (
	"encoding/binary"
	"errors"

	"github.com/upfront-mem/upfront/tests/strangers/work"
)

// handle names a ship or a shot by its slot and the slot's age. The zero value names none.
type handle struct{ slot, age uint32 }

type ship struct {
	work.Ship
	age  uint32 // 0 in a slot that was never used; even while the slot is free
	last handle // its last shot
}

type shot struct {
	work.Shot
	age    uint32
	target handle
}

// state is the data that a rollback restores. Freed slots are in the lists.
type state struct {
	ships     []ship
	shots     []shot
	freeShips []uint32
	freeShots []uint32
	flying    int // ships
	shooting  int // shots
	nextID    uint32
	kills     uint32
}

type game struct {
	state
	last  [work.Snapshots]state // by tick
	saved []byte
}

// Game plays the program game. Slabs grow as needed, and copies and saves reuse
// the memory of earlier ones.
func Game(m *work.Meter) (uint64, error) {
	g := &game{}
	g.nextID = 1
	var sum work.Sum
	m.Ready()
	for tick := range work.GameTicks {
		m.Start()
		g.play(tick, work.Guess(tick))
		g.last[tick%work.Snapshots].copy(&g.state)
		if back := work.Back(tick); back > 0 {
			g.state.copy(&g.last[(tick-back)%work.Snapshots])
			for again := tick - back + 1; again <= tick; again++ {
				g.play(again, work.Real(again))
				g.last[again%work.Snapshots].copy(&g.state)
			}
			sum.Add(g.hash())
		}
		if work.Saves(tick) {
			hash := g.hash()
			g.saved = g.save(g.saved[:0])
			for ahead := tick + 1; ahead <= tick+3; ahead++ {
				g.play(ahead, work.Real(ahead))
			}
			g.load(g.saved)
			if g.hash() != hash {
				return 0, errors.New("the game that was loaded isn't the one that was saved")
			}
			sum.Add(hash)
		}
		m.Stop()
	}
	return uint64(sum), nil
}

func (s *state) play(tick int, input uint32) {
	for i := range s.ships {
		if p := &s.ships[i]; p.age&1 == 1 {
			p.Fly(input)
		}
	}
	for i := range s.shots {
		q := &s.shots[i]
		if q.age&1 == 0 {
			continue
		}
		hits := false
		if target := s.ship(q.target); target != nil {
			if hits = q.Chase(&target.Ship); hits {
				target.Hull -= q.Damage()
			}
		}
		if q.Fly(); hits || q.Left <= 0 {
			q.age++
			s.freeShots = append(s.freeShots, uint32(i))
			s.shooting--
		}
	}
	for i := range s.ships {
		if p := &s.ships[i]; p.age&1 == 1 && p.Hull <= 0 {
			p.age++
			s.freeShips = append(s.freeShips, uint32(i))
			s.flying--
			s.kills++
		}
	}
	for i := range s.ships {
		if p := &s.ships[i]; p.age&1 == 1 && p.Fires(tick) {
			s.fire(p, tick)
		}
	}
	if tick%4 == 0 && s.flying < work.MostShips {
		s.spawn()
	}
}

// fire fires a ship's shot at the ship with the next ID.
func (s *state) fire(p *ship, tick int) {
	target := s.next(p.ID)
	if target == (handle{}) || s.shooting == work.MostShots {
		return
	}
	if last := s.shot(p.last); last != nil {
		last.Left += work.Longer
	}
	var slot uint32
	if n := len(s.freeShots); n > 0 {
		slot, s.freeShots = s.freeShots[n-1], s.freeShots[:n-1]
	} else {
		slot = uint32(len(s.shots))
		s.shots = append(s.shots, shot{})
	}
	q := &s.shots[slot]
	*q = shot{Shot: p.Fire(tick), age: q.age + 1, target: target}
	p.last = handle{slot, q.age}
	s.shooting++
}

// next returns the ship with the smallest ID above id, or else with the smallest ID of all, but
// never the ship with id itself.
func (s *state) next(id uint32) (found handle) {
	best := ^uint32(0)
	for i := range s.ships {
		if p := &s.ships[i]; p.age&1 == 1 && p.ID != id && p.ID-id-1 < best { // wraps below id
			best, found = p.ID-id-1, handle{uint32(i), p.age}
		}
	}
	return found
}

func (s *state) spawn() {
	var slot uint32
	if n := len(s.freeShips); n > 0 {
		slot, s.freeShips = s.freeShips[n-1], s.freeShips[:n-1]
	} else {
		slot = uint32(len(s.ships))
		s.ships = append(s.ships, ship{})
	}
	p := &s.ships[slot]
	*p = ship{Ship: work.NewShip(s.nextID), age: p.age + 1}
	s.nextID++
	s.flying++
}

func (s *state) ship(h handle) *ship {
	if h.slot < uint32(len(s.ships)) && h.age&1 == 1 && s.ships[h.slot].age == h.age {
		return &s.ships[h.slot]
	}
	return nil
}

func (s *state) shot(h handle) *shot {
	if h.slot < uint32(len(s.shots)) && h.age&1 == 1 && s.shots[h.slot].age == h.age {
		return &s.shots[h.slot]
	}
	return nil
}

// hash returns a number for the state that doesn't depend on slots.
func (s *state) hash() uint64 {
	var all uint64
	for i := range s.ships {
		if p := &s.ships[i]; p.age&1 == 1 {
			var last uint64
			if q := s.shot(p.last); q != nil {
				last = q.ID
			}
			all += p.Digest(last)
		}
	}
	for i := range s.shots {
		if q := &s.shots[i]; q.age&1 == 1 {
			var target uint32
			if p := s.ship(q.target); p != nil {
				target = p.ID
			}
			all += q.Digest(target)
		}
	}
	var sum work.Sum
	sum.Add(all)
	sum.Add(uint64(s.nextID)<<32 | uint64(s.kills))
	sum.Add(uint64(s.flying)<<32 | uint64(s.shooting))
	return uint64(sum)
}

func (s *state) copy(from *state) {
	ships, shots, freeShips, freeShots := s.ships[:0], s.shots[:0], s.freeShips[:0], s.freeShots[:0]
	*s = *from
	s.ships = append(ships, from.ships...)
	s.shots = append(shots, from.shots...)
	s.freeShips = append(freeShips, from.freeShips...)
	s.freeShots = append(freeShots, from.freeShots...)
}

func (s *state) save(b []byte) []byte {
	put := func(values ...uint32) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	put(s.nextID, s.kills, uint32(s.flying), uint32(s.shooting))
	put(uint32(len(s.ships)), uint32(len(s.shots)), uint32(len(s.freeShips)), uint32(len(s.freeShots)))
	for i := range s.ships {
		p := &s.ships[i]
		put(p.ID, uint32(p.Hull), uint32(p.X), uint32(p.Y), uint32(p.VX), uint32(p.VY), p.age, p.last.slot, p.last.age)
	}
	for i := range s.shots {
		q := &s.shots[i]
		put(uint32(q.ID), uint32(q.ID>>32), uint32(q.X), uint32(q.Y), uint32(q.VX), uint32(q.VY), uint32(q.Left))
		put(q.age, q.target.slot, q.target.age)
	}
	put(s.freeShips...)
	put(s.freeShots...)
	return b
}

func (s *state) load(b []byte) {
	get := func() uint32 {
		v := binary.LittleEndian.Uint32(b)
		b = b[4:]
		return v
	}
	s.nextID, s.kills, s.flying, s.shooting = get(), get(), int(get()), int(get())
	ships, shots, freeShips, freeShots := get(), get(), get(), get()
	s.ships, s.shots, s.freeShips, s.freeShots = s.ships[:0], s.shots[:0], s.freeShips[:0], s.freeShots[:0]
	for range ships {
		s.ships = append(s.ships, ship{
			work.Ship{ID: get(), Hull: int32(get()), X: int32(get()), Y: int32(get()), VX: int32(get()),
				VY: int32(get())},
			get(), handle{get(), get()}})
	}
	for range shots {
		s.shots = append(s.shots, shot{
			work.Shot{ID: uint64(get()) | uint64(get())<<32, X: int32(get()), Y: int32(get()), VX: int32(get()),
				VY: int32(get()), Left: int32(get())},
			get(), handle{get(), get()}})
	}
	for range freeShips {
		s.freeShips = append(s.freeShips, get())
	}
	for range freeShots {
		s.freeShots = append(s.freeShots, get())
	}
}
