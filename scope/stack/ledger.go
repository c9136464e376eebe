package stack

import (
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
)

// A ledger is the history of an arena: its counts, and the present and past bytes of scopes and
// labels, by name. The arena's headers have only the present. The method look compares the headers
// with those of its last call (the last look), books the difference, and reports each step to the
// sink, if a sink is set.
//
// look runs before a number is lost: before a scope closes and before nodes run. It also runs when
// the ledger is read and, with a sink or a warning, before a scope opens. Between two looks the
// arena only grows, so no peak is missed. An example: at the last look, scope "level" had 100
// bytes. Since then it took 20 more, and "inner" opened and took 50. Before "inner" closes, look
// books 20 bytes for "level" and 50 for "inner". After the close the next look doesn't find "inner"
// in the headers, and takes the 50 bytes off the line of "inner"; the line's Peak of 50 stays.
//
// A report is a copy of ledgers, a timeline samples their peaks, and a recording is the steps of
// the sink.
type ledger struct {
	finalizers uint64     // that have run
	failed     int        // finalizers that returned an error or panicked
	unwound    uint64     // number of unwindings
	leaks      uint64     // blocks that were live when their arena ended
	lastFull   *FullError // the last that was reported
	fulls      int        // number of full errors reported

	peakEver   uint64 // highest use before the last ResetPeak
	mostScopes uint64 // open at once, as of the last countMost
	mostPools  uint64 // open at once, as of the last countMost
	scopes     usages // bytes of scopes by name; lines is nil if scopes aren't counted
	// the scopes open at the last look, the lowest first, if scopes are counted or recorded
	seen []seenScope
	end  uint64 // end of the topmost scope in seen, from the arena's first byte
	temp uint64 // bytes of temporaries at the last look, if scopes are counted
	sink *sink  // nil: nothing is recorded
}

// seenScope is a scope that was open at the last look. Its bytes were those from its mark to the
// next scope's mark, or to the ledger's end.
type seenScope struct {
	gen     uint64
	mark    uint64 // from the arena's first byte
	objects uint32
	line    uint32 // index of its name's line
}

func (st *Stack) look() { st.lookAt(arena_c.Site{}) }

// lookAt is look with the place that made the newest object.
func (st *Stack) lookAt(site arena_c.Site) {
	st.labels.settle()
	h := st.h
	if h.Odd&(oddNames|oddRecorded) == 0 {
		return
	}
	st.sink.endTemps(&st.row.Temp)
	same := 0
	for same < len(st.seen) && same < int(h.Depth) && st.seen[same].gen == h.Record(uint64(same+1)).Gen {
		same++
	}
	for last := len(st.seen) - 1; last >= same; last-- {
		s := st.seen[last]
		st.scopes.book(s.line, held{st.end - s.mark, uint64(s.objects)}, held{})
		st.seen, st.end = st.seen[:last], s.mark
		st.sink.closed(s.mark)
	}
	for depth := uint64(same + 1); depth <= h.Depth; depth++ {
		st.moved(h.Record(depth).Mark-h.Start, arena_c.Site{})
		st.sees(depth)
	}
	if h.Depth > 0 {
		st.moved(h.Cursor-h.Start, site)
	}
	if far := st.row.End - h.Limit; far != st.temp && st.scopes.lines != nil {
		st.scopes.book(st.lineOf(&st.scopes, tempName), held{bytes: st.temp}, held{bytes: far})
		st.temp = far
	}
	st.tellMost()
	st.lookAtUse()
}

// sees books a scope that opened since the last look.
func (st *Stack) sees(depth uint64) {
	n, name := len(st.seen), st.nameOf(st.h, depth)
	// the line of the last scope in this place, which usually had the same name
	line := st.seen[:n+1][n].line
	if st.scopes.lines != nil && !st.scopes.has(line, name) {
		line = st.lineOf(&st.scopes, name)
	}
	st.seen = append(st.seen, seenScope{gen: st.h.Record(depth).Gen, mark: st.end, line: line})
	st.sink.opened(name)
}

// moved books the new end of the topmost scope in seen.
func (st *Stack) moved(to uint64, site arena_c.Site) {
	if n := len(st.seen); n != 0 {
		s, objects := &st.seen[n-1], st.h.Record(uint64(n)).Count/arena_c.Object
		st.scopes.book(s.line, held{st.end - s.mark, uint64(s.objects)}, held{to - s.mark, objects})
		s.objects, st.end = uint32(objects), to
	}
	st.sink.moved(to, site)
}

// CountScopes starts to count the bytes of scopes by name. Close then takes its slow path. A second
// call changes nothing. pre: no scope is open.
func (st *Stack) CountScopes() {
	if st.scopes.lines == nil {
		st.scopes.lines = make([]Usage, 0, st.Names+1)
		st.see(oddNames)
	}
}

func (st *Stack) see(odd uint64) {
	if st.seen == nil {
		st.seen = make([]seenScope, 0, st.h.Slots)
	}
	st.h.Odd |= odd
}

