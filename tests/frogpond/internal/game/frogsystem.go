package game

import (
	"bytes"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// frogSystem is the FrogSystem of DICE's talk, an object of the level: its constructor opens a lock
// and a log file, and when the level closes it dies before them, and before the room and the frogs.
// At the end it writes what became of them.
type frogSystem struct {
	log   log
	level [8]byte
	room  scope.Addr[Room]
}

// frogs is a pool whose frogs have two names: the place in the pool, for who asks for all of them,
// and a handle, for who wants to know later whether it is still that frog.
type frogs struct {
	pool    scope.HandlePool[Frog]
	handles []arena.Handle[Frog] // by place, of the frog that was there last
}

// voice is the song of a frog. It is state, and has no finalizer: what has run can't be undone.
type voice struct {
	Singer arena.Handle[Frog]
	Left   uint64 // ticks
}

// chorus is the frogs that croak in one tick. It lives in a scope of the frame, and its finalizer
// has run when the tick is over.
type chorus struct {
	Room   scope.Addr[Room]
	Voices uint64
}

const (
	maxVoices = 32 // who finds none free isn't heard
	songTicks = 20
)

var (
	frogSystemMaker = scope.Object((*frogSystem).close)
	handleMaker     = scope.Plain[arena.Handle[Frog]]()
	voiceMaker      = scope.Plain[voice]()
	chorusMaker     = scope.Object((*chorus).end)
)

// openFrogSystem makes the frog system of a level in s, after all whose end it tells of.
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

// close writes the last lines.
func (f *frogSystem) close() error {
	name, room := string(bytes.TrimRight(f.level[:], "\x00")), f.room.Get()
	f.log.note(name, "choruses", room.Choruses)
	f.log.note(name, "voices", room.Voices)
	f.log.note(name, "closed after frogs", room.Spawned)
	return nil
}

// Note writes a line into the level's log. Workers may call it.
func (l *Level) Note(what string, number uint64) { l.system.log.note(l.Name, what, number) }

// sing is a tick of the voices: some end, and those who croaked and are still there begin. s is a
// scope for this chorus alone.
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
		if e.Kind != croaked || l.Frogs.named(e.Frog) == nil { // it died, or a player was quick
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

// end adds the chorus to what the room counts.
func (c *chorus) end() error {
	if room := c.Room.Get(); room != nil {
		room.Choruses++
		room.Voices += c.Voices
	}
	return nil
}

// At is the frog at a place, or nil.
func (p *frogs) At(i int) *Frog { return p.pool.At(p.handles[i]) }

// named is the frog that a handle names, or nil: it is gone, whoever has its place now.
func (p *frogs) named(h arena.Handle[Frog]) *Frog { return p.pool.At(h) }

// get gives a frog and its place; nil when all chunks are taken.
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

// Cap, Live and Peak are the pool's.
func (p *frogs) Cap() int  { return p.pool.Cap() }
func (p *frogs) Live() int { return p.pool.Live() }
func (p *frogs) Peak() int { return p.pool.Peak() }
