package budget

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// Quota counts bytes and holds none: it bounds the callers that reserve from it, and nothing else.
// It adds memory to the plan that no region can hold: that of queries on the Go heap, of a GPU, or
// of a library with a malloc of its own. Work reserves its bytes before it begins
// ([Quota.Reserve]), and waits until they fit. ClickHouse and CockroachDB call this a memory
// monitor. The name here is quota, because in Go a monitor is also a lock or a watcher, and this
// one sets a limit.
//
// A quota has one level or two. With QuotaPlan.Tenants, [Quota.Tenant] returns the quota of a
// tenant, which has a limit of its own. A reservation takes its bytes at both levels or at none,
// and a caller that waits holds nothing.
//
// A caller waits at the topmost level without room. Callers of one tenant are served first in,
// first out. Tenants are served in turn, one reservation each. At each level the first caller that
// waits blocks the callers behind it, also those that ask for less, so a large reservation is
// served in the end. A tenant without room below its own limit loses its turn, and doesn't block
// others. It gets the last turn when it has room again.
//
// A goroutine can wait forever if it holds bytes, a slot or a lease for which another goroutine
// waits. So take everything in one order: quotas in the order of the plan, then slots
// ([Slots.AcquireWait]), then leases ([Budget.Lease]). Don't call Reserve while you hold a
// reservation of the same quota; use [Reservation.Grow], which never waits. A checked build finds
// two goroutines that wait for each other. An error of the report ([Plan.OnError]) then has the
// lines at which each took and waits. A reservation counts as that of the goroutine that made it.
//
// Any goroutine may use a Quota. Its lock is its own: loads, frames and scopes don't take it. With
// QuotaPlan.Observe a quota refuses and delays nothing, and counts the reservations that it would
// have refused or delayed.
type Quota struct {
	of   *quota
	name string // of the tenant
	mask uint64 // QuotaPlan.Piece - 1

	// of.mu guards the fields below
	size        uint64 // 0 while the tenant is gone
	held        uint64 // without the bytes beyond
	beyond      uint64 // reserved bytes that an observed quota would not have granted
	peak        uint64
	first, last *waiter
	waiting     int
	queued      bool // in the queue of the whole; else the first waiter waits at its own level
	next, prev  *Quota
	gone        bool // another tenant has its place
}

// quota is the whole of a quota: its limit, the queue of tenants, and the waiters. The slots of a
// region have one, in units of slots.
type quota struct {
	mu   sync.Mutex
	b    *Budget
	plan QuotaPlan
	what string // "quota query", "slots of region room"
	key  string // of the limit in the plan
	rank int    // in the documented order
	size uint64

	// mu guards the fields below
	slow        int    // waiters, and one if the quota observes or is closed
	held        uint64 // without the bytes beyond
	count       int    // reservations
	high, low   uint64 // a use above or below needs a call of use
	own         Quota  // of reservations without a tenant
	beyond      uint64 // reserved bytes that an observed quota would not have granted
	peak        uint64
	first, last *Quota // tenants that wait for the whole, in turn
	free        *waiter
	frees       int // waiters in free
	waiting     int
	crowd       int // levels with waiters
	tenants     map[string]*Quota
	list        []*Quota // the tenants
	look        int      // the last place that was looked at for a new tenant
	closed      bool
	warned      bool // since the use was below nine tenths of the share
	crossed     bool // a warning is due
	warnings    int
	lastWarning uint64
	fulls       int
	lastFull    *scope.FullError
	waits       Waits
	open        map[*extra]struct{} // in checked builds
}

// waiter is a caller that waits, or one that would wait in an observed quota. All waiters are made
// by Open: a channel that is made in a bubble of testing/synctest can't be used outside of it.
type waiter struct {
	t          *Quota
	n          uint64
	turn       uint64 // of its uses
	queued     bool
	start      time.Time
	woken      chan bool // true: granted; false: closed
	next, prev *waiter
}

// Waits counts the reservations of a quota, or the acquisitions of slots, that had to wait. Of an
// observed quota they are those that would have waited.
type Waits struct {
	Waiting int           `json:"waiting"` // now
	Waited  uint64        `json:"waited"`  // since Open, without those that wait now
	Longest time.Duration `json:"longest"` // since Open, also of those that wait now
	Total   time.Duration `json:"total"`   // of all that have waited
	// Observed reports that the quota only observes. Waits are then as if each reservation left the
	// queue at its Release: a wait that would have been longer than the work counts as long as the
	// work.
	Observed bool `json:"observed,omitempty"`
}

