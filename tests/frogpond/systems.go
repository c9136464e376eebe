package main

import (
	"strconv"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Systems is what outlives a map: the region systems. Every tenth map it is
// rewound and built anew, as after a change of settings.
type Systems struct {
	Lock      *Lock
	Log       *LogFile
	Frogs     *FrogSystem
	Grid      Grid
	Ring      *Ring
	Durations []uint32 // of the ticks, nanoseconds
	base      arena.Base
}

// FrogSystem counts what became of the frogs of this map.
type FrogSystem struct {
	Spawned, Croaked, Caught, Died uint64
	Refused                        uint64 // for want of a chunk in the pool: expected, not an error
}

// Ring keeps the last events.
type Ring struct {
	Count  uint64 // of all events; the newest is at (Count-1) % length
	Events arena.Slice[Event]
}

// Event is what players and frogs hear of.
type Event struct {
	Tick uint32
	Kind EventKind
	Who  int32 // the frog's place in the pool
	At   Point
}

// EventKind says what happened to a frog.
type EventKind uint32

// The kinds of events.
const (
	Spawned EventKind = iota + 1
	Croaked
	Caught
	Died
)

const (
	ringLength = 1024
	maxFrogs   = 4096 // more than any map of the game has things
)

var (
	lockMaker       = scope.Object((*Lock).close)
	logMaker        = scope.Object((*LogFile).close)
	frogSystemMaker = scope.Plain[FrogSystem]()
	ringMaker       = scope.Plain[Ring]()
	eventMaker      = scope.Plain[Event]()
	indexMaker      = scope.Plain[int32]()
)

// loadSystems builds the systems in s. The lock comes before the log: finalizers
// run newest first, so the log can still be locked when it closes.
func loadSystems(s scope.Scope, base arena.Base, logName string, ticks int) (*Systems, error) {
	sys := &Systems{base: base}
	var err error
	if sys.Lock, err = lockMaker.Make(s, (*Lock).open); err != nil {
		return nil, err
	}
	if sys.Log, err = logMaker.Make(s, func(f *LogFile) error { return f.open(logName) }); err != nil {
		return nil, err
	}
	sys.Frogs = frogSystemMaker.New(s)
	sys.Grid = Grid{heads: indexMaker.Slice(s, gridCells), next: indexMaker.Slice(s, maxFrogs)}
	sys.Ring = ringMaker.New(s)
	sys.Ring.Events = arena.SliceOf(base, eventMaker.Slice(s, ringLength))
	sys.Durations = countMaker.Slice(s, ticks)
	sys.note("systems", "built for ticks", uint64(ticks))
	return sys, nil
}

// seal ends boot: from here on no memory is asked of the system.
func (sys *Systems) seal(b *budget.Budget) error {
	err := b.Seal()
	sys.note("budget", "sealed, bytes", b.Size())
	return err
}

// reset prepares the systems for a new map.
func (sys *Systems) reset() {
	*sys.Frogs = FrogSystem{}
	sys.Ring.Count = 0
	clear(sys.Ring.Events.Get(sys.base))
}

// record puts an event into the ring.
func (sys *Systems) record(e Event) {
	events := sys.Ring.Events.Get(sys.base)
	events[sys.Ring.Count%uint64(len(events))] = e
	sys.Ring.Count++
}

// note writes a line into the log. Workers may call it: the lock keeps lines apart.
func (sys *Systems) note(name, what string, number uint64) {
	sys.Lock.take()
	sys.Log.line(name, what, number)
	sys.Lock.give()
}

// line formats into the log's own buffer, since play must not allocate.
func (f *LogFile) line(name, what string, number uint64) {
	text := append(f.buffer[:0], name...)
	text = append(text, ' ')
	text = append(text, what...)
	text = append(text, ' ')
	text = strconv.AppendUint(text, number, 10)
	f.write(append(text, '\n'))
}

// Grid finds frogs near a point: a hash table of squares, filled at each tick.
// It outlives the levels, so it knows frogs by their place in the pool.
type Grid struct {
	heads []int32 // by square: a frog's place plus 1
	next  []int32 // by frog: the next one in the square
}

const (
	gridCells = 4096
	gridBits  = unitBits + 6 // squares of 64 units
)

func (g *Grid) capacity() int { return len(g.next) }

func (g *Grid) clear() { clear(g.heads) }

func (g *Grid) add(i int, p Point) {
	cell := gridCell(p.X>>gridBits, p.Y>>gridBits)
	g.next[i] = g.heads[cell]
	g.heads[cell] = int32(i + 1)
}

func gridCell(column, row int32) uint32 {
	return (uint32(column)*0x9e3779b1 ^ uint32(row)*0x85ebca6b) >> 20
}
