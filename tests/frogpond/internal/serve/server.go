// Package serve is a game server: many rooms in one process, each in a slot of the plan, and their
// players over UDP.
//
// server.go is its life: it boots, serves, drains and ends. receiver.go takes what comes and lets
// players in, session.go is what is known of each. worker.go plays the rooms that are due, room.go
// is a tick of one, inputs.go what its players want and when that came, tell.go what they are told.
// loader.go makes the next maps and gives back the old ones' slots, keeper.go writes files. Each of
// these is a goroutine (workers are several), and hands over what it has by words that both read and
// write at once: nobody waits for another, and no channel, lock or packet takes a Go allocation.
// web.go shows browsers what scene.go copies for them.
// record.go is what was asked for beside play: use over time, and the last seconds.
package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

const ticksPerSecond = 35

// What options may be.
const (
	RoomsMost    = 64
	PlayersMost  = 16
	RollbackMost = rollbackMost
	EveryMost    = ticksPerSecond
	MapTimeMost  = 10_000 * time.Hour // its ticks have 32 bits
	BytesLeast   = 96                 // with a change or two
	BytesMost    = wire.PacketMost
)

// Options are what a server is told.
type Options struct {
	game.Options
	Address    string
	Buffer     int // bytes that are asked for, for what comes
	Rooms      int
	Players    int // of a room
	PerAddress int // places that an address may have as players; 0: all
	Rollback   int // ticks that inputs may be late
	Bytes      int // of a State, at most
	Every      int // ticks from one State to the next
	MapTime    time.Duration
	Timeout    time.Duration // without a packet, and a session ends
	Drain      time.Duration
	SaveEvery  time.Duration
	Inputs     string // folder, of records
	Saves      string // folder
	Scores     string // file
	Health     string // address
	HTTP       string // address, of the page
	HTTPPublic bool   // others than this machine may reach it
	HTTPEach   int    // connections that an address may have there; 0: as package live says
	Timeline   string // file, of what each arena held; who writes it has it of the result
	Flight     string // folder, of traces
	Plant      Plant

	Reload <-chan os.Signal            // asks for another plan
	Plan   func() (budget.Plan, error) // the one to open, or another
	Warm   func()                      // what the runtime is to have before play
	Say    io.Writer                   // what people read meanwhile
}

// Server is what Run runs.
type Server struct {
	o        *Options
	b        *budget.Budget
	old      budget.Plan // before the one that is taken
	game     *game.Server
	socket   *udp.Socket
	began    time.Time
	mapTicks uint32

	net      *network
	rooms    []*room
	visible  atomic.Pointer[[]*room] // the same, for who looks
	workers  []*worker
	receiver *receiver
	loader   *loader
	keeper   *keeper
	timeline *budget.Timeline // nil: nobody wants it
	flight   *flight          // likewise
	saves    *disk.Saves
	scores   *disk.Scores
	running  sync.WaitGroup

	serving  atomic.Bool  // goroutines begin
	closing  atomic.Bool  // nobody joins any more
	stopping atomic.Bool  // goroutines end
	until    atomic.Int64 // when the drain is over, in nanoseconds since the server began
	failure  atomic.Pointer[error]

	faults, unloaded, unrecorded atomic.Uint64
	dropped                      uint64 // datagrams, for want of room in the system's buffer
	saying                       sync.Mutex
}

// Run serves until ctx ends, and then as long as the drain takes. What it returns beside an error
// says how far it came; nil: there was no server.
func Run(ctx context.Context, o *Options) (*Result, error) {
	plan, err := o.Plan()
	if err == nil {
		err = o.fits(plan)
	}
	if err != nil {
		return nil, err
	}
	b, err := budget.Open(plan)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, b: b, began: time.Now(), mapTicks: uint32(o.MapTime.Seconds() * ticksPerSecond)}
	result, err := s.run(ctx)
	s.flight.close()
	err = errors.Join(err, s.closeFiles(), b.Close())
	if result != nil {
		result.finish(b)
	}
	return result, err
}

// fits says whether the plan is one for these options.
func (o *Options) fits(plan budget.Plan) error {
	var names []string
	for _, r := range plan.Regions {
		names = append(names, r.Name)
	}
	if !slices.Equal(names, []string{"init", "systems", "level"}) {
		return fmt.Errorf("the plan's regions are %q; a server needs init, systems, level", names)
	}
	level := plan.Regions[2]
	switch {
	case level.Slots == 0 || !level.State:
		return errors.New("regions[2]: the level needs slots, one for each room and one more, and to be a state")
	case o.Rooms >= level.Slots:
		return fmt.Errorf("-rooms %d: regions[2].slots is %d, and one is for the map that comes next: "+
			"raise it to %d or more", o.Rooms, level.Slots, o.Rooms+1)
	case plan.Scratch.Workers <= o.Workers:
		return fmt.Errorf("-workers %d: scratch.workers is %d, and one is for who loads: raise it to %d or more",
			o.Workers, plan.Scratch.Workers, o.Workers+1)
	}
	return nil
}