// Reservation is a number of bytes that a quota counts. It is for one goroutine at a time, and must
// not be copied after its first use. The zero Reservation has no bytes; Release of it does nothing,
// so `defer r.Release()` may precede the check of Reserve's error.
type Reservation struct {
	t     *Quota
	n     uint64 // bytes reserved, or released
	taken uint64 // n in whole pieces
	extra *extra // in checked builds, and beyond the limits of an observed quota
}

const released = math.MaxUint64

// extra is the part of a reservation that most don't have.
type extra struct {
	beyond uint64  // the part of taken that an observed quota would have refused
	w      *waiter // that would wait, while its turn is this one
	turn   uint64

	site, ended arena_c.Site // in checked builds
	goroutine   uint64
}

const quotaWaiters = 128 // by default, and one for each tenant

func newQuota(b *Budget, plan QuotaPlan, what, key string, rank int) *quota {
	q := &quota{b: b, plan: plan, what: what, key: key, rank: rank, size: plan.Size}
	q.own = Quota{of: q, size: q.size, mask: max(plan.Piece, 1) - 1}
	if plan.Tenants != 0 {
		q.tenants = make(map[string]*Quota, plan.Tenants)
	}
	if q.waits.Observed = plan.Observe; plan.Observe {
		q.slow = 1
	}
	waiters := make([]waiter, plan.waiters())
	for i := range waiters {
		waiters[i].woken = make(chan bool, 1)
		q.putFree(&waiters[i])
	}
	if arena_c.Checked {
		q.open = map[*extra]struct{}{}
	}
	return q
}

// Quota returns the quota of that name in the plan. An unknown name is a caller's bug and panics.
// Any goroutine may call it.
func (b *Budget) Quota(name string) *Quota {
	var names []string
	for _, q := range b.quotas {
		if q.plan.Name == name {
			return &q.own
		}
		names = append(names, q.plan.Name)
	}
	panic(fmt.Sprintf("budget: BUG: plan %q has no quota %q; it has %s", b.plan.Name, name, orNone(names)))
}

// Tenant returns the quota of a tenant, which it makes at the first call for the name. A name is
// any text, also the empty one. The plan has places for QuotaPlan.Tenants tenants at once; a new
// name takes the place of a tenant that has no bytes and doesn't wait. If there is none, Tenant
// returns an [ErrFull], and after Close an [ErrClosed]. The result stays valid until Close, also
// after another tenant took its place. Tenant of a tenant, or of a quota without tenants, is a
// caller's bug and panics. Cost: a lock and a look-up, without Go allocation for a name that has a
// place.
func (t *Quota) Tenant(name string) (*Quota, error) {
	q := t.its()
	if t != &q.own || q.plan.Tenants == 0 {
		panic(fmt.Sprintf("budget %q: BUG: Tenant(%q) of %s: it needs %s.tenants in the plan, and the quota from "+
			"Budget.Quota", q.b.plan.Name, name, t.what(), q.key))
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, t.closedError("Tenant")
	}
	return q.tenant(name, nil)
}

// tenant returns the tenant of that name, or puts known or a new one into a place.
func (q *quota) tenant(name string, known *Quota) (*Quota, error) {
	if t := q.tenants[name]; t != nil {
		return t, nil
	}
	if known == nil {
		known = &Quota{of: q, name: name, mask: q.own.mask}
	}
	if len(q.list) < q.plan.Tenants {
		q.list = append(q.list, known)
	} else if place := q.idle(); place >= 0 {
		old := q.list[place]
		delete(q.tenants, old.name)
		old.gone, old.size, q.list[place] = true, 0, known
	} else {
		n := uint64(q.plan.Tenants)
		return nil, q.full(&scope.FullError{What: "tenants", Asked: 1, Size: n, Need: n + 1, Key: q.key + ".tenants"})
	}
	known.gone, known.size, q.tenants[name] = false, q.plan.tenant(), known
	return known, nil
}

// idle returns the place of a tenant without bytes and waiters, or -1.
func (q *quota) idle() int {
	for range q.list {
		q.look = (q.look + 1) % len(q.list)
		if t := q.list[q.look]; t.held|t.beyond == 0 && t.waiting == 0 {
			return q.look
		}
	}
	return -1
}

