// Package game is the program game with upfront: its state lies in a region, and package save takes
// it back, keeps it and loads it.
package game

import (
	"bytes"
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/strangers/work"
)

var plan = budget.Plan{
	Name:    "game",
	Regions: []budget.RegionPlan{{Name: "match", Size: 4 * budget.MiB, State: true}},
	Pages:   budget.Pages{Prefault: budget.Off},
}

// match is what isn't a ship or a shot of the state.
type match struct {
	next  uint32 // ship's ID
	kills uint32
}

type ship struct {
	work.Ship
	last arena.Handle[shot]
}

// shot is a work.Shot, whose padding a state may not have, and its target.
type shot struct {
	id           uint64
	x, y, vx, vy int32
	left         int32
	_            [4]byte
	target       arena.Handle[ship]
}

func (s *shot) get() work.Shot {
	return work.Shot{ID: s.id, X: s.x, Y: s.y, VX: s.vx, VY: s.vy, Left: s.left}
}

func (s *shot) set(to *work.Shot) {
	s.id, s.x, s.y, s.vx, s.vy, s.left = to.ID, to.X, to.Y, to.VX, to.VY, to.Left
}

var (
	matches = scope.Plain[match]()
	ships   = scope.Plain[ship]()
	shots   = scope.Plain[shot]()
)

// game is the match that is played.
type game struct {
	ctx   context.Context
	match *match
	ships scope.HandlePool[ship]
	shots scope.HandlePool[shot]
	ring  *save.Ring // the state after each of the last ticks
	file  []byte
	read  bytes.Reader
}

// Play plays the program with its memory in a budget.
func Play(m *work.Meter) (sum uint64, err error) {
	b, err := budget.Open(plan)
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := b.Close(); err == nil {
			err = e
		}
	}()
	return play(b, m)
}

func play(b *budget.Budget, m *work.Meter) (uint64, error) {
	g, err := load(b)
	if err != nil {
		return 0, err
	}
	m.Ready()
	var sum work.Sum
	for tick := range work.GameTicks {
		m.Start()
		if err := g.tick(tick, &sum); err != nil {
			return 0, fmt.Errorf("tick %d: %w", tick, err)
		}
		m.Stop()
	}
	return uint64(sum), nil
}

// load makes the state, and the memory for its snapshots.
func load(b *budget.Budget) (*game, error) {
	region := b.Region("match")
	loaded, err := budget.Load(context.Background(), region, func(s scope.Scope) (*game, error) {
		g := &game{ctx: context.Background()}
		var state *save.State
		state, g.match = save.Begin(region, s, matches)
		g.match.next = 1
		g.ships = ships.HandlePool(s, work.MostShips)
		g.shots = shots.HandlePool(s, work.MostShots)
		g.ring = save.NewRing(s, work.Snapshots, state)
		g.file = s.BytesUnzeroed(g.ring.Size()+8*budget.KiB, 64)[:0]
		return g, nil
	})
	if err != nil {
		return nil, err
	}
	return loaded.Get(), nil
}

// tick plays a tick, and those before it again, and saves and loads the game, as the tick wants it.
func (g *game) tick(tick int, sum *work.Sum) error {
	g.step(tick, work.Guess(tick))
	if err := g.ring.Take(uint64(tick)); err != nil {
		return err
	}
	if back := work.Back(tick); back > 0 {
		if err := g.ring.Restore(g.ctx, uint64(tick-back)); err != nil {
			return err
		}
		for t := tick - back + 1; t <= tick; t++ {
			g.step(t, work.Real(t))
			if err := g.ring.Take(uint64(t)); err != nil {
				return err
			}
		}
		sum.Add(g.hash())
	}
	if work.Saves(tick) {
		return g.save(tick, sum)
	}
	return nil
}

// save saves the game as it is after a tick, plays on, and loads it.
func (g *game) save(tick int, sum *work.Sum) error {
	hash := g.hash()
	var err error
	if g.file, err = g.ring.AppendFile(g.file[:0], uint64(tick)); err != nil {
		return err
	}
	for t := tick + 1; t <= tick+3; t++ {
		g.step(t, work.Real(t))
	}
	g.read.Reset(g.file)
	number, err := g.ring.Read(&g.read)
	if err != nil {
		return err
	}
	if err := g.ring.Restore(g.ctx, number); err != nil {
		return err
	}
	if loaded := g.hash(); loaded != hash {
		return fmt.Errorf("the hash was %#x and is %#x after loading", hash, loaded)
	}
	sum.Add(hash)
	return nil
}

// step plays the state for a tick.
func (g *game) step(tick int, input uint32) {
	for _, s := range g.ships.All() {
		s.Fly(input)
	}
	for h, s := range g.shots.All() {
		moved, hits := s.get(), false
		if target := g.ships.At(s.target); target != nil {
			if hits = moved.Chase(&target.Ship); hits {
				target.Hull -= moved.Damage()
			}
		}
		moved.Fly()
		if hits || moved.Left <= 0 {
			g.shots.Put(h)
			continue
		}
		s.set(&moved)
	}
	for h, s := range g.ships.All() {
		if s.Hull <= 0 {
			g.ships.Put(h)
			g.match.kills++
		}
	}
	for _, s := range g.ships.All() {
		if s.Fires(tick) {
			g.fire(s, tick)
		}
	}
	if tick%4 == 0 {
		if s, _ := g.ships.Get(); s != nil { // fewer than MostShips
			s.Ship = work.NewShip(g.match.next)
			g.match.next++
		}
	}
}

// fire has a ship fire a shot at its target, if there is one and room for the shot.
func (g *game) fire(s *ship, tick int) {
	target, ok := g.target(s)
	if !ok {
		return
	}
	fired, h := g.shots.Get()
	if fired == nil {
		return // there are MostShots
	}
	if last := g.shots.At(s.last); last != nil {
		last.left += work.Longer
	}
	shot := s.Fire(tick)
	fired.set(&shot)
	fired.target, s.last = target, h
}

// target returns the ship that a ship fires at: that with the next ID, or with the first one.
func (g *game) target(from *ship) (target arena.Handle[ship], ok bool) {
	best := ^uint32(0)
	for h, s := range g.ships.All() {
		// IDs above from's come before those below: they are closer to it, modulo 2^32.
		if ahead := s.ID - from.ID - 1; s != from && ahead < best {
			best, target, ok = ahead, h, true
		}
	}
	return target, ok
}

// hash returns the hash of the state.
func (g *game) hash() uint64 {
	var total uint64
	for _, s := range g.ships.All() {
		var last uint64
		if shot := g.shots.At(s.last); shot != nil {
			last = shot.id
		}
		total += s.Digest(last)
	}
	for _, s := range g.shots.All() {
		var target uint32
		if ship := g.ships.At(s.target); ship != nil {
			target = ship.ID
		}
		shot := s.get()
		total += shot.Digest(target)
	}
	var sum work.Sum
	sum.Add(total)
	sum.Add(uint64(g.match.next)<<32 | uint64(g.match.kills))
	sum.Add(uint64(g.ships.Live())<<32 | uint64(g.shots.Live()))
	return uint64(sum)
}
