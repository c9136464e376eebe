package serve

import "time"

// watch begins to record what was asked for: what each arena holds over time, and what the runtime
// did in the last seconds.
func (s *Server) watch() (err error) {
	if s.o.Timeline != "" || s.o.HTTP != "" {
		s.timeline = s.b.Timeline(0)
	}
	if s.o.Flight == "" {
		return nil
	}
	s.flight, err = newFlight(s.o.Flight, 10*time.Second, s.say)
	return err
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