func (st *Stack) lineOf(u *usages, name string) (line uint32) {
	if i := slices.IndexFunc(u.lines, func(line Usage) bool { return line.Name == name }); i >= 0 {
		return uint32(i)
	}
	switch cap(u.lines) - len(u.lines) {
	case 0:
	case 1:
		u.lines = append(u.lines, Usage{Name: othersName})
	default:
		u.lines = append(u.lines, Usage{Name: st.keep(name)})
	}
	return uint32(len(u.lines) - 1)
}

// Usage is the memory of all scopes of one name, or of a label.
type Usage struct {
	Name    string `json:"name"`
	Bytes   uint64 `json:"bytes"`             // in use now
	Objects uint64 `json:"objects,omitempty"` // live allocations; 0 unless Stats.Counted
	// the highest Bytes since Open or Reconfigure; 0 if not counted
	Peak uint64 `json:"peak"`

	PeakObjects uint64 `json:"peak_objects,omitempty"` // the highest Objects

	// Allocated is the sum of all Bytes allocated since Open or Reconfigure, freed bytes included;
	// 0 if not counted.
	Allocated        uint64 `json:"allocated,omitempty"`
	AllocatedObjects uint64 `json:"allocated_objects,omitempty"` // the sum of all Objects allocated
}

// usages is a table of planned size, with an entry (a line) for each name. Further names share the
// last line.
type usages struct{ lines []Usage } // cap: the places, and one for others

type held struct{ bytes, objects uint64 }

func (u *usages) has(line uint32, name string) bool {
	return int(line) < len(u.lines) && u.lines[line].Name == name
}

// book updates a line for a scope or call of Label, which held was before and holds now.
func (u *usages) book(line uint32, was, now held) {
	if u.lines == nil || was == now {
		return
	}
	l := &u.lines[line]
	l.Bytes += now.bytes - was.bytes
	l.Objects += now.objects - was.objects
	l.Allocated += max(now.bytes, was.bytes) - was.bytes
	l.AllocatedObjects += max(now.objects, was.objects) - was.objects
	l.raise()
}

func (u *Usage) raise() {
	u.Peak, u.PeakObjects = max(u.Peak, u.Bytes), max(u.PeakObjects, u.Objects)
}

// AppendUsage appends the lines of scopes and of labels, in the order in which their names first
// appeared, and returns both lists. It appends no scopes if scopes aren't counted. Live labels that
// the table has no line for come last. Memory that a failed constructor freed counts for the peak.
// UsageLines returns the capacity that the lists need.
func (st *Stack) AppendUsage(scopes, labels []Usage) (allScopes, allLabels []Usage) {
	st.look()
	scopes = append(scopes, st.scopes.lines...)
	first, totals := len(labels), st.labels.totals.lines
	labels = append(labels, totals...)
	for _, a := range st.labels.lines {
		if totals[a.total].Name == a.name {
			continue
		}
		labels[first+int(a.total)].Bytes -= a.bytes
		i := slices.IndexFunc(labels[first+len(totals):], func(u Usage) bool { return u.Name == a.name })
		if i < 0 {
			i, labels = len(labels)-first-len(totals), append(labels, Usage{Name: a.name})
		}
		u := &labels[first+len(totals)+i]
		u.Bytes += a.bytes
		u.raise()
	}
	return scopes, labels
}

// UsageLines returns the largest numbers of lines that AppendUsage appends.
func (st *Stack) UsageLines() (scopes, labels int) {
	return cap(st.scopes.lines), cap(st.labels.lines) + cap(st.labels.totals.lines)
}

// bytesOf returns the bytes of the scope at a depth. A Builder counts with all free bytes that its
// values can take, which are above the cursor.
func (st *Stack) bytesOf(h *arena_c.Scopes, depth uint64) uint64 {
	if r := h.Record(depth); depth == h.Depth && r.Edge != 0 {
		return h.Limit - r.Mark - (h.Limit-r.Limit)%r.Edge
	}
	return h.Bytes(depth)
}

// holders writes the three largest users of the arena's bytes into top, the largest first, and
// returns their number: labels, open scopes without the bytes of their labels, and temporaries.
func (st *Stack) holders(top *[3]Usage) (n int) {
	h := st.h
	st.labels.settle()
	for _, a := range st.labels.lines {
		n += rank(top, Usage{Name: a.name, Bytes: a.bytes})
	}
	for i := uint64(1); i <= h.Depth; i++ {
		u := Usage{Name: st.nameOf(h, i), Bytes: st.bytesOf(h, i), Objects: h.Record(i).Count / arena_c.Object}
		for _, a := range st.labels.lines {
			if a.depth == i {
				u.Bytes -= a.bytes
			}
		}
		n += rank(top, u)
	}
	n += rank(top, Usage{Name: tempName, Bytes: st.row.End - h.Limit})
	return min(n, len(top))
}

