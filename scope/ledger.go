package scope

import (
	"cmp"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
)

// A ledger is what has been seen of an arena: its figures, and what scopes and labels hold and held, by name. The arena's headers
// say what is so now. look compares them with what was so at the last look, books the difference, and tells the
// sink of each step, if there is one. It runs before something goes that can't be asked afterwards: before a scope closes, before
// nodes run, and when the figures are read; with a sink before a scope opens, too. Between two looks an arena only grows, so
// no peak is missed.
//
// A report is a copy of ledgers, a timeline is their peaks, sampled, and a recording is what the sink was told.
type ledger struct {
	finalizers uint64     // that ran
	failed     int        // of them, those that returned an error or panicked
	unwound    uint64     // how often nodes ran
	leaks      uint64     // blocks that lived when their arena ended
	lastFull   *FullError // the last that was told
	fulls      int        // how many were

	peakEver   uint64      // highest use before the last ResetPeak
	mostScopes uint64      // that were ever open at once, as of the last look
	mostPools  uint64      // likewise
	scopes     usages      // what scopes hold by name; nil lines where they aren't counted
	seen       []seenScope // the scopes that were open at the last look, the lowest first: where they're counted or told
	end        uint64      // of the topmost of them, from the arena's first byte
	temp       uint64      // bytes that temporaries held at the last look, where scopes are counted
	sink       *sink       // nil: nobody is told
}

// seenScope is a scope that was open at the last look. It held what lies between its mark and that of the next one, or the end.
type seenScope struct {
	gen     uint64
	mark    uint64 // from the arena's first byte
	objects uint32
	line    uint32 // of its name
}

// look books what changed since the last look.
func (st *Stack) look() { st.lookAt(arena_c.Site{}) }

// lookAt is look where the newest thing was made.
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
}

// sees books a scope that wasn't open at the last look.
func (st *Stack) sees(depth uint64) {
	n, name := len(st.seen), st.nameOf(st.h, depth)
	line := st.seen[:n+1][n].line // of the last scope in the same place: it had the same name, most often
	if st.scopes.lines != nil && !st.scopes.has(line, name) {
		line = st.lineOf(&st.scopes, name)
	}
	st.seen = append(st.seen, seenScope{gen: st.h.Record(depth).Gen, mark: st.end, line: line})
	st.sink.opened(name)
}

// moved books where the topmost scope that was seen ends now.
func (st *Stack) moved(to uint64, site arena_c.Site) {
	if n := len(st.seen); n != 0 {
		s, objects := &st.seen[n-1], st.h.Record(uint64(n)).Count/arena_c.Object
		st.scopes.book(s.line, held{st.end - s.mark, uint64(s.objects)}, held{to - s.mark, objects})
		s.objects, st.end = uint32(objects), to
	}
	st.sink.moved(to, site)
}

// CountScopes begins to count what scopes hold, by name: then Close takes its long way. pre: no scope is open. Counting that
// began goes on.
func (st *Stack) CountScopes() {
	if st.scopes.lines == nil {
		st.scopes.lines = make([]Usage, 0, st.Names+1)
		st.see(oddNames)
	}
}

// see makes room for what look sees.
func (st *Stack) see(odd uint64) {
	if st.seen == nil {
		st.seen = make([]seenScope, 0, st.h.Slots)
	}
	st.h.Odd |= odd
}

// lineOf is the line of a name, a new one if need be.
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

// Usage is what scopes of one name, or a label, hold under that name.
type Usage struct {
	Name    string `json:"name"`
	Bytes   uint64 `json:"bytes"`             // held now
	Objects uint64 `json:"objects,omitempty"` // allocations that are live; where they are Counted
	Peak    uint64 `json:"peak"`              // the most Bytes that the name had at once since Open; 0 where it isn't counted

	PeakObjects uint64 `json:"peak_objects,omitempty"` // likewise of Objects

	// Allocated are all Bytes that the name came to hold since Open, also those that are gone; 0 where it isn't counted.
	Allocated        uint64 `json:"allocated,omitempty"`
	AllocatedObjects uint64 `json:"allocated_objects,omitempty"` // likewise of Objects
}

// usages is what each name holds, held most, and came to hold: a table of planned size. Names beyond it share a line.
type usages struct{ lines []Usage } // cap: the places, and one for others

// The lines of what has no name of its own.
const (
	othersName = "others" // names that came when all places were taken
	tempName   = "temp"   // temporaries
	cName      = "C"      // scopes that C opened
)

// held is what a scope or a label holds.
type held struct{ bytes, objects uint64 }

func (u *usages) has(line uint32, name string) bool {
	return int(line) < len(u.lines) && u.lines[line].Name == name
}

// book writes down that something of a line's name held so much, and holds so much now.
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

