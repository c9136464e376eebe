// Package game is the program game with upfront. The game's state is in regions of a budget.
// Package save takes snapshots of the state, restores them, and saves the game.
package game

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/strangers/work"
)

// A snapshot has the whole state, even unused parts. Most of the time the game has far fewer than
// MostShots shots. So the shots are in blocks, each a state of its own, and no snapshot is taken of
// a block without shots.
const (
	blockSize = 256 // shots
	blocks    = work.MostShots / blockSize
)

// start is the number of the snapshots before the first tick. They stay in their rings for the
// whole game, because it is the highest number.
const start = math.MaxUint64

// fileSize is enough for a save game: a delta has at most twice the bytes of its state.
const fileSize = 384 * budget.KiB

// plan has the sizes and limits that budget.Measure measured. Most blocks are seldom used, so no
// page is present before it is touched.
var plan = budget.Plan{
	Name: "game",
	Regions: []budget.RegionPlan{
		{Name: "match", Size: 29 * budget.KiB, State: true},
		{Name: "file", Size: fileSize},
		{Name: "shots", Size: 110 * budget.KiB, Slots: blocks, State: true},
	},
	Limits: budget.Limits{Scopes: 1, Pools: 1, Owned: 1, Labels: 1},
	Pages:  budget.Pages{Prefault: budget.Off},
}

type (
	// match is the state without its shots.
	match struct {
		next  uint32 // ship's ID
		kills uint32
		shots uint32 // the number of shots, which fill the blocks in order
		high  uint32 // above the indices of all ships
		ships [work.MostShips]ship
	}

	// ship is a ship, or none if its ID is 0.
	ship struct {
		work.Ship
		lastID uint64 // the ID of its last shot
		last   uint32 // the last shot's index, if it still lives
		_      [4]byte
	}

	block [blockSize]shot

	// shot is a work.Shot and its target, without the padding that a state may not have. A shot of
	// zeros is none.
	shot struct {
		id           uint64
		x, vx, y, vy int32 // for the order, see fly
		left         int32
		by           uint32 // the index of the ship that fired it, which may be gone
		target       uint32 // the index of its target
		targetID     uint32 // the target's ID, if it still lives
	}
)

var (
	matches = scope.Plain[match]()
	shots   = scope.Plain[block]()
)

func (s *shot) set(to *work.Shot) {
	s.id, s.x, s.y, s.vx, s.vy, s.left = to.ID, to.X, to.Y, to.VX, to.VY, to.Left
}

// game is the current match.
type game struct {
	*match
	blocks [blocks]*block
	slots  []budget.Region        // of the blocks
	rings  [1 + blocks]*save.Ring // the last states of the match, and of each block
	ctx    context.Context
	file   []byte // a save game
}

// Play plays the program with its memory in a budget.
func Play(m *work.Meter) (sum uint64, err error) {
	b, err := budget.Open(plan)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	g := &game{ctx: context.Background(), slots: make([]budget.Region, 0, blocks)}
	defer func() { err = errors.Join(err, g.release()) }()
	if err := g.load(b); err != nil {
		return 0, err
	}
	m.Ready()
	return g.play(m)
}

// load makes the states, and the memory for their snapshots.
func (g *game) load(b *budget.Budget) error {
	region := b.Region("match")
	_, err := budget.Load(g.ctx, region, func(s scope.Scope) (_ *match, err error) {
		g.match, g.rings[0], err = state(region, s, matches)
		g.next = 1
		return g.match, err
	})
	if err != nil {
		return err
	}
	_, err = budget.Load(g.ctx, b.Region("file"), func(s scope.Scope) (*game, error) {
		g.file = s.BytesUnzeroed(fileSize, 64)[:0]
		return g, nil
	})
	if err != nil {
		return err
	}
	for i := range g.blocks {
		slot, err := b.Slots("shots").Acquire()
		if err != nil {
			return err
		}
		g.slots = append(g.slots, slot)
		_, err = budget.Load(g.ctx, slot, func(s scope.Scope) (_ *block, err error) {
			g.blocks[i], g.rings[1+i], err = state(slot, s, shots)
			return g.blocks[i], err
		})
		if err != nil {
			return err
		}
	}
	for _, ring := range g.rings {
		if err := ring.Take(start); err != nil {
			return err
		}
	}
	return nil
}

