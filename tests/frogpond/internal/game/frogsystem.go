package game

import (
	"bytes"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// frogSystem is the FrogSystem of DICE's talk, an object of the level. Its constructor opens a lock
// and a log file. When the level closes, its finalizer runs before the finalizers of the lock and
// the file. The room and the frogs still exist then, and it logs their last counts.
type frogSystem struct {
	log   log
	level [8]byte
	room  scope.Addr[Room]
}

// frogs is a pool of frogs with two names for each. Loops over all frogs use the place in the pool.
// A handle detects that the frog is gone.
type frogs struct {
	pool    scope.HandlePool[Frog]
	handles []arena.Handle[Frog] // by place: the latest frog there
}

// voice is the song of a frog. It is part of the state, so it has no finalizer: a rollback can't
// undo a finalizer's effect.
type voice struct {
	Singer arena.Handle[Frog]
	Left   uint64 // ticks
}

// chorus is the group of frogs that croak in one tick. It is an object in a scope of the tick, and
// its finalizer runs at the end of that scope.
type chorus struct {
	Room   scope.Addr[Room]
	Voices uint64
}

const (
	maxVoices = 32 // further singers are not heard
	songTicks = 20
)

var (
	frogSystemMaker = scope.Object((*frogSystem).close)
	handleMaker     = scope.Plain[arena.Handle[Frog]]()
	voiceMaker      = scope.Plain[voice]()
	chorusMaker     = scope.Object((*chorus).end)
)

// openFrogSystem makes the frog system of a level in s, after the objects that its finalizer reads.
func (l *Level) openFrogSystem(s scope.Scope, logName string) (err error) {
	l.here = scope.AddrOf(s, l.Room)
	l.system, err = frogSystemMaker.Make(s, func(f *frogSystem) (err error) {
		copy(f.level[:], l.Name)
		f.room = l.here
		f.log, err = openLog(s, logName)
		return err
	})
	return err
}

func (f *frogSystem) close() error {
	name, room := string(bytes.TrimRight(f.level[:], "\x00")), f.room.Get()
	f.log.note(name, "choruses", room.Choruses)
	f.log.note(name, "voices", room.Voices)
	f.log.note(name, "closed after frogs", room.Spawned)
	return nil
}

// Note writes a line into the level's log. Workers may call it at the same time.
func (l *Level) Note(what string, number uint64) { l.system.log.note(l.Name, what, number) }

// sing plays a tick of the voices. Some end, and frogs that croaked in this tick and still live
// begin to sing. s is a scope for this chorus only.
func (g *Game) sing(s scope.Scope) error {
	l := g.Level
	for i := range l.voices.Cap() {
		v := l.voices.At(i)
		if v == nil {
			continue
		}
		if v.Left--; v.Left == 0 || l.Frogs.named(v.Singer) == nil {
			l.voices.Put(v)
		}
	}
	var c *chorus
	for k := l.Room.since(l.Room.Heard); k < l.Room.Happened; k++ {
		e := &l.events[k%eventsLength]
		// a frog that croaked may be gone in the same tick
		if e.Kind != croaked || l.Frogs.named(e.Frog) == nil {
			continue
		}
		if c == nil {
			c = chorusMaker.New(s)
			c.Room = l.here
		}
		if v := l.voices.Get(); v != nil {
			*v = voice{Singer: e.Frog, Left: songTicks}
			c.Voices++
		}
	}
	return nil
}

// end adds the chorus to the room's counts.
func (c *chorus) end() error {
	if room := c.Room.Get(); room != nil {
		room.Choruses++
		room.Voices += c.Voices
	}
	return nil
}

// At returns the frog at a place, or nil.
func (p *frogs) At(i int) *Frog { return p.pool.At(p.handles[i]) }

// named returns the frog of a handle, or nil if that frog is gone, even if another frog has its
// place.
func (p *frogs) named(h arena.Handle[Frog]) *Frog { return p.pool.At(h) }

// get returns a new frog and its place, or nil if all chunks are taken.
func (p *frogs) get() (f *Frog, i int) {
	f, h := p.pool.Get()
	if f == nil {
		return nil, 0
	}
	i = p.pool.Index(h)
	p.handles[i] = h
	return f, i
}

func (p *frogs) put(i int) { p.pool.Put(p.handles[i]) }

// Cap returns the number of places, Live the number of frogs, Peak the largest Live.
func (p *frogs) Cap() int  { return p.pool.Cap() }
func (p *frogs) Live() int { return p.pool.Live() }
func (p *frogs) Peak() int { return p.pool.Peak() }
