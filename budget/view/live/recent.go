package live

import (
	"sync"
	"time"
)

// recent is a value that get renews, at most once in `every`; in between get returns the last
// value.
type recent[T any] struct {
	every time.Duration
	make  func() T

	mu    sync.Mutex
	at    time.Time
	value T
}

// get returns the value, and the time at which the next may be made.
func (r *recent[T]) get() (value T, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= r.every {
		r.value = r.make()
		r.at = time.Now() // after make, so that a caller that waits until then gets a new one
	}
	return r.value, r.at.Add(r.every)
}
