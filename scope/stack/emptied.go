package stack

import (
	"fmt"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/arena_c"
)

// Empty closes all scopes, as CloseTo does, and returns the errors. For messages it notes the
// operation, such as "Load", the region on which the operation was called, such as "room 3", and
// the place of the call. If the operation failed, live blocks in arenas don't count as leaks.
func (st *Stack) Empty(what, region string, site arena_c.Site, failed bool) error {
	if st.h.Depth != 0 {
		st.emptied.set(emptied{what, region, failed, time.Now(), site, st.h.Next})
	}
	if failed {
		return st.fail(0)
	}
	return st.CloseTo(0)
}

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

// ended describes the operation that last emptied the arena. It returns "" if the near end's scope
// or pool with that generation was opened later. Any goroutine may call it.
func (t tombstone) ended(gen uint64) string {
	e := &t.emptied
	if gen > e.last || numberOf(gen) != t.made { // opened later, or by another stack
		return ""
	}
	return fmt.Sprintf("; %s was last emptied %v ago, by a %s", t.arena, time.Since(e.when).Round(time.Millisecond), e.by()) +
		e.site.Tell(e.by())
}

func endedPool(gen uint64) string {
	if all := registry.stacks.Load(); all != nil {
		for i := range *all {
			if st := (*all)[i].Load(); st != nil && st.made == numberOf(gen) {
				return tombstone{st.made, st.Arena, st.emptied.get(), nil}.ended(gen)
			}
		}
	}
	t, _ := tombstoneOf(gen)
	return t.ended(gen)
}
