package serve

import (
	"fmt"
	"time"

	"github.com/upfront-mem/upfront/budget/flight"
)

// watch begins to record what was asked for: what each arena holds over time, and what the runtime
// did in the last seconds.
func (s *Server) watch() (err error) {
	if s.o.Timeline != "" || s.o.HTTP != "" {
		s.timeline = s.b.Timeline(0)
	}
	if s.o.Flight == "" {
		return nil
	}
	s.flight, err = flight.Start(s.o.Flight, flight.Options{Name: "frogpond", OnError: s.say,
		OnFile: func(file, reason string) { s.say(fmt.Errorf("%s: the last seconds are in %s", reason, file)) }})
	if err != nil {
		return fmt.Errorf("-flight: %w", err)
	}
	return nil
}

// sample is a goroutine that records what each arena holds, as often as rooms tick. Rooms have no
// tick in common, and none of them waits for it.
func (s *Server) sample() {
	for due := s.now(); !s.stopping.Load(); due += tickTime {
		if now := s.now(); now < due {
			time.Sleep(due - now)
		} else {
			due = now // it was held up: what was missed stays so
		}
		s.timeline.Sample()
	}
}
