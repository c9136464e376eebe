package serve

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/budget/with/agones"
)

// pulse is the server's state for probes and Agones, which read it on their own goroutines. The
// goroutine that waits for the signal takes it, at most every nap, so ticks do nothing for it.
type pulse struct {
	beat    clock // the oldest of the workers' last ticks
	players atomic.Uint32
	rooms   atomic.Int64 // rooms with players
}

func (s *Server) takePulse() {
	beat := s.workers[0].alive.Load()
	for _, w := range s.workers[1:] {
		beat = min(beat, w.alive.Load())
	}
	rooms, players := 0, uint32(0)
	for i := range s.rooms {
		inside := uint32(0)
		for k := range s.net.roomSessions(i)[:s.o.Players] {
			inside += s.net.roomSessions(i)[k].taken.Load()
		}
		if players += inside; inside > 0 {
			rooms++
		}
	}
	s.pulse.players.Store(players)
	s.pulse.rooms.Store(int64(rooms))
	s.pulse.beat.Store(beat)
}

// serveHealth answers probes at the address of -health, if there is one: /healthz is 200 while the
// server is well, and /readyz while it also takes players. Probes allocate on the Go heap, but
// outside of ticks.
func (s *Server) serveHealth() (stop func() error, err error) {
	if s.o.Health == "" {
		return func() error { return nil }, nil
	}
	listener, err := net.Listen("tcp", s.o.Health)
	if err != nil {
		return nil, fmt.Errorf("-health: %w", err)
	}
	fmt.Fprintf(s.o.Say, "frogpond: health on http://%s/healthz, /readyz\n", listener.Addr())
	mux := http.NewServeMux()
	answer := func(path string, look func() (unwell, well string)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			unwell, well := look()
			if unwell != "" {
				http.Error(w, unwell, http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, well)
		})
	}
	answer("/healthz", func() (unwell, well string) { return s.unwell(), "ok" })
	answer("/readyz", func() (unwell, well string) {
		if unwell = s.unwell(); unwell == "" {
			unwell = s.unready()
		}
		return unwell, fmt.Sprintf("ok: %d of %d players, %d of %d rooms", s.pulse.players.Load(),
			s.o.Rooms*s.o.Players, s.pulse.rooms.Load(), s.o.Rooms)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 5 * time.Second, MaxHeaderBytes: 4096}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // an answer in flight may be cut off
		err := server.Close()
		<-ended
		return err
	}, nil
}

// unwell returns why the server isn't well, or "". While it loads and saves, no worker ticks.
func (s *Server) unwell() string {
	if failure := s.failure.Load(); failure != nil {
		return (*failure).Error()
	}
	if late := s.now() - s.pulse.beat.Load(); s.serving.Load() && late > time.Second {
		return fmt.Sprintf("a worker's last tick began %v ago", late.Round(time.Millisecond))
	}
	return ""
}

// unready returns why the server takes no players, or "".
func (s *Server) unready() string {
	switch {
	case s.closing.Load():
		return "draining"
	case !s.serving.Load():
		return "loading"
	}
	return ""
}

// goodbye is the time that Agones' sidecar has to accept the end of the server.
const goodbye = 5 * time.Second

// joinAgones starts the link to Agones' sidecar, if the options have one: rooms with players are
// its counter.
func (s *Server) joinAgones() (err error) {
	if s.o.Agones == nil || s.link != nil {
		return nil
	}
	s.link, err = s.o.Agones.Link(s.b, "level", agones.Options{Capacity: s.o.Rooms, Log: s.say,
		InUse: func() int { return int(s.pulse.rooms.Load()) },
		Ticks: func() uint64 { return uint64(s.pulse.beat.Load()) }})
	return err
}

// leaveAgones asks Agones to remove the server. If the sidecar is gone, it prints the error.
func (s *Server) leaveAgones() {
	if s.link == nil {
		return
	}
	if s.handed { // the game server goes on in the other process
		s.link.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	s.say(s.link.Shutdown(ctx))
}