// Reserve waits until n bytes fit, and counts them. The caller owns the result, and calls Release.
// A reservation of 0 bytes never waits.
//
// If n is more than the quota's or the tenant's limit, or the queue is full (QuotaPlan.Waiters),
// Reserve returns an [ErrFull] at once. Of the places in the queue, one is kept for each tenant
// that doesn't wait. If ctx ends first, the error wraps that of ctx, and says how long the caller
// waited, behind how many others, and which tenant has the most. After Close the error is
// [ErrClosed].
//
// Cost: a lock, some 12 ns, and as much for Release; a wait is some hundred ns, without Go
// allocation or goroutine, unless the call is the first of ctx.Done.
func (t *Quota) Reserve(ctx context.Context, n uint64) (Reservation, error) {
	if q := t.of; !arena_c.Checked && q != nil && n <= q.size && ctx.Err() == nil {
		take := (n + t.mask) &^ t.mask
		q.mu.Lock()
		if held := q.held + take; held <= q.size && take <= t.size-t.held && q.slow == 0 && held <= q.high {
			q.held, t.held = held, t.held+take
			if t.held > t.peak {
				t.peak = t.held
			}
			q.count++
			q.mu.Unlock()
			return Reservation{t: t, n: n, taken: take}, nil
		}
		q.mu.Unlock()
	}
	return t.reserve(ctx, n)
}

// reserve is Reserve for all cases.
func (t *Quota) reserve(ctx context.Context, n uint64) (r Reservation, err error) {
	q := t.its()
	if err := ctx.Err(); err != nil {
		return r, fmt.Errorf("budget %q: %s: Reserve of %d bytes: %w", q.b.plan.Name, t.what(), n, err)
	}
	q.mu.Lock()
	r, w, err := q.ask(t, n)
	q.unlock()
	if err == nil && w != nil {
		err = q.wait(ctx, w)
	}
	if err != nil {
		return Reservation{}, err
	}
	if arena_c.Checked {
		r.note()
	}
	return r, nil
}

// ask grants n bytes, or returns a queued waiter, or an error.
func (q *quota) ask(t *Quota, n uint64) (r Reservation, w *waiter, err error) {
	if q.closed {
		return r, nil, t.closedError("Reserve")
	}
	if t.gone {
		if t, err = q.tenant(t.name, t); err != nil {
			return r, nil, err
		}
	}
	if arena_c.Checked && !q.isSlots() && arena_c.Refuse() { // Acquire asks by itself
		arena_c.Tell()
		return r, nil, q.onPurpose(t, n)
	}
	if n > planHeapMax {
		return r, nil, q.tooLarge(t, n)
	}
	take := (n + t.mask) &^ t.mask
	switch {
	case take > min(q.size, t.size):
		err = q.tooLarge(t, n)
	case n == 0 || q.first == nil && t.first == nil && q.fits(t, take):
		q.add(t, take)
		q.count++
		return Reservation{t: t, n: n, taken: take}, nil, nil
	default:
		if w = q.enqueue(t, take); w == nil {
			size := uint64(q.plan.waiters())
			err = q.full(&scope.FullError{Arena: t.what(), What: "waiters", Asked: 1, Size: size, Need: size + 1,
				Key: q.key + ".waiters"})
		}
	}
	r = Reservation{t: t, n: n, taken: take}
	if !q.plan.Observe {
		return r, w, err
	}
	r.extra = &extra{w: w}
	if w == nil {
		r.extra.beyond = take
	} else {
		r.extra.turn = w.turn
	}
	q.addBeyond(t, take)
	q.count++
	return r, nil, nil
}

// fits reports whether bytes fit at both levels.
func (q *quota) fits(t *Quota, take uint64) bool {
	return take <= q.size-q.held && take <= t.size-t.held
}

// add counts bytes at both levels.
func (q *quota) add(t *Quota, take uint64) {
	q.held, t.held = q.held+take, t.held+take
	t.peak = max(t.peak, t.held+t.beyond)
	q.use()
}

// addBeyond counts bytes that an observed quota wouldn't have granted.
func (q *quota) addBeyond(t *Quota, take uint64) {
	q.beyond, t.beyond = q.beyond+take, t.beyond+take
	t.peak = max(t.peak, t.held+t.beyond)
	q.use()
}

