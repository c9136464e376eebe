package game

import (
	"bytes"
	"fmt"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// frogSystem is the FrogSystem of DICE's talk, an object of the level: its constructor opens a lock
// and a log file and makes the pool of frogs, and when the level closes it dies before them. It
// counts what became of its frogs.
type frogSystem struct {
	log                            log
	level                          [8]byte
	Spawned, Croaked, Caught, Died uint64
	Refused                        uint64 // for want of a chunk in the pool: expected, not an error
	Choruses, Voices, Ended        uint64
}

// frogs is a pool whose frogs have two names: the place in the pool, for who asks for all of them,
// and a handle, for who wants to know later whether it is still that frog.
type frogs struct {
	pool    scope.HandlePool[Frog]
	handles []arena.Handle[Frog] // by place, of the frog that was there last
}

// voice is the song of a frog. Its finalizer runs when the song is over, when the frog is gone, or
// with the level.
type voice struct {
	Singer arena.Handle[Frog]
	System scope.Addr[frogSystem]
	Left   uint64 // ticks
}

// chorus is the frogs that croak in one tick. It lives in a scope of the frame.
type chorus struct {
	System scope.Addr[frogSystem]
	Voices uint64
}

const (
	maxVoices = 32 // who finds none free isn't heard
	songTicks = 20
)

var (
	frogSystemMaker = scope.Object((*frogSystem).close)
	handleMaker     = scope.Plain[arena.Handle[Frog]]()
	voiceMaker      = scope.Object((*voice).end)
	chorusMaker     = scope.Object((*chorus).end)
)

// openFrogSystem makes the frog system of a level in s. The voices come after it: finalizers run
// newest first, so it counts those that the level cuts short, says so in its log, and then the log
// and the lock close.
func (l *Level) openFrogSystem(s scope.Scope, logName string, capacity int) (err error) {
	l.system, err = frogSystemMaker.Make(s, func(f *frogSystem) (err error) {
		copy(f.level[:], l.Name)
		l.Frogs = frogs{frogMaker.HandlePool(s, capacity), handleMaker.Slice(s, capacity)}
		f.log, err = openLog(s, logName)
		return err
	})
	if err != nil {
		return err
	}
	l.here = scope.AddrOf(s, l.system)
	l.voices = voiceMaker.Pool(s, maxVoices)
	return nil
}

// close writes the last lines. Each voice has ended exactly once, or a finalizer ran twice or never.
func (f *frogSystem) close() error {
	name := string(bytes.TrimRight(f.level[:], "\x00"))
	f.log.note(name, "choruses", f.Choruses)
	f.log.note(name, "voices", f.Voices)
	f.log.note(name, "closed after frogs", f.Spawned)
	if f.Voices != f.Ended {
		return fmt.Errorf("%s: %d voices began, %d ended", name, f.Voices, f.Ended)
	}
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
			if err := l.voices.Put(v); err != nil {
				return err
			}
		}
	}
	var c *chorus
	for i := range g.events {
		e := &g.events[i]
		if e.Kind != croaked || l.Frogs.named(e.Frog) == nil { // it died, or a player was quick
			continue
		}
		if c == nil {
			c = chorusMaker.New(s)
			c.System = l.here
		}
		if v := l.voices.Get(); v != nil {
			*v = voice{Singer: e.Frog, System: l.here, Left: songTicks}
			c.Voices++
		}
	}
	return nil
}

// end adds the chorus to what the system counts.
func (c *chorus) end() error {
	if f := c.System.Get(); f != nil {
		f.Choruses++
		f.Voices += c.Voices
	}
	return nil
}

func (v *voice) end() error {
	if f := v.System.Get(); f != nil {
		f.Ended++
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
