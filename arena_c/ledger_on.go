//go:build memtrace

package arena_c

import (
	"sync"
	"unsafe"
)

// ledger is where the requests of rows are booked: who asked, for how much, and whether it is live. One lock for all:
// finding out who asks takes much longer.
var ledger = struct {
	sync.Mutex
	rows   []rowLedger // the first is none
	free   []uint32    // rows that were closed
	runs   table[run]
	lines  table[line]
	stacks table[stack]
	every  uint64 // bytes from sample to sample
	lost   uint64
}{
	rows:   make([]rowLedger, 1),
	every:  4096,
	runs:   table[run]{store: runStore[:], below: func(r *run) *uint32 { return &r.below }},
	lines:  table[line]{store: lineStore[:], below: func(l *line) *uint32 { return &l.below }},
	stacks: table[stack]{store: stackStore[:], below: func(s *stack) *uint32 { return &s.below }},
}

// places knows the rows, their pools, and the chunks that are live. Under the ledger's lock.
var places placeTable

type rowLedger struct{ near, far, lines uint32 } // the newest

// OpenLedger begins to book what is asked for in the row. A request is booked at the first call that isn't the library's;
// what has no bytes is none. Cost, of each request from then on: 1 to 2 us, most of it the walk up the stack.
func (r *Row) OpenLedger() {
	ledger.Lock()
	defer ledger.Unlock()
	n := uint32(len(ledger.rows))
	if last := len(ledger.free) - 1; last >= 0 {
		n, ledger.free = ledger.free[last], ledger.free[:last]
		ledger.rows[n] = rowLedger{}
	} else {
		ledger.rows = append(ledger.rows, rowLedger{})
	}
	if !places.put(place{address: r.address(), row: n}) {
		ledger.lost++
	}
}

// CloseLedger forgets what was booked.
func (r *Row) CloseLedger() {
	ledger.Lock()
	defer ledger.Unlock()
	n := places.remove(r.address()).row
	if n == 0 {
		return
	}
	g := &ledger.rows[n]
	g.release(&g.near, 0)
	g.release(&g.far, 0)
	for g.lines != 0 {
		for x := ledger.lines.at(g.lines); x.stacks != 0; {
			x.stacks = ledger.stacks.put(x.stacks)
		}
		g.lines = ledger.lines.put(g.lines)
	}
	ledger.free = append(ledger.free, n)
}

func (r *Row) address() uintptr  { return uintptr(unsafe.Pointer(r)) }
func (p *Pool) address() uintptr { return uintptr(unsafe.Pointer(p)) }

// SampleStacks has the way to a request noted at each n-th byte of its site from now on, for all rows; it says what n was.
// The first byte of a site is always sampled. 0 changes nothing.
func SampleStacks(n uint64) (was uint64) {
	ledger.Lock()
	defer ledger.Unlock()
	if was = ledger.every; n != 0 {
		ledger.every = n
	}
	return was
}

// LedgerLost is how many requests were not booked, or not with their stacks, since the process began: tables were full.
func LedgerLost() uint64 {
	ledger.Lock()
	defer ledger.Unlock()
	return ledger.lost
}

// booked books what a header of a row gave; another header has no ledger.
func booked(l, was *Linear) {
	if l.Index() >= OffsetMax {
		return // the peak of an arena on a block
	}
	row := l.Row()
	gave := l.Count - was.Count
	size, objects := gave%Object, gave/Object
	if size == 0 {
		return
	}
	site := callSite()
	ledger.Lock()
	defer ledger.Unlock()
	n := places.find(row.address()).row
	if n == 0 {
		return
	}
	g := &ledger.rows[n]
	newest := &g.far
	if l != row.Far() {
		newest = &g.near
		g.release(newest, was.Cursor) // what C code closed
	}
	line := g.lineOf(site, false)
	if line == 0 {
		ledger.lost++
		return
	}
	next := run{at: l.Cursor - size, size: size, n: 1, below: *newest, line: line, objects: uint32(objects)}
	next.stack, next.samples = gain(line, size, objects)
	if ledger.runs.at(*newest).joins(&next) {
		return
	}
	if at := ledger.runs.take(); at != 0 {
		*ledger.runs.at(at) = next
		*newest = at
		return
	}
	ledger.lost++
	lose(next.line, next.stack, next.samples, size, objects)
}

