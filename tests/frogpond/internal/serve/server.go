// Package serve is a game server with many rooms in one process, each in a slot of the plan, and
// with players over UDP.
//
//	result, err := serve.Run(ctx, &options)
//
// server.go has the life of a server: it boots, serves, drains and ends. A server's goroutines are:
//
//   - the receiver (receiver.go), which handles datagrams and gives places (session.go);
//   - the workers (worker.go), which play the ticks of rooms: room.go has a tick, inputs.go the
//     players' inputs, and tell.go the packets to players;
//   - the loader (loader.go), which loads the next maps and releases the slots of old ones;
//   - the keeper (keeper.go), which writes files;
//   - if the options ask for them, a sampler of the timeline (record.go), and pages (web.go,
//     scene.go).
//
// The goroutines share atomic words and queues, so none waits for another. Ticks make no Go
// allocation.
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
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/budget/with/agones"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

const ticksPerSecond = 35

// The limits of options.
const (
	RoomsMost    = 64
	PlayersMost  = 16
	RollbackMost = rollbackMost
	EveryMost    = ticksPerSecond
	MapTimeMost  = 10_000 * time.Hour // ticks have 32 bits
	BytesLeast   = 96                 // enough for a change or two
	BytesMost    = wire.PacketMost
)

// Options are the options of a server.
type Options struct {
	game.Options
	Address     string
	Buffer      int // bytes to request for the receive buffer
	Rooms       int
	Players     int // of a room
	PerAddress  int // the most players of an IP address; 0: no limit
	Rollback    int // ticks that inputs may be late
	Bytes       int // of a State, at most
	Every       int // ticks from one State to the next
	MapTime     time.Duration
	Timeout     time.Duration // time without a packet that ends a session
	Drain       time.Duration
	SaveEvery   time.Duration
	Inputs      string         // folder for records
	Saves       string         // folder
	Scores      string         // file
	Checkpoints string         // file; "": none
	Upgrade     bool           // take over from the server that has the checkpoints
	Health      string         // address, of probes
	Agones      *agones.Client // of the sidecar; nil without
	HTTP        string         // address, of the page
	HTTPPublic  bool           // machines other than this one may reach the page
	HTTPEach    int            // connections of an address to the page; 0: package live's
	Timeline    string         // file for the timeline, which the caller writes from the result
	Flight      string         // folder for traces
	Plant       Plant

	Reload <-chan os.Signal            // requests another plan
	Plan   func() (budget.Plan, error) // returns the plan to open; called again for Reload
	Warm   func()                      // called before play, to warm up the runtime
	Say    io.Writer                   // output for people
}

// Server is a server that Run runs.
type Server struct {
	o        *Options
	b        *budget.Budget
	old      budget.Plan // the plan before the current one
	game     *game.Server
	socket   *udp.Socket
	began    time.Time
	mapTicks uint32

	net         *network
	rooms       []*room
	visible     atomic.Pointer[[]*room] // rooms, for viewers
	workers     []*worker
	receiver    *receiver
	loader      *loader
	keeper      *keeper
	timeline    *timeline.Timeline // nil without the option
	flight      *flight            // nil without the option
	saves       *disk.Saves
	scores      *disk.Scores
	checkpoints *save.Checkpoints // nil without the option
	running     sync.WaitGroup

	serving  atomic.Bool  // the goroutines may begin
	closing  atomic.Bool  // joins are refused
	stopping atomic.Bool  // the goroutines must end
	until    atomic.Int64 // the end of the drain, in nanoseconds since the server began
	failure  atomic.Pointer[error]

	stopWeb, stopHealth, stopHeirs func() error // nil: not open

	server *heir      // the server that hands over to this one, until it has
	heirs  chan *heir // that have loaded the maps
	heir   *heir      // one of them
	handed bool       // it plays
	pulse  pulse
	link   *agones.Link // nil without a sidecar, or before play

	faults, unloaded, unrecorded atomic.Uint64
	dropped                      uint64 // datagrams that found the system's buffer full
	saying                       sync.Mutex
}

// Run serves until ctx ends, and then until the drain is over. After an error, the result has the
// metrics so far; it is nil if the server never listened.
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
	s := &Server{o: o, b: b, began: time.Now(), mapTicks: uint32(o.MapTime.Seconds() * ticksPerSecond),
		heirs: make(chan *heir, 1)}
	result, err := s.run(ctx)
	s.leaveAgones()
	s.flight.close()
	err = errors.Join(err, s.shut(), b.Close())
	if s.server != nil { // it plays on
		s.server.answer(err)
	}
	if result != nil {
		result.finish(b)
	}
	return result, err
}