// use follows the use of the whole: its peak, and its share for a warning.
func (q *quota) use() {
	used := q.held + q.beyond
	q.peak = max(q.peak, used)
	q.high, q.low = q.peak, 0
	if q.plan.Warn == 0 {
		return
	}
	share := q.size/100*uint64(q.plan.Warn) + (q.size%100*uint64(q.plan.Warn)+99)/100
	switch again := share - share/10; {
	case used >= share && !q.warned:
		q.warned, q.crossed, q.lastWarning = true, true, used
		q.warnings++
	case used < again:
		q.warned = false
	}
	if q.warned {
		q.low = share - share/10
	} else {
		q.high = min(q.high, share-1)
	}
}

// unlock unlocks mu, and passes a warning that is due to Plan.OnWarn.
func (q *quota) unlock() {
	crossed, used := q.crossed, q.lastWarning
	var top []scope.Usage
	if crossed {
		q.crossed = false
		top = q.top()
	}
	q.mu.Unlock()
	if crossed {
		w := Warning{Arena: q.plan.Name, Key: q.key + ".size", Used: used, Size: q.size, Share: q.plan.Warn}
		copy(w.Labels[:], top)
		q.b.warn(w)
	}
}

// enqueue puts a waiter behind those of the tenant, or returns nil if the queue is full. Tenants
// that don't wait keep one place each.
func (q *quota) enqueue(t *Quota, take uint64) *waiter {
	if kept := q.plan.Tenants + 1 - q.crowd; t.first != nil && q.frees <= kept || q.frees == 0 {
		return nil
	}
	w := q.free
	q.free = w.next
	q.frees--
	q.waiting++
	q.slow++
	w.t, w.n, w.queued, w.start = t, take, true, time.Now()
	w.next, w.prev = nil, t.last
	if t.waiting++; t.last != nil {
		t.last.next = w
	} else {
		t.first = w
		q.crowd++
		if q.first != nil || take > q.size-q.held { // the topmost level that has no room
			q.push(t)
		}
	}
	t.last = w
	return w
}

// dequeue takes a waiter out of its tenant's queue, and counts its wait.
func (q *quota) dequeue(w *waiter) {
	t := w.t
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		t.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		t.last = w.prev
	}
	w.queued = false
	w.turn++
	q.waiting--
	q.slow--
	if t.waiting--; t.waiting == 0 {
		q.crowd--
		if t.queued {
			q.pop(t)
		}
	}
	waited := time.Since(w.start)
	q.waits.Waited++
	q.waits.Total += waited
	q.waits.Longest = max(q.waits.Longest, waited)
}

func (q *quota) putFree(w *waiter) {
	w.t, w.prev, w.next = nil, nil, q.free
	q.free = w
	q.frees++
}

// push gives the tenant the last turn.
func (q *quota) push(t *Quota) {
	t.queued, t.next, t.prev = true, nil, q.last
	if q.last != nil {
		q.last.next = t
	} else {
		q.first = t
	}
	q.last = t
}

// pop takes the tenant out of the queue of the whole.
func (q *quota) pop(t *Quota) {
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		q.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		q.last = t.prev
	}
	t.queued, t.next, t.prev = false, nil, nil
}

// wake serves waiters in turn, until the first of the whole doesn't fit. It runs after t has fewer
// bytes, or another first waiter.
func (q *quota) wake(t *Quota) {
	if t.first != nil && !t.queued && t.first.n <= t.size-t.held {
		q.push(t)
	}
	for q.first != nil {
		t := q.first
		w := t.first
		if w.n > q.size-q.held {
			return // it blocks all that follow
		}
		q.pop(t)
		if w.n > t.size-t.held {
			continue // it waits at its own level, until wake of t
		}
		q.dequeue(w)
		if q.plan.Observe {
			q.beyond, t.beyond = q.beyond-w.n, t.beyond-w.n
		}
		q.add(t, w.n)
		if t.first != nil {
			q.push(t)
		}
		if q.plan.Observe {
			q.putFree(w)
			continue
		}
		q.count++
		w.woken <- true // the channel has room: each waiter is woken once in a turn
	}
}