// joins adds a request to the run before it, if it is one more of them.
func (r *run) joins(next *run) bool {
	stride := next.at - (r.at + (r.n-1)*r.stride)
	if r.line != next.line || r.size != next.size || r.objects != next.objects || r.stack|next.stack != 0 ||
		r.n > 1 && r.stride != stride {
		return false
	}
	r.n, r.stride = r.n+1, stride
	return true
}

// release books out what lies from an offset up.
func (g *rowLedger) release(newest *uint32, cursor uint64) {
	for *newest != 0 {
		r, kept := ledger.runs.at(*newest), uint64(0)
		if r.at < cursor {
			if kept = 1; r.n > 1 {
				kept = min(r.n, (cursor-r.at+r.stride-1)/r.stride)
			}
		}
		lose(r.line, r.stack, r.samples, (r.n-kept)*r.size, (r.n-kept)*uint64(r.objects))
		if r.n = kept; kept != 0 {
			return
		}
		*newest = ledger.runs.put(*newest)
	}
}

// settle books out what is no longer there: after each operation that takes back.
func settle(r *Row) {
	near := r.Start
	if r.Open != 0 {
		near = r.Slot(r.Open - 1).Cursor
	}
	ledger.Lock()
	defer ledger.Unlock()
	if n := places.find(r.address()).row; n != 0 {
		g := &ledger.rows[n]
		g.release(&g.near, near)
		if r.FarOf == 0 {
			g.release(&g.far, 0)
		}
	}
}

// lineOf is the line of a site, 0 when all are taken. It comes to the front: the next request is often the same.
func (g *rowLedger) lineOf(site uint32, chunks bool) uint32 {
	for at := &g.lines; *at != 0; at = &ledger.lines.at(*at).below {
		n := *at
		if x := ledger.lines.at(n); x.site == site && x.chunks == chunks {
			*at = x.below
			x.below, g.lines = g.lines, n
			return n
		}
	}
	n := ledger.lines.take()
	if n != 0 {
		x := ledger.lines.at(n)
		x.site, x.chunks, x.below = site, chunks, g.lines
		g.lines = n
	}
	return n
}

// gain books bytes in, and samples the way here if its turn has come.
func gain(n uint32, size, objects uint64) (at, samples uint32) {
	x := ledger.lines.at(n)
	x.live.Bytes += size
	x.live.Objects += objects
	x.peak.Bytes, x.peak.Objects = max(x.peak.Bytes, x.live.Bytes), max(x.peak.Objects, x.live.Objects)
	x.total.Bytes += size
	x.total.Objects += objects
	if x.sampleAt >= x.total.Bytes {
		return 0, 0
	}
	taken := (x.total.Bytes-x.sampleAt-1)/ledger.every + 1
	x.sampleAt += taken * ledger.every
	calls := Here(4) // below this, booked, given and Bump; or gotChunk, get and Get
	for at = x.stacks; at != 0 && ledger.stacks.at(at).calls != calls; {
		at = ledger.stacks.at(at).below
	}
	if at == 0 {
		if at = ledger.stacks.take(); at == 0 {
			ledger.lost++
			return 0, 0
		}
		*ledger.stacks.at(at) = stack{calls: calls, below: x.stacks}
		x.stacks = at
	}
	s := ledger.stacks.at(at)
	s.live += uint64(uint32(taken))
	s.total += uint64(uint32(taken))
	return at, uint32(taken)
}

func lose(n, at, samples uint32, size, objects uint64) {
	if n == 0 {
		return
	}
	x := ledger.lines.at(n)
	x.live.Bytes -= size
	x.live.Objects -= objects
	if at != 0 && size != 0 {
		ledger.stacks.at(at).live -= uint64(samples)
	}
}
