package live

import (
	"sync"
	"time"
)

// recent is a value that is made anew by who asks for it, at most once in a while. Who asks meanwhile gets the last one.
type recent[T any] struct {
	every time.Duration
	make  func() T

	mu    sync.Mutex
	at    time.Time
	value T
}

// get is the value, and when the next one can be had.
func (r *recent[T]) get() (value T, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at.IsZero() || time.Since(r.at) >= r.every {
		r.value = r.make()
		r.at = time.Now() // after what it was made of: who waits until then finds that old enough, too
	}
	return r.value, r.at.Add(r.every)
}