// wait waits until the waiter is granted.
func (q *quota) wait(ctx context.Context, w *waiter) error {
	hint := ""
	if arena_c.Checked {
		hint = q.b.waits(q.rank, w.t.what())
		defer q.b.hasWaited()
	}
	granted, woken := false, true
	select {
	case granted = <-w.woken:
	case <-ctx.Done():
		woken = false
	}
	ended := ctx.Err()
	q.mu.Lock()
	defer q.unlock()
	defer q.putFree(w)
	t := w.t
	switch {
	case woken:
	case w.queued:
		err := q.endedError(w, hint, ended)
		q.dequeue(w)
		q.wake(t)
		return err
	default: // it was woken as ctx ended
		granted = <-w.woken
	}
	switch {
	case !granted:
		return t.closedError("Reserve")
	case ended == nil:
		return nil
	}
	err := q.endedError(w, hint, ended)
	q.held, t.held = q.held-w.n, t.held-w.n
	q.count--
	q.use()
	q.wake(t)
	return err
}

// Grow reserves n more bytes for work that is under way. It never waits, and passes the callers
// that wait: the bytes fit, or Grow returns an [ErrFull] and changes nothing. Two owners of half of
// a quota that both wait to grow would wait forever. After Close the error is [ErrClosed]. Cost: a
// lock, or some ns within a piece (QuotaPlan.Piece); no Go allocation, unless it fails.
func (r *Reservation) Grow(n uint64) error {
	if more := r.n + n; more <= r.taken && more >= n {
		r.n = more
		return nil
	}
	return r.grow(n)
}

func (r *Reservation) grow(n uint64) error {
	q := r.its("Grow")
	q.mu.Lock()
	defer q.unlock()
	if q.closed {
		return r.t.closedError("Grow")
	}
	if r.t.gone { // without bytes
		t, err := q.tenant(r.t.name, r.t)
		if err != nil {
			return err
		}
		r.t = t
	}
	t, more := r.t, r.n+n
	if arena_c.Checked && arena_c.Refuse() {
		arena_c.Tell()
		return q.onPurpose(t, n)
	}
	take := (more+t.mask)&^t.mask - r.taken
	switch {
	case n > planHeapMax || more > planHeapMax:
		return q.tooLarge(t, n)
	case q.fits(t, take):
		q.add(t, take)
	default:
		if err := q.noRoom(t, take); !q.plan.Observe {
			return err
		}
		if r.extra == nil {
			r.extra = new(extra)
		}
		r.extra.beyond += take
		q.addBeyond(t, take)
	}
	r.n, r.taken = more, r.taken+take
	return nil
}

// Shrink gives n bytes back, for example when the size of a result is known. Callers that wait get
// them at once. More bytes than the reservation has are a caller's bug, and Shrink panics. Cost: as
// that of Grow.
func (r *Reservation) Shrink(n uint64) {
	if less := r.n - n; r.t != nil && n <= r.n && r.n <= r.taken && (less+r.t.mask)&^r.t.mask == r.taken {
		r.n = less
		return
	}
	r.shrink(n)
}

func (r *Reservation) shrink(n uint64) {
	q := r.its("Shrink")
	if n > r.n {
		panic(fmt.Sprintf("budget %q: BUG: Shrink of %d bytes of %s: the reservation has %d", q.b.plan.Name, n,
			r.t.what(), r.n))
	}
	r.n -= n
	to := (r.n + r.t.mask) &^ r.t.mask
	q.mu.Lock()
	defer q.unlock()
	q.give(r, r.taken-to)
	r.taken = to
}

// give subtracts bytes of the reservation, first those that an observed quota wouldn't have
// granted.
func (q *quota) give(r *Reservation, d uint64) {
	t := r.t
	if x := r.extra; x != nil {
		refused := min(d, x.beyond)
		x.beyond -= refused
		d -= refused
		waits := uint64(0)
		if w := x.w; w != nil && w.turn == x.turn { // it still would wait
			waits = min(d, w.n)
			w.n -= waits
			if d -= waits; w.n == 0 {
				q.dequeue(w)
				q.putFree(w)
			}
		}
		q.beyond, t.beyond = q.beyond-refused-waits, t.beyond-refused-waits
	}
	if d > t.held || d > q.held {
		panic(fmt.Sprintf("budget %q: BUG: %s has %d bytes, and a reservation gives %d back: was it copied and "+
			"released twice?", q.b.plan.Name, t.what(), t.held, d))
	}
	q.held, t.held = q.held-d, t.held-d
	q.use()
	q.wake(t)
}