// fits returns an error if the plan doesn't fit these options.
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
		return fmt.Errorf("-rooms %d: regions[2].slots is %d, and one is for the next map; "+
			"raise it to %d or more", o.Rooms, level.Slots, o.Rooms+1)
	case plan.Scratch.Workers <= o.Workers:
		return fmt.Errorf("-workers %d: scratch.workers is %d, and one is for the loader; raise it to %d or more",
			o.Workers, plan.Scratch.Workers, o.Workers+1)
	}
	return nil
}

// run boots, serves once for each plan, and stops.
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
	if s.o.Upgrade {
		if s.server, err = s.callServer(ctx); err != nil {
			return nil, err
		}
	}
	if s.server == nil {
		if err := s.open(); err != nil {
			return nil, err
		}
	}
	defer func() {
		if s.socket != nil {
			err = errors.Join(err, s.socket.Close())
		}
	}()
	result = &Result{s: s}
	for again := true; again && err == nil; {
		again, err = s.serve(ctx, result)
	}
	if result.Plans == 0 { // no plan was served
		return nil, err
	}
	return result, err
}

// serve serves with one plan: it builds the rooms, plays until the signal or another plan, and ends
// them. again reports whether another plan follows.
func (s *Server) serve(ctx context.Context, result *Result) (again bool, err error) {
	whole := context.WithoutCancel(ctx) // a signal doesn't cancel loads and releases
	if err = s.build(whole); err != nil && result.Plans > 0 {
		s.say(fmt.Errorf("another plan: %w; the old one stays", err))
		if err = s.take(whole, s.old); err == nil {
			err = s.build(whole)
		}
	}
	if err != nil {
		return false, err
	}
	if err = s.b.Seal(); err == nil && s.socket == nil { // now it can answer
		s.socket, err = udp.Listen(s.o.Address, s.o.Buffer)
	}
	if err != nil {
		return false, errors.Join(err, s.release())
	}
	s.start()
	if err := s.joinAgones(); err != nil {
		s.broken(err)
	}
	result.listen()
	s.takePulse()
	s.serving.Store(true)
	if s.server != nil {
		s.server.answer(nil)
		s.server = nil
	}
	for again = s.wait(ctx); s.heir != nil; again = s.wait(ctx) {
		result.signal()
		if s.handed = s.handOver(s.heir); s.handed {
			break
		}
		s.heir = nil
		result.count()
	}
	if !s.handed {
		result.signal()
		if !again {
			s.drain()
		}
		s.stop()
	}
	result.add()
	err = s.end()
	if failure := s.failure.Load(); failure != nil {
		return false, errors.Join(*failure, err)
	}
	if again && err == nil {
		err = s.reconfigure(whole)
	}
	return again, err
}

// build fills the regions systems and level. After an error both are empty.
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
	if s.server != nil {
		if err = s.inherit(); err == nil {
			err = s.open()
		}
		if err != nil {
			return err
		}
	}
	if s.checkpoints != nil {
		for room, err := range s.checkpoints.All() {
			if room < len(s.rooms) {
				s.rooms[room].isOutlived = true // or refused
			} else {
				s.say(err) // -rooms was higher
			}
		}
	}
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

// start starts the goroutines, which wait for serving. So the runtime allocates their memory before
// play.
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
			for !s.serving.Load() && !s.stopping.Load() { // a nap may be longer than the service
				time.Sleep(nap)
			}
			loop()
		})
	}
	time.Sleep(4 * nap)
	now := s.now()
	for _, w := range s.workers {
		w.alive.Store(now)
	}
	for i, r := range s.rooms { // spread over the time of a tick
		r.due = now + tickTime*time.Duration(i)/time.Duration(len(s.rooms))
	}
}

// wait waits for a signal, a failure, or a request for another plan. It returns true for the
// request, once the server is empty.
func (s *Server) wait(ctx context.Context) (again bool) {
	reload := false
	for ctx.Err() == nil && s.failure.Load() == nil {
		select {
		case <-s.o.Reload:
			reload = true
		case s.heir = <-s.heirs:
			return false
		default:
		}
		if reload && s.players() == 0 {
			s.closing.Store(true)
			if s.players() == 0 { // no player joined since
				return true
			}
			s.closing.Store(false)
		}
		s.takePulse()
		time.Sleep(nap)
	}
	return false
}