// rank puts a user of bytes in its place, and returns 1 if it has any.
func rank(top *[3]Usage, u Usage) int {
	if u.Bytes == 0 || u.Bytes > arena_c.OffsetMax { // none, or a negative number
		return 0
	}
	i := len(top)
	for ; i > 0 && top[i-1].Bytes < u.Bytes; i-- {
		if i < len(top) {
			top[i] = top[i-1]
		}
	}
	if i < len(top) {
		top[i] = u
	}
	return 1
}

// Stats describes an arena. Used, Padding and Objects are the present numbers. Sizes are in bytes.
type Stats struct {
	Size, Used, Free         uint64
	Counted                  bool   // Objects and Padding are known: only checked builds count them
	Objects                  uint64 // allocations in the open scopes
	Padding                  uint64 // bytes of Used that alignment takes
	Peak, PeakSince          uint64 // highest use ever, and since ResetPeak
	Finalizers               uint64 // that have run since the arena was made
	Failed                   int    // finalizers that returned an error or panicked
	Owned                    int    // owned Go values now
	Leaks                    uint64 // blocks that were live when their arena ended
	Pools, PoolCap, PoolPeak uint64 // pools open now, their chunks, and the sum of their peaks

	MostOpen struct{ Scopes, Pools, Owned, Labels int } // at once, since the arena was made
	Caches   CacheCounts                                // since the arena was made
}

// Stats describes the arena now. Call it on the goroutine that may use the arena.
func (st *Stack) Stats() Stats {
	row := st.row
	s := Stats{Size: row.Size(), Used: row.Used(), Counted: arena_c.Checked, Finalizers: st.Finalizers(),
		Failed: st.failed, Leaks: st.leaks}
	s.PeakSince = row.Peak()
	s.Peak = max(st.peakEver, s.PeakSince)
	s.Free = s.Size - s.Used
	if s.Counted {
		s.Padding = s.Used
		for _, h := range st.ends() {
			for i := uint64(1); i <= h.Depth; i++ {
				s.Objects += h.Record(i).Count / arena_c.Object
				s.Padding -= h.Record(i).Count % arena_c.Object
			}
		}
	}
	s.Owned = st.owned.live
	st.countMost()
	s.MostOpen.Scopes, s.MostOpen.Pools = int(st.mostScopes), int(st.mostPools)
	s.MostOpen.Owned = int(st.owned.used) // a freed entry is taken before a new one
	s.MostOpen.Labels = st.labels.most
	s.Caches = st.caches.counts()
	for i := range st.mostPools { // the others were never taken
		if p := row.Pool(i); p.Gen != 0 {
			s.Pools++
			s.PoolCap += uint64(p.Count)
			s.PoolPeak += p.Peak()
		}
	}
	return s
}

// ResetPeak restarts PeakSince at the present use. If forget is true, it also restarts Peak and the
// peaks by name, for an empty arena whose size has changed.
func (st *Stack) ResetPeak(forget bool) {
	st.peakEver = max(st.peakEver, st.row.Peak())
	if forget || st.sink != nil {
		st.look()
	}
	st.row.ResetPeak()
	if !forget {
		return
	}
	st.peakEver = 0
	st.scopes.lines, st.labels.totals.lines = st.scopes.lines[:0], st.labels.totals.lines[:0]
	for i := range st.row.Pools {
		st.row.Pool(i).Stride = 0
	}
}

// countMost updates the largest numbers of open scopes and pools. Scopes nest, and a pool takes the
// first free header, so each number is the highest place ever taken. Cost: O(1), and a step for
// each place taken for the first time.
func (st *Stack) countMost() {
	for _, h := range st.ends() {
		n := st.mostScopes
		for n < h.Slots && h.Record(n+1).Mark != 0 { // 0: never opened
			n++
		}
		st.mostScopes = max(st.mostScopes, n)
	}
	for st.mostPools < st.row.Pools && st.row.Pool(st.mostPools).Stride != 0 { // 0: never opened
		st.mostPools++
	}
}

// Rest has the values that decide the Stats of an arena without open scopes. A scope in which
// anything else changes has a chain or a refusal, so its end is an unwinding.
type Rest struct{ peak, unwound uint64 }

// Rest returns the present Rest. pre: Stats has run, and no scope is open.
func (st *Stack) Rest() Rest { return Rest{st.row.Peak(), st.unwound} }

// Rests reports whether Stats would return the same as when r was read: no scope is open, and
// nothing has changed. Cost: O(1), a few ns.
func (st *Stack) Rests(r *Rest) bool {
	if st.h.Depth|st.row.Temp.Depth != 0 || st.row.Peak() != r.peak || st.unwound != r.unwound {
		return false
	}
	// no scope was opened in a place that was never taken
	if n, far := st.mostScopes, &st.row.Temp; n < st.h.Slots && st.h.Record(n+1).Mark != 0 ||
		n < far.Slots && far.Record(n+1).Mark != 0 {
		return false
	}
	return st.mostPools == st.row.Pools || st.row.Pool(st.mostPools).Stride == 0
}

// Finalizers returns the number of finalizers that have run in the arena.
func (st *Stack) Finalizers() uint64 {
	if st.caches == nil {
		return st.finalizers
	}
	return st.finalizers + st.caches.finalizers.Load()
}
