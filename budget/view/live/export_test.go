package live

import (
	"testing"
	"time"
)

// Hurry makes everything that waits for a viewer wait no longer than d.
func Hurry(t *testing.T, d time.Duration) {
	t.Helper()
	for _, wait := range []*time.Duration{&patience, &stall, &silence, &headerTime} {
		was := *wait
		*wait = d
		t.Cleanup(func() { *wait = was })
	}
}

// Polite has servers wait for a minute until they cut what is open.
func Polite(t *testing.T) {
	t.Helper()
	was := shutdownTime
	shutdownTime = time.Minute
	t.Cleanup(func() { shutdownTime = was })
}

// Open is how many connections are open.
func (s *Server) Open() int { return int(s.listen.open.Load()) }

// Places is how many streams there are now.
func (f *Feed) Places() int { return len(f.viewers) }

// Bandwidth is what all viewers of a server get, in bytes a second.
const Bandwidth = bandwidth