// Release gives the bytes back, and grants those that wait as long as the first of them fits. A
// second Release is a caller's bug and panics; a checked build names both calls. Release of the
// zero Reservation does nothing. The bytes are numbers: memory of the Go heap is free once the
// collector has run.
func (r *Reservation) Release() {
	t, n := r.t, r.taken
	if t != nil && r.extra == nil && r.n != released {
		q := t.of
		q.mu.Lock()
		if held := q.held - n; q.slow == 0 && held >= q.low && n <= t.held {
			q.held, t.held = held, t.held-n
			q.count--
			q.mu.Unlock()
			r.n, r.taken = released, 0
			return
		}
		q.mu.Unlock()
	}
	r.release()
}

func (r *Reservation) release() {
	if r.t == nil {
		return
	}
	q := r.t.of
	q.mu.Lock()
	defer q.unlock()
	if x := r.extra; r.n == released || arena_c.Checked && x.ended != (arena_c.Site{}) {
		panic(fmt.Sprintf("budget %q: BUG: Release of a reservation of %s that was released before%s", q.b.plan.Name,
			r.t.what(), x.text()))
	}
	if arena_c.Checked {
		delete(q.open, r.extra)
		r.extra.ended.Note()
	}
	q.give(r, r.taken)
	q.count--
	r.n, r.taken = released, 0
}

// its returns the quota, and panics for a Reservation without one.
func (r *Reservation) its(what string) *quota {
	if r.t == nil || r.n == released {
		panic("budget: BUG: " + what + " of a Reservation that is zero or was released: get one from Quota.Reserve" +
			r.extra.text())
	}
	return r.t.of
}

// note notes the call in a checked build.
func (r *Reservation) note() {
	if r.extra == nil {
		r.extra = new(extra)
	}
	r.extra.site.Note()
	r.extra.goroutine = goroutine()
	q := r.t.of
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open[r.extra] = struct{}{}
}

// text returns the lines of both calls, in a checked build.
func (x *extra) text() string {
	if x == nil {
		return ""
	}
	return x.site.Tell("reserved") + x.ended.Tell("released")
}

// its returns t.of, and panics for the zero Quota.
func (t *Quota) its() *quota {
	if t == nil || t.of == nil {
		panic("budget: BUG: a zero Quota: get one from Budget.Quota")
	}
	return t.of
}

func (t *Quota) what() string {
	if t == &t.of.own {
		return t.of.what
	}
	return fmt.Sprintf("%s, tenant %q", t.of.what, t.name)
}

// waitForSlot waits for one of the slots.
func (q *quota) waitForSlot(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("budget %q: %s: AcquireWait: %w", q.b.plan.Name, q.what, err)
	}
	q.mu.Lock()
	_, w, err := q.ask(&q.own, 1)
	q.mu.Unlock()
	if err != nil || w == nil {
		return err
	}
	return q.wait(ctx, w)
}

// takeSlot takes one of the slots, unless others wait, and reports whether it did.
func (q *quota) takeSlot() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.first != nil || !q.fits(&q.own, 1) {
		return false
	}
	q.add(&q.own, 1)
	q.count++
	return true
}

// putSlot gives a slot back.
func (q *quota) putSlot() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held, q.own.held = q.held-1, q.own.held-1
	q.count--
	q.wake(&q.own)
}

// close ends the waits and returns the reservations that were never released, which are leaks.
func (q *quota) close() (kept leaks) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.slow++
	for t := range q.levels() {
		for t.first != nil {
			w := t.first
			q.dequeue(w)
			if q.plan.Observe {
				q.putFree(w)
			} else {
				w.woken <- false
			}
		}
	}
	for o := range q.open {
		kept.add("a reservation of "+q.what, o.site.Tell("a reservation of "+q.what+" made"))
	}
	for kept.count < q.count {
		kept.add("a reservation of "+q.what, "")
	}
	return kept
}

// levels yields the own level and the tenants.
func (q *quota) levels() func(yield func(*Quota) bool) {
	return func(yield func(*Quota) bool) {
		if !yield(&q.own) {
			return
		}
		for _, t := range q.list {
			if !yield(t) {
				return
			}
		}
	}
}
