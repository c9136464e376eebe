package budget

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// full counts a refusal, and completes its error.
func (q *quota) full(e *scope.FullError) error {
	e.Budget, e.Arena = q.b.plan.Name, cmp.Or(e.Arena, q.what)
	q.fulls, q.lastFull = q.fulls+1, e
	return e
}

// tooLarge is the error of a reservation above a limit.
func (q *quota) tooLarge(t *Quota, n uint64) error {
	size, held, key := q.level(t, min(q.size, t.size) < q.size)
	e := &scope.FullError{Arena: t.what(), What: "bytes", Asked: n, Size: size, Free: size - held, Key: key}
	if e.Need = (n + t.mask) &^ t.mask; n > planHeapMax {
		e.Need = 0
	}
	return q.full(e)
}

// noRoom is the error of bytes that don't fit now.
func (q *quota) noRoom(t *Quota, take uint64) error {
	size, held, key := q.level(t, take <= q.size-q.held)
	return q.full(&scope.FullError{Arena: t.what(), What: "bytes", Asked: take, Size: size, Free: size - held,
		Need: held + take, Key: key, Top: q.top()})
}

// level returns the limit, bytes and key of the tenant, or of the whole.
func (q *quota) level(t *Quota, tenant bool) (size, held uint64, key string) {
	if tenant && t != &q.own {
		return t.size, t.held, q.key + ".tenant"
	}
	return q.size, q.held, q.key + ".size"
}

// onPurpose is the error of a request that a checked build refuses for a test.
func (q *quota) onPurpose(t *Quota, n uint64) error {
	return q.full(&scope.FullError{Arena: t.what(), What: "bytes", Asked: n, Free: q.size - q.held, Size: q.size,
		OnPurpose: true})
}

func (t *Quota) closedError(what string) error {
	if t.of.isSlots() {
		what = "AcquireWait"
	}
	return fmt.Errorf("budget %q: %s: %s: %w", t.of.b.plan.Name, t.what(), what, scope.ErrClosed)
}

// top returns the three tenants with the most bytes.
func (q *quota) top() (list []scope.Usage) {
	for t := range q.levels() {
		if bytes := t.held + t.beyond; bytes != 0 && t != &q.own {
			list = append(list, scope.Usage{Name: t.name, Bytes: bytes})
		}
	}
	slices.SortStableFunc(list, func(a, b scope.Usage) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list[:min(len(list), 3)]
}

// endedError is the error of a wait that ctx ended. The waiter is in the queue, or was granted at
// the same time.
func (q *quota) endedError(w *waiter, hint string, ended error) error {
	t, waited := w.t, time.Since(w.start).Round(time.Microsecond)
	var b strings.Builder
	if q.isSlots() {
		fmt.Fprintf(&b, "budget %q: %s: AcquireWait waited %v for one of %d slots", q.b.plan.Name, q.what, waited,
			q.size)
	} else {
		fmt.Fprintf(&b, "budget %q: %s: Reserve of %d bytes waited %v", q.b.plan.Name, t.what(), w.n, waited)
	}
	size, held, key := q.level(t, !t.queued)
	if w.queued {
		fmt.Fprintf(&b, ", behind %s", plural(q.ahead(w), "other"))
	} else {
		b.WriteString(", and was granted as ctx ended")
	}
	switch {
	case q.isSlots():
		fmt.Fprintf(&b, "; Release a slot, or raise regions[%d].slots in the plan", q.rank-slotsRank)
	default:
		fmt.Fprintf(&b, "; %d of %d bytes are free", size-held, size)
		for i, u := range q.top() {
			if i == 0 && u.Bytes != 0 {
				fmt.Fprintf(&b, ", and tenant %q has the most, %d bytes", u.Name, u.Bytes)
			}
		}
		fmt.Fprintf(&b, "; open reservations: %d; Release one, or raise %s in the plan", q.count, key)
	}
	return fmt.Errorf("%s: %w%s", b.String(), ended, hint)
}

// isSlots reports whether the units are slots.
func (q *quota) isSlots() bool { return q.rank >= slotsRank }

// ahead returns the number of waiters that are served before w, if nothing changes.
func (q *quota) ahead(w *waiter) (n int) {
	for before := w.prev; before != nil; before = before.prev {
		n++
	}
	own, passed := n, false
	if !w.t.queued {
		return n
	}
	for t := q.first; t != nil; t = t.next {
		switch {
		case t == w.t:
			passed = true
		case passed:
			n += min(t.waiting, own)
		default:
			n += min(t.waiting, own+1)
		}
	}
	return n
}

// waitSides are, in a checked build, the goroutines that wait for a quota, a slot or a lease.
type waitSides struct {
	mu   sync.Mutex
	list []waitSide
}

type waitSide struct {
	goroutine uint64
	rank      int // in the documented order
	what      string
	site      arena_c.Site
}

const slotsRank, leaseRank = 1 << 10, 1 << 20

// waits notes, in a checked build, that the goroutine begins to wait for a quota, slot or lease. If
// another goroutine waits for one that this goroutine took, and took one that this goroutine waits
// for, an error of the report has the lines of both. hint is the end of the wait's own error: the
// line at which the goroutine took the same one, or one later in the documented order.
func (b *Budget) waits(rank int, what string) (hint string) {
	side := waitSide{goroutine: goroutine(), rank: rank, what: what}
	side.site.Note()
	b.sides.mu.Lock()
	defer b.sides.mu.Unlock()
	for _, other := range b.sides.list {
		theirs, name := b.took(other.goroutine, rank, rank)
		ours, named := b.took(side.goroutine, other.rank, other.rank)
		if name != "" && named != "" {
			b.note(fmt.Errorf("budget %q: BUG: two goroutines wait for each other: take quotas in the order of the "+
				"plan, then slots, then leases, each once%s%s%s%s", b.plan.Name, ours.Tell("the first took "+named),
				side.site.Tell("and waits for "+what), theirs.Tell("the second took "+name),
				other.site.Tell("and waits for "+other.what)))
		}
	}
	b.sides.list = append(b.sides.list, side)
	at, name := b.took(side.goroutine, rank, math.MaxInt)
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; its goroutine took %s before: if it isn't another's by now, take quotas in the order of "+
		"the plan, then slots, then leases, each once%s", name, at.Tell(name+" taken"))
}