// drain refuses joins, and waits until all players have left or the time is over.
func (s *Server) drain() {
	until := s.now() + s.o.Drain
	s.until.Store(int64(until))
	s.closing.Store(true)
	if s.link != nil {
		s.link.Drain()
	}
	for s.now() < until && s.players() > 0 && s.failure.Load() == nil {
		s.takePulse()
		time.Sleep(nap)
	}
}

func (s *Server) stop() {
	s.stopping.Store(true)
	s.serving.Store(false)
	err := s.socket.Interrupt()
	s.running.Wait()
	s.dropped = s.socket.Dropped()
	if err := errors.Join(err, s.socket.Resume()); err != nil {
		s.broken(err)
	}
}

// end saves the rooms, ends their records, and releases their slots.
func (s *Server) end() (err error) {
	for _, r := range s.rooms {
		err = cmp.Or(err, s.keeper.finish(r))
	}
	return errors.Join(err, s.release())
}

func (s *Server) release() (err error) {
	for _, r := range s.rooms {
		for _, p := range []*play{r.play, r.ended, r.next.Load(), r.gone.Load(), r.spare} {
			if p != nil {
				err = errors.Join(err, p.region.Release(context.Background()))
			}
		}
	}
	return err
}

// reconfigure opens another plan for systems and level; init stays. If the plan fails, it prints
// the error, and the old plan stays.
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

// take reconfigures the budget with another plan. The rooms must have been released.
func (s *Server) take(ctx context.Context, plan budget.Plan) error {
	if err := s.b.Region("systems").Rewind(ctx); err != nil {
		return err
	}
	return s.b.Reconfigure(ctx, plan)
}

func (s *Server) now() time.Duration { return time.Since(s.began) }

// open opens all that only one server at a time can have, but for the socket.
func (s *Server) open() (err error) {
	if err = s.openFiles(); err == nil {
		s.stopWeb, err = s.serveWeb()
	}
	if err == nil {
		s.stopHealth, err = s.serveHealth()
	}
	if err == nil {
		err = s.awaitHeir()
	}
	return err
}

// shut closes all that open opened.
func (s *Server) shut() (err error) {
	for _, stop := range []*func() error{&s.stopHeirs, &s.stopHealth, &s.stopWeb} {
		if *stop != nil {
			err = errors.Join(err, (*stop)())
		}
		*stop = nil
	}
	return errors.Join(err, s.closeFiles())
}

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
		if err != nil {
			return err
		}
	}
	if s.o.Checkpoints != "" {
		err = s.openCheckpoints()
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
	if s.checkpoints != nil {
		err = errors.Join(err, s.checkpoints.Sync(), s.checkpoints.Close())
	}
	s.saves, s.scores, s.checkpoints = nil, nil, nil
	return err
}

// closingIn returns the seconds until a drain is over, and whether the server drains.
func (s *Server) closingIn() (seconds uint32, closing bool) {
	if !s.closing.Load() {
		return 0, false
	}
	left := time.Duration(s.until.Load()) - s.now()
	return uint32(max(0, left) / time.Second), true
}

// players returns the number of places taken by players.
func (s *Server) players() (n uint32) {
	for i := range s.net.sessions {
		if i%s.net.places < s.o.Players {
			n += s.net.sessions[i].taken.Load()
		}
	}
	return n
}

func (s *Server) seed(room int, number uint32) uint64 {
	h := doom.HashStart
	h.Add(s.o.Seed, uint64(room), uint64(number))
	return uint64(h)
}

// broken notes a failure. The server then drains, and Run returns the error.
func (s *Server) broken(err error) {
	err = fmt.Errorf("%s: %w", s.o.Address, err)
	s.failure.CompareAndSwap(nil, &err)
}

// fault reports a room that was unwound.
func (s *Server) fault(r *room, err error) {
	s.faults.Add(1)
	s.say(fmt.Errorf("room %d: %s is over at tick %d: %w", r.number, r.play.level.Name, r.play.tick, err))
}

// say prints an error, if it isn't nil. An ErrFull also makes a trace.
func (s *Server) say(err error) {
	s.flight.watch(err)
	if err != nil {
		s.saying.Lock()
		defer s.saying.Unlock()
		fmt.Fprintln(s.o.Say, "frogpond:", err)
	}
}
