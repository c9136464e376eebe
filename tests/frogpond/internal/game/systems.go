package game

import (
	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Systems is what outlives a map: the region systems. Every tenth map it is
// rewound and built anew, as after a change of settings.
type Systems struct {
	log       log
	grid      grid
	ring      *ring
	Durations []uint32 // of the ticks, nanoseconds
	base      arena.Base
}

// ring keeps the last events.
type ring struct {
	Count  uint64 // of all events; the newest is at (Count-1) % length
	Events arena.Slice[event]
}

// event is what players and frogs hear of.
type event struct {
	Tick uint32
	Kind eventKind
	Who  int32 // the frog's place in the pool
	At   doom.Point
	Frog arena.Handle[Frog] // in the ring, which outlives the frogs, it names none
}

// eventKind says what happened to a frog.
type eventKind uint32

// The kinds of events.
const (
	spawned eventKind = iota + 1
	croaked
	caught
	died
)

const (
	ringLength = 1024
	maxFrogs   = 4096 // more than any map of the game has things
)

var (
	ringMaker  = scope.Plain[ring]()
	eventMaker = scope.Plain[event]()
	indexMaker = scope.Plain[int32]()
)

// loadSystems builds the systems in s.
func loadSystems(s scope.Scope, base arena.Base, logName string, ticks int) (*Systems, error) {
	sys := &Systems{base: base}
	var err error
	if sys.log, err = openLog(s, logName); err != nil {
		return nil, err
	}
	sys.grid = grid{heads: indexMaker.Slice(s, gridCells), next: indexMaker.Slice(s, maxFrogs)}
	sys.ring = ringMaker.New(s)
	sys.ring.Events = arena.SliceOf(base, eventMaker.Slice(s, ringLength))
	sys.Durations = countMaker.Slice(s, ticks)
	sys.log.note("systems", "built for ticks", uint64(ticks))
	return sys, nil
}

// reset prepares the systems for a new map.
func (sys *Systems) reset() {
	sys.ring.Count = 0
	clear(sys.ring.Events.Get(sys.base))
}

// record puts an event into the ring.
func (sys *Systems) record(e event) {
	events := sys.ring.Events.Get(sys.base)
	e.Frog = 0
	events[sys.ring.Count%uint64(len(events))] = e
	sys.ring.Count++
}

// grid finds frogs near a point: a hash table of squares, filled at each tick.
// It outlives the levels, so it knows frogs by their place in the pool.
type grid struct {
	heads []int32 // by square: a frog's place plus 1
	next  []int32 // by frog: the next one in the square
}

const (
	gridCells = 4096
	gridBits  = doom.UnitBits + 6 // squares of 64 units
)

func (g *grid) capacity() int { return len(g.next) }

func (g *grid) clear() { clear(g.heads) }

func (g *grid) add(i int, p doom.Point) {
	cell := gridCell(p.X>>gridBits, p.Y>>gridBits)
	g.next[i] = g.heads[cell]
	g.heads[cell] = int32(i + 1)
}

func gridCell(column, row int32) uint32 {
	return (uint32(column)*0x9e3779b1 ^ uint32(row)*0x85ebca6b) >> 20
}