// AppendUsage adds what scopes hold and held, by name, in the order in which the names first came; nothing where they
// aren't counted. And what labels hold and held, likewise; then those that are live and have no line of their own. What a failed
// constructor took back counts for the peak. UsageLines is the room that they need.
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

// UsageLines is how many lines AppendUsage adds at most.
func (st *Stack) UsageLines() (scopes, labels int) {
	return cap(st.scopes.lines), cap(st.labels.lines) + cap(st.labels.totals.lines)
}

// bytesOf is what the scope at a depth holds. A Builder's values lie behind the cursor: it is asked
// when they leave no room.
func (st *Stack) bytesOf(h *arena_c.Scopes, depth uint64) uint64 {
	if r := h.Record(depth); depth == h.Depth && r.Edge != 0 {
		return h.Limit - r.Mark - (h.Limit-r.Limit)%r.Edge
	}
	return h.Bytes(depth)
}

// holders are the three that hold most of the arena: labels, what the open scopes hold beside them,
// and temporaries.
func (st *Stack) holders() (top []Usage) {
	h := st.h
	st.labels.settle()
	for _, a := range st.labels.lines {
		top = append(top, Usage{Name: a.name, Bytes: a.bytes})
	}
	for i := uint64(1); i <= h.Depth; i++ {
		u := Usage{Name: st.nameOf(h, i), Bytes: st.bytesOf(h, i), Objects: h.Record(i).Count / arena_c.Object}
		for _, a := range st.labels.lines {
			if a.depth == i {
				u.Bytes -= a.bytes
			}
		}
		top = append(top, u)
	}
	top = append(top, Usage{Name: tempName, Bytes: st.row.End - h.Limit})
	top = slices.DeleteFunc(top, func(u Usage) bool { return u.Bytes-1 >= arena_c.OffsetMax })
	slices.SortStableFunc(top, func(a, b Usage) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return top[:min(3, len(top))]
}

// Stats are figures of the arena; Used, Padding and Objects are of this moment.
type Stats struct {
	Size, Used, Free         uint64
	Counted                  bool   // Objects and Padding are known: checked builds count, the others don't
	Objects                  uint64 // allocations in the scopes that are open
	Padding                  uint64 // of Used, bytes that nobody asked for: alignment
	Peak, PeakSince          uint64 // highest use ever, and since ResetPeak
	Finalizers               uint64 // that ran since the arena was made
	Failed                   int    // of them, those that returned an error or panicked
	Owned                    int    // Go values held now
	Leaks                    uint64 // blocks that lived when the arena that gave them ended
	Pools, PoolCap, PoolPeak uint64 // pools open now, their chunks, and the sum of their peaks

	MostOpen struct{ Scopes, Pools, Owned, Labels int } // at once, since the arena was made
}

// Stats reads the figures. Call it where the arena may be used: they are live.
func (st *Stack) Stats() Stats {
	row := st.row
	s := Stats{Size: row.Size(), Used: row.Used(), Counted: arena_c.Checked, Finalizers: st.finalizers, Failed: st.failed, Leaks: st.leaks}
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
	s.MostOpen.Owned = int(st.owned.used) // a place that was given back is taken before a new one
	s.MostOpen.Labels = st.labels.most
	for i := range st.mostPools { // the others were never taken
		if p := row.Pool(i); p.Gen != 0 {
			s.Pools++
			s.PoolCap += uint64(p.Count)
			s.PoolPeak += p.Peak()
		}
	}
	return s
}

// ResetPeak begins a new count of PeakSince; forget, for an empty arena that has another size now, of Peak too, and of
// those by name.
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

// countMost finds out how many scopes and pools were ever open at once. Scopes nest, and a pool takes the first
// header that is free, so the deepest that was ever taken tells. Cost: O(1), and once for each that is
// new.
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

// Rest is what the figures of an arena depend on in which no scope is open.
type Rest struct {
	peak, unwound, finalizers, leaks, scopes, pools, owned uint64
	fulls                                                  int
}

// Rest reads it. pre: the figures were read by Stats, and no scope is open.
func (st *Stack) Rest() Rest {
	return Rest{st.row.Peak(), st.unwound, st.finalizers, st.leaks, st.mostScopes, st.mostPools, st.owned.used, st.fulls}
}

// Rests reports whether Stats would read the figures that it read before r: no scope is open, whatever was since.
// Cost: O(1), a few ns.
func (st *Stack) Rests(r *Rest) bool {
	if st.h.Depth|st.row.Temp.Depth != 0 || st.Rest() != *r {
		return false
	}
	n := st.mostScopes
	for _, h := range st.ends() {
		if n < h.Slots && h.Record(n+1).Mark != 0 {
			return false
		}
	}
	return st.mostPools == st.row.Pools || st.row.Pool(st.mostPools).Stride == 0
}
