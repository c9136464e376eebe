package serve

import (
	"time"

	"github.com/upfront-mem/upfront/budget/timeline"
)

// watch starts the recordings that the options ask for: the timeline of the arenas, and the flight
// recorder.
func (s *Server) watch() (err error) {
	if s.o.Timeline != "" || s.o.HTTP != "" {
		s.timeline = timeline.Start(s.b, 0)
	}
	if s.o.Flight == "" {
		return nil
	}
	s.flight, err = newFlight(s.o.Flight, 10*time.Second, s.say)
	return err
}

// sample records the use of each arena, as often as rooms tick. It has a goroutine of its own,
// because rooms tick at different times.
func (s *Server) sample() {
	for due := s.now(); !s.stopping.Load(); due += tickTime {
		if now := s.now(); now < due {
			time.Sleep(due - now)
		} else {
			due = now // don't catch up after a delay
		}
		s.timeline.Sample()
	}
}
