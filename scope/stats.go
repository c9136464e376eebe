package scope

import "github.com/upfront-mem/upfront/arena_c"

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
	st.recorder.look()
	st.row.ResetPeak()
	if !forget {
		return
	}
	st.peakEver = 0
	st.names.lines, st.labels.ever.lines = st.names.lines[:0], st.labels.ever.lines[:0]
	clear(st.notes) // of lines
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