// run boots, serves once or, with other plans, several times, and stops.
func (s *Server) run(ctx context.Context) (result *Result, err error) {
	if err := s.watch(); err != nil {
		return nil, err
	}
	if s.game, err = game.Open(ctx, s.o.Options, s.b); err != nil {
		return nil, err
	}
	for _, line := range doom.Replaced(s.game.Maps) {
		fmt.Fprintln(s.o.Say, "frogpond:", line)
	}
	if err := s.openFiles(); err != nil {
		return nil, err
	}
	if s.socket, err = udp.Listen(s.o.Address, s.o.Buffer); err != nil {
		return nil, err
	}
	defer s.socket.Close()
	stopWeb, err := s.serveWeb()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopWeb()) }()
	result = newResult(s)
	for again := true; again && err == nil; {
		again, err = s.serve(ctx, result)
	}
	if result.Plans == 0 { // nobody was served
		return nil, err
	}
	return result, err
}

// serve is a plan's time: it makes the rooms, plays, and ends them. again: there is another plan.
func (s *Server) serve(ctx context.Context, result *Result) (again bool, err error) {
	health, err := s.listenHealth()
	if err != nil {
		return false, err
	}
	if health != nil {
		defer health.Close()
	}
	whole := context.WithoutCancel(ctx) // a signal is for who serves
	if err = s.build(whole); err != nil && result.Plans > 0 {
		s.say(fmt.Errorf("another plan: %w; the old one stays", err))
		if err = s.take(whole, s.old); err == nil {
			err = s.build(whole)
		}
	}
	if err != nil {
		return false, err
	}
	stopHealth := s.serveHealth(health)
	defer stopHealth()
	if err := s.b.Seal(); err != nil {
		return false, errors.Join(err, s.release())
	}
	s.start()
	result.listen()
	s.serving.Store(true)
	again = s.wait(ctx)
	result.signal()
	if !again {
		s.drain()
	}
	s.stop()
	result.add()
	err = s.end()
	if failure := s.failure.Load(); failure != nil {
		return false, errors.Join(*failure, err)
	}
	if again && err == nil {
		stopHealth() // which looks at the rooms
		err = s.reconfigure(whole)
	}
	return again, err
}

// build makes what the regions systems and level hold, or nothing.
func (s *Server) build(ctx context.Context) (err error) {
	s.rooms, s.workers = nil, nil
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	var secret wire.Key
	if _, err := rand.Read(secret[:]); err != nil {
		return err
	}
	_, err = budget.Load(ctx, s.b.Region("systems"), func(in scope.Scope) (*network, error) {
		label := func(name string, make func()) {
			_ = scope.Label(in, name, func() error { make(); return nil })
		}
		label("sessions", func() { s.net = newNetwork(in, s.o.Rooms, s.o.Players) })
		label("receiver", func() { s.receiver = newReceiver(s, in, secret) })
		label("rooms", func() {
			for i := range s.o.Rooms {
				s.rooms = append(s.rooms, newRoom(s, in, i))
			}
		})
		label("workers", func() {
			for i := range min(s.o.Workers, s.o.Rooms) {
				s.workers = append(s.workers, newWorker(s, in, i))
			}
		})
		label("keeper", func() { s.keeper = newKeeper(s, in) })
		return s.net, nil
	})
	if err != nil {
		return err
	}
	s.loader = &loader{s: s, crew: game.Alone(s.b, s.o.Workers), slots: s.b.Slots("level")}
	for i, r := range s.rooms {
		w := s.workers[i%len(s.workers)]
		w.rooms = append(w.rooms, r)
		p, err := s.loader.first(r)
		if err != nil {
			return err
		}
		r.next.Store(p)
		r.change(w)
	}
	s.visible.Store(new(slices.Clone(s.rooms)))
	return nil
}

// start begins the goroutines. Each waits for serving: what the runtime has for them is made then.
func (s *Server) start() {
	s.stopping.Store(false)
	s.serving.Store(false)
	if s.o.Warm != nil {
		s.o.Warm()
	}
	loops := []func(){s.receiver.loop, s.loader.loop, s.keeper.loop}
	if s.timeline != nil {
		loops = append(loops, s.sample)
	}
	for _, w := range s.workers {
		loops = append(loops, w.loop)
	}
	for _, loop := range loops {
		s.running.Go(func() {
			for !s.serving.Load() {
				time.Sleep(nap)
			}
			loop()
		})
	}
	time.Sleep(4 * nap)
	now := s.now()
	for i, r := range s.rooms { // spread over the time of a tick
		r.due = now + tickTime*time.Duration(i)/time.Duration(len(s.rooms))
	}
}