func (g *game) release() (err error) {
	for _, slot := range g.slots {
		err = errors.Join(err, slot.Release(g.ctx))
	}
	return err
}

// state makes a state, which is one value, and a ring for its snapshots.
func state[T any](r budget.Region, s scope.Scope, root scope.Maker[T]) (*T, *save.Ring, error) {
	st, x := save.Begin(r, s, root)
	return x, save.NewRing(s, work.Snapshots+1, st), nil
}

func (g *game) play(m *work.Meter) (uint64, error) {
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

// tick plays a tick, and then restores earlier ticks or saves and loads the game, as the tick
// requires.
func (g *game) tick(tick int, sum *work.Sum) error {
	g.step(tick, work.Guess(tick))
	if err := g.take(tick); err != nil {
		return err
	}
	if back := work.Back(tick); back > 0 {
		if err := g.restore(tick - back); err != nil {
			return err
		}
		for t := tick - back + 1; t <= tick; t++ {
			g.step(t, work.Real(t))
			if err := g.take(t); err != nil {
				return err
			}
		}
		sum.Add(g.hash())
	}
	if !work.Saves(tick) {
		return nil
	}
	hash := g.hash()
	if err := g.save(tick); err != nil {
		return err
	}
	for t := tick + 1; t <= tick+3; t++ {
		g.step(t, work.Real(t))
	}
	if err := g.open(); err != nil {
		return err
	}
	if opened := g.hash(); opened != hash {
		return fmt.Errorf("the hash was %#x when the game was saved, and is %#x", hash, opened)
	}
	sum.Add(hash)
	return nil
}

// used returns the rings of the match and of the blocks that have shots.
func (g *game) used() []*save.Ring {
	return g.rings[:1+(g.shots+blockSize-1)/blockSize]
}

// take takes a snapshot of the state after a tick.
//
// A block's ring has no snapshot of ticks after which the block had no shots. It may still have an
// unused snapshot from before a tick was played again, but it has room for the last ticks anyway.
func (g *game) take(tick int) error {
	for _, ring := range g.used() {
		if err := ring.Take(uint64(tick)); err != nil {
			return err
		}
	}
	return nil
}

func (g *game) restore(tick int) error {
	if err := g.rings[0].Restore(g.ctx, uint64(tick)); err != nil {
		return err
	}
	for _, ring := range g.used()[1:] {
		if err := ring.Restore(g.ctx, uint64(tick)); err != nil {
			return err
		}
	}
	return nil
}

// save writes the state after a tick to the file. For each used part, it writes the difference from
// the state before the first tick, which each process has. Unlike Ring.Read, open makes no Go
// allocation.
func (g *game) save(tick int) (err error) {
	g.file = g.file[:0]
	for _, ring := range g.used() {
		at := len(g.file)
		g.file = append(g.file, 0, 0, 0, 0)
		if g.file, err = ring.Delta(g.file, start, uint64(tick)); err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(g.file[at:], uint32(len(g.file)-at-4))
	}
	return nil
}

func (g *game) open() error {
	ring := 0
	for rest := g.file; len(rest) > 0; ring++ {
		end := 4 + binary.LittleEndian.Uint32(rest)
		number, err := g.rings[ring].Apply(rest[4:end])
		if err != nil {
			return err
		}
		if err := g.rings[ring].Restore(g.ctx, number); err != nil {
			return err
		}
		rest = rest[end:]
	}
	return nil
}

func (g *game) step(tick int, input uint32) {
	ships := g.ships[:g.high]
	for i := range ships {
		if s := &ships[i]; s.ID != 0 {
			s.Fly(input)
		}
	}
	g.fly()
	for i := range ships {
		if s := &ships[i]; s.ID != 0 && s.Hull <= 0 {
			*s = ship{}
			g.kills++
		}
	}
	for i := range ships {
		if s := &ships[i]; s.ID != 0 && s.Fires(tick) {
			g.fire(uint32(i), tick)
		}
	}
	if tick%4 == 0 {
		g.arrive()
	}
}

// fly moves the shots.
//
// A shot's fields are in another order than a work.Shot's. In the same order, the compiler would
// copy two adjacent fields at once, and each copy would wait until the single writes of the rules
// reach the cache.
func (g *game) fly() {
	var moved work.Shot
	for b, first := 0, uint32(0); first < g.shots; b, first = b+1, first+blockSize {
		block := g.blocks[b]
		for i := uint32(0); i < blockSize && first+i < g.shots; {
			s := &block[i]
			moved.X, moved.Y, moved.VX, moved.VY, moved.Left = s.x, s.y, s.vx, s.vy, s.left
			hits := false
			if target := g.ship(s.target); target.ID == s.targetID {
				if hits = moved.Chase(&target.Ship); hits {
					moved.ID = s.id
					target.Hull -= moved.Damage()
				}
			}
			moved.Fly()
			if hits || moved.Left <= 0 {
				g.remove(first + i) // the last shot takes its place
				continue
			}
			s.x, s.y, s.vx, s.vy, s.left = moved.X, moved.Y, moved.VX, moved.VY, moved.Left
			i++
		}
	}
}

// ship returns the ship at an index. The caller compares its ID; an empty place has the ID 0.
func (g *game) ship(index uint32) *ship { return &g.ships[index%work.MostShips] }

// shot returns the shot at an index. The caller compares its ID; an empty place has the ID 0.
func (g *game) shot(index uint32) *shot {
	return &g.blocks[index/blockSize%blocks][index%blockSize]
}

// remove removes a shot. The last shot takes its place.
func (g *game) remove(index uint32) {
	g.shots--
	s, last := g.shot(index), g.shot(g.shots)
	if by := g.ship(last.by); by.lastID == last.id {
		by.last = index
	}
	*s = *last
	*last = shot{}
}

func (g *game) fire(by uint32, tick int) {
	s := &g.ships[by]
	target, ok := g.target(by)
	if !ok || g.shots == work.MostShots {
		return
	}
	if last := g.shot(s.last); last.id == s.lastID && last.id != 0 {
		last.left += work.Longer
	}
	fired := s.Fire(tick)
	shot := g.shot(g.shots)
	shot.set(&fired)
	shot.by, shot.target, shot.targetID = by, target, g.ships[target].ID
	s.last, s.lastID = g.shots, fired.ID
	g.shots++
}

// target returns the target of a ship: the ship with the next higher ID, or else with the lowest
// ID. ok is false if the ship is alone.
func (g *game) target(by uint32) (target uint32, ok bool) {
	id, best := g.ships[by].ID, uint32(math.MaxUint32)
	for i := range g.ships[:g.high] {
		// Modulo 2^32 the lower IDs follow the higher ones, and the ship's own ID is last.
		if s := &g.ships[i]; s.ID != 0 && s.ID-id-1 < best {
			best, target, ok = s.ID-id-1, uint32(i), true
		}
	}
	return target, ok
}

func (g *game) arrive() {
	for i := range g.ships {
		if s := &g.ships[i]; s.ID == 0 {
			*s = ship{Ship: work.NewShip(g.next)}
			g.next++
			g.high = max(g.high, uint32(i+1))
			return
		}
	}
}

func (g *game) hash() uint64 {
	var total, ships uint64
	for i := range g.ships[:g.high] {
		s := &g.ships[i]
		if s.ID == 0 {
			continue
		}
		ships++
		var last uint64
		if g.shot(s.last).id == s.lastID {
			last = s.lastID
		}
		total += s.Digest(last)
	}
	var shot work.Shot
	for i := range g.shots {
		s := g.shot(i)
		var target uint32
		if g.ship(s.target).ID == s.targetID {
			target = s.targetID
		}
		shot.ID, shot.X, shot.Y, shot.VX, shot.VY, shot.Left = s.id, s.x, s.y, s.vx, s.vy, s.left
		total += shot.Digest(target)
	}
	var sum work.Sum
	sum.Add(total)
	sum.Add(uint64(g.next)<<32 | uint64(g.kills))
	sum.Add(ships<<32 | uint64(g.shots))
	return uint64(sum)
}
