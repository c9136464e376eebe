package stack

import (
	"sync"
	"time"

	"github.com/upfront-mem/upfront/arena_c"
)

// emptied describes the last Empty of an arena.
type emptied struct {
	what   string // "Load"
	region string // for which the operation was called
	failed bool
	when   time.Time
	site   arena_c.Site
	last   uint64 // the generation of the scope opened last; 0: the arena was never emptied
}

// by returns the operation: "Load of region room 3".
func (e *emptied) by() string {
	by := e.what + " of region " + e.region
	if e.failed {
		by += " that failed"
	}
	return by
}

// lastEmptied is an emptied that any goroutine may read. It is a value with a lock, so that a load
// makes no Go allocation.
type lastEmptied struct {
	mu   sync.Mutex
	last emptied
}

func (l *lastEmptied) set(e emptied) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = e
}

func (l *lastEmptied) get() emptied {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