// wait is until a signal, a failure, or another plan, which is taken when nobody plays.
func (s *Server) wait(ctx context.Context) (again bool) {
	reload := false
	for ctx.Err() == nil && s.failure.Load() == nil {
		select {
		case <-s.o.Reload:
			reload = true
		default:
		}
		if reload && s.players() == 0 {
			s.closing.Store(true)
			if s.players() == 0 { // nobody came meanwhile
				return true
			}
			s.closing.Store(false)
		}
		time.Sleep(nap)
	}
	return false
}

// drain lets nobody join, and waits until nobody is left, or for as long as it may take.
func (s *Server) drain() {
	until := s.now() + s.o.Drain
	s.until.Store(int64(until))
	s.closing.Store(true)
	for s.now() < until && s.players() > 0 && s.failure.Load() == nil {
		time.Sleep(nap)
	}
}

// stop ends the goroutines.
func (s *Server) stop() {
	s.stopping.Store(true)
	err := s.socket.Interrupt()
	s.running.Wait()
	s.dropped = s.socket.Dropped()
	if err := errors.Join(err, s.socket.Resume()); err != nil {
		s.broken(err)
	}
}

// end saves the rooms, ends their records, and gives their slots back.
func (s *Server) end() (err error) {
	for _, r := range s.rooms {
		err = cmp.Or(err, s.keeper.finish(r))
	}
	return errors.Join(err, s.release())
}

// release gives the rooms' slots back.
func (s *Server) release() (err error) {
	for _, r := range s.rooms {
		for _, p := range []*play{r.play, r.ended, r.next.Load(), r.gone.Load()} {
			if p != nil {
				err = errors.Join(err, p.region.Release(context.Background()))
			}
		}
	}
	return err
}

// reconfigure takes another plan for systems and level; init stays where it is. A plan that
// can't be had leaves the old one.
func (s *Server) reconfigure(ctx context.Context) error {
	s.closing.Store(false)
	plan, err := s.o.Plan()
	if err == nil {
		err = s.o.fits(plan)
	}
	if err == nil {
		s.old = s.b.Plan()
		err = s.take(ctx, plan)
	}
	if err != nil {
		s.say(fmt.Errorf("another plan: %w; the old one stays", err))
	}
	return nil
}

// take makes a plan that of the budget, when the rooms are released.
func (s *Server) take(ctx context.Context, plan budget.Plan) error {
	if err := s.b.Region("systems").Rewind(ctx); err != nil {
		return err
	}
	return s.b.Reconfigure(ctx, plan)
}

// now is the time since the server began.
func (s *Server) now() time.Duration { return time.Since(s.began) }

// openFiles opens what there is to be written.
func (s *Server) openFiles() (err error) {
	if s.o.Saves != "" {
		if s.saves, err = disk.OpenSaves(s.o.Saves, s.o.Rooms); err != nil {
			return err
		}
	}
	if s.o.Scores != "" {
		cut := 0
		if s.scores, cut, err = disk.OpenScores(s.o.Scores); cut > 0 {
			s.say(fmt.Errorf("%s: its last %d bytes were no whole score: they are cut off", s.o.Scores, cut))
		}
	}
	return err
}

func (s *Server) closeFiles() (err error) {
	if s.saves != nil {
		err = s.saves.Close()
	}
	if s.scores != nil {
		err = errors.Join(err, s.scores.Close())
	}
	return err
}

// closingIn is how many seconds of a drain are left.
func (s *Server) closingIn() (seconds uint32, closing bool) {
	if !s.closing.Load() {
		return 0, false
	}
	left := time.Duration(s.until.Load()) - s.now()
	return uint32(max(0, left) / time.Second), true
}

// players is how many places are taken.
func (s *Server) players() (n uint32) {
	for i := range s.net.sessions {
		if i%s.net.places < s.o.Players {
			n += s.net.sessions[i].taken.Load()
		}
	}
	return n
}

// seed is that of a room's map.
func (s *Server) seed(room int, number uint32) uint64 {
	h := doom.HashStart
	h.Add(s.o.Seed, uint64(room), uint64(number))
	return uint64(h)
}

// broken says that there is no serving any more: the server drains, and Run gives the error.
func (s *Server) broken(err error) {
	err = fmt.Errorf("%s: %w", s.o.Address, err)
	s.failure.CompareAndSwap(nil, &err)
}

// fault tells of a room that was unwound.
func (s *Server) fault(r *room, err error) {
	s.faults.Add(1)
	s.say(fmt.Errorf("room %d: %s is over at tick %d: %w", r.number, r.play.level.Name, r.play.tick, err))
}

// say writes an error for people, if there is one. What led to a full is kept.
func (s *Server) say(err error) {
	s.flight.watch(err)
	if err != nil {
		s.saying.Lock()
		defer s.saying.Unlock()
		fmt.Fprintln(s.o.Say, "frogpond:", err)
	}
}
