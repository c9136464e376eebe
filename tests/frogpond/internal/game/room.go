package game

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Room is the root of a level's state: the data that a tick leaves for the next. The state is the
// room, its slices, and the pools and the graph's instance made after it. It is one stretch of the
// region, of plain data without padding and addresses, so it can be copied, compared and restored.
// The same state and the same inputs lead to the same next state.
type Room struct {
	counts
	Sectors arena.Slice[doom.Sector]
	Frogs   arena.Slice[arena.Handle[Frog]] // by place: the latest frog there
	Lights  arena.Slice[light]              // these three have space for the largest case
	Scrolls arena.Slice[scroll]
	Carries arena.Slice[carry]
	Events  arena.Slice[event] // the newest is at (Happened-1) % eventsLength
}

type counts struct {
	Seed     uint64
	Instance flow.Instance // of the level's graph
	Happened uint64        // events so far
	Heard    uint64        // events before the last tick; frogs hear the later ones

	Spawned, Croaked, Caught, Died uint64 // frogs
	FrogsRefused                   uint64 // no chunk of the pool was free; this is no error
	Choruses, Voices               uint64

	Tick, LightCount, ScrollCount, CarryCount uint32

	// Fired lines; actions without a free mover; actions with a tag that no sector has; errors of
	// the graph.
	Fired, Refused, Nowhere, Errors uint32
}

// event is an event of a frog that players and frogs hear.
type event struct {
	Tick uint32
	Kind eventKind
	At   doom.Point
	Frog arena.Handle[Frog]
}

// eventKind is the fate of a frog.
type eventKind uint32

// The kinds of events.
const (
	spawned eventKind = iota + 1
	croaked
	caught
	died
)

// eventsLength is the number of events kept. In a tick with more events, the first are not heard.
const eventsLength = 512

var (
	roomMaker  = scope.Plain[Room]()
	eventMaker = scope.Plain[event]()
)

// makeState makes the level's state. The parts of the level made before it never change, and the
// parts made after it are not saved.
func (l *Level) makeState(region budget.Region, s scope.Scope, players int) error {
	l.state, l.Room = save.Begin(region, s, roomMaker)
	l.state.Of("map "+l.Name, l.Sum)
	l.PlaceSectors(s)
	l.Room.Sectors = arena.SliceOf(l.Base, l.Sectors)
	frogs := min(len(l.Things), maxFrogs)
	l.Frogs.pool = frogMaker.HandlePool(s, frogs)
	l.Room.Frogs = arena.SliceOf(l.Base, handleMaker.Slice(s, frogs))
	l.Players = playerMaker.Pool(s, players)
	l.voices = voiceMaker.Pool(s, maxVoices)
	l.Room.Events = arena.SliceOf(l.Base, eventMaker.Slice(s, eventsLength))
	l.World.makeState(s)
	l.made = *l.Room
	l.made.counts = counts{}
	l.state.Verify(l.verify)
	return l.state.Rebuild(l.rebuild)
}

// keepSnapshots ends the state, and makes a ring of count snapshots.
func (l *Level) keepSnapshots(s scope.Scope, count int) {
	l.Snapshots = save.NewRing(s, count, l.state)
	l.StateBytes = l.state.Size()
}

// rebuild makes the Go views of the state. It runs after each restore, and may run at any time
// between ticks.
func (l *Level) rebuild() error {
	r, w := l.Room, l.World
	l.Sectors = r.Sectors.Get(l.Base)
	l.Frogs.handles = r.Frogs.Get(l.Base)
	l.events = r.Events.Get(l.Base)
	w.lights = r.Lights.Get(l.Base)
	w.scrolls = r.Scrolls.Get(l.Base)
	w.carries = r.Carries.Get(l.Base)
	w.lights = w.lights[:r.LightCount]
	w.scrolls = w.scrolls[:r.ScrollCount]
	w.carries = w.carries[:r.CarryCount]
	l.grid.filled = false
	if r.Instance != 0 && !w.script.graph.Live(r.Instance) { // the state is of a forged file
		return fmt.Errorf("%s: the graph's instance isn't live", l.Name)
	}
	return nil
}

func (l *Level) happen(kind eventKind, frog int, at doom.Point) {
	r := l.Room
	l.events[r.Happened%eventsLength] = event{r.Tick, kind, at, l.Frogs.handles[frog]}
	r.Happened++
}

// since returns the number of the first kept event at or after from.
func (r *Room) since(from uint64) uint64 {
	if r.Happened-from > eventsLength {
		return r.Happened - eventsLength
	}
	return from
}

// Hash returns a hash of the whole state. Bots' brains aren't part of it.
func (g *Game) Hash() doom.Hash {
	l, w := g.Level, g.Level.World
	h := doom.HashStart
	addSlice(&h, unsafe.Slice(&l.Room.counts, 1))
	addSlice(&h, l.Sectors)
	addSlice(&h, l.Frogs.handles)
	addSlice(&h, l.events)
	addSlice(&h, w.lights)
	addSlice(&h, w.scrolls)
	addSlice(&h, w.carries)
	for i := range l.Frogs.Cap() {
		addLive(&h, i, l.Frogs.At(i))
	}
	for i := range l.Players.Cap() {
		addLive(&h, i, l.Players.At(i))
	}
	for i := range l.voices.Cap() {
		addLive(&h, i, l.voices.At(i))
	}
	for i := range w.movers.Cap() {
		addLive(&h, i, w.movers.At(i))
	}
	for i := range w.script.variables { // all of a graph's variables are bools
		if w.script.graph.Value(l.Room.Instance, i).(bool) {
			h.Add(uint64(i))
		}
	}
	return h
}

// addLive adds the i-th chunk of a pool, if it is live.
func addLive[T any](h *doom.Hash, i int, x *T) {
	if x != nil {
		h.Add(uint64(i))
		addSlice(h, unsafe.Slice(x, 1))
	}
}

// addSlice adds all bytes of a slice with a type without padding.
func addSlice[T any](h *doom.Hash, s []T) {
	var z T
	start := (*byte)(unsafe.Pointer(unsafe.SliceData(s)))
	h.AddBytes(unsafe.Slice(start, len(s)*int(unsafe.Sizeof(z))))
}