// hasWaited ends the wait of the goroutine.
func (b *Budget) hasWaited() {
	self := goroutine()
	b.sides.mu.Lock()
	defer b.sides.mu.Unlock()
	b.sides.list = slices.DeleteFunc(b.sides.list, func(s waitSide) bool { return s.goroutine == self })
}

// took returns the name and site of a reservation, slot or lease of the goroutine, with a rank from
// least to most.
func (b *Budget) took(self uint64, least, most int) (at arena_c.Site, name string) {
	for _, q := range b.quotas {
		q.mu.Lock()
		for x := range q.open {
			if least <= q.rank && q.rank <= most && x.goroutine == self {
				at, name = x.site, q.what
			}
		}
		q.mu.Unlock()
	}
	for _, s := range b.slots {
		s.mu.Lock()
		for _, slot := range s.slots {
			if rank := slotsRank + s.index; least <= rank && rank <= most && slot.taken() && slot.goroutine == self {
				at, name = slot.site, fmt.Sprintf("slot %q", slot.name)
			}
		}
		s.mu.Unlock()
	}
	for i := range b.leases.workers {
		w := &b.leases.workers[i]
		if least <= leaseRank && leaseRank <= most && w.is(scratchLent) && w.goroutine.Load() == self {
			at, name = w.site, "a lease of "+w.name()
		}
	}
	return at, name
}

// stackTexts has buffers for goroutine, because those of runtime.Stack escape.
var stackTexts = sync.Pool{New: func() any { return new([64]byte) }}

// goroutine returns the number of the calling goroutine, for checked builds.
func goroutine() (number uint64) {
	text := stackTexts.Get().(*[64]byte)
	defer stackTexts.Put(text)
	line := bytes.TrimPrefix(text[:runtime.Stack(text[:], false)], []byte("goroutine "))
	for _, c := range line {
		if c < '0' || c > '9' {
			break
		}
		number = number*10 + uint64(c-'0')
	}
	return number
}

// quotasHeld returns the reserved bytes of the process's memory that no other part of the plan has,
// at most their limits.
func (b *Budget) quotasHeld() (bytes uint64) {
	for _, q := range b.quotas {
		if q.plan.In == "" {
			q.mu.Lock()
			bytes += min(q.size, q.held+q.beyond)
			q.mu.Unlock()
		}
	}
	return bytes
}

// report describes the quota now. Any goroutine may call it.
func (q *quota) report() ArenaReport {
	q.mu.Lock()
	defer q.mu.Unlock()
	used := q.held + q.beyond
	r := ArenaReport{Name: q.plan.Name, Part: q.plan.Name, Kind: quotaKind, Size: q.size, Used: used, Peak: q.peak,
		LoadPeak: q.peak, Free: q.size - min(q.size, used), Fulls: q.fulls, Warnings: q.warnings,
		LastWarning: q.lastWarning, Waits: new(q.waitsNow())}
	if q.lastFull != nil {
		r.LastFull = q.lastFull.Error()
	}
	for _, t := range q.list {
		r.Labels = append(r.Labels, scope.Usage{Name: t.name, Bytes: t.held + t.beyond, Peak: t.peak})
	}
	return r
}

const quotaKind = "quota"

// waits returns the counts of waits, zero for an arena that nothing waits for.
func (r *ArenaReport) waits() (w Waits) {
	if r.Waits != nil {
		w = *r.Waits
	}
	return w
}

// waitsLocked returns the counts of waits. Any goroutine may call it.
func (q *quota) waitsLocked() Waits {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waitsNow()
}

// waitsNow returns the counts of waits, with those of now.
func (q *quota) waitsNow() Waits {
	w := q.waits
	w.Waiting = q.waiting
	for t := range q.levels() {
		if t.first != nil {
			w.Longest = max(w.Longest, time.Since(t.first.start))
		}
	}
	return w
}

// text returns the waits in words, or "".
func (w Waits) text() string {
	if w.Waiting == 0 && w.Waited == 0 {
		return ""
	}
	would := ""
	if w.Observed {
		would = "would have "
	}
	return fmt.Sprintf("%d wait, %d %swaited, the longest %v, all %v", w.Waiting, w.Waited, would,
		w.Longest.Round(time.Microsecond), w.Total.Round(time.Microsecond))
}
