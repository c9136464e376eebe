package scope

import "github.com/upfront-mem/upfront/arena_c"

// Stats are figures of the arena; Used, Padding and Objects are of this moment.
type Stats struct {
	Size, Used, Free         uint64
	Padding                  uint64 // of Used, bytes that nobody asked for: alignment, in checked builds
	Peak, PeakSince          uint64 // highest use ever, and since ResetPeak
	Objects                  uint64 // allocations in the scopes that are open: in checked builds
	Finalizers               uint64 // that ran since the arena was made
	Failed                   int    // of them, those that returned an error or panicked
	Owned                    int    // Go values held now
	Pools, PoolCap, PoolPeak uint64 // pools open now, their chunks, and the sum of their peaks
	MostOpen                 Open   // at once, since the arena was made
}

// Open counts what is open in an arena.
type Open struct{ Scopes, Pools, Owned, Labels int }

// Stats reads the figures. Call it where the arena may be used: they are live.
func (st *Stack) Stats() Stats {
	row := st.row
	s := Stats{Size: row.Size(), Used: row.Used(), Finalizers: st.finalizers, Failed: st.failed}
	s.PeakSince = row.Peak()
	s.Peak = max(st.peakEver, s.PeakSince)
	s.Free = s.Size - s.Used
	if arena_c.Checked {
		s.Padding = s.Used
		for _, h := range st.ends() {
			for i := uint64(1); i <= h.Depth; i++ {
				s.Objects += h.Record(i).Count / arena_c.Object
				s.Padding -= h.Record(i).Count % arena_c.Object
			}
		}
	}
	s.Owned = st.owned.live
	s.MostOpen = st.mostOpen()
	for i := range uint64(s.MostOpen.Pools) { // the others were never taken
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
	st.row.ResetPeak()
	if !forget {
		return
	}
	st.peakEver = 0
	st.names.lines, st.subsystems.lines = st.names.lines[:0], st.subsystems.lines[:0]
	clear(st.notes) // of lines
	for i := range st.row.Pools {
		st.row.Pool(i).Stride = 0
	}
}

// mostOpen is the most of each that were ever open at once. Scopes nest, and a pool takes the first
// header that is free, so the deepest that was ever taken tells. Cost: O(1), and once for each that is
// new.
func (st *Stack) mostOpen() Open {
	row, most := st.row, &st.most
	for _, h := range st.ends() {
		n := uint64(most.Scopes)
		for n < h.Slots && h.Record(n+1).Mark != 0 { // 0: never opened
			n++
		}
		most.Scopes = max(most.Scopes, int(n))
	}
	n := uint64(most.Pools)
	for n < row.Pools && row.Pool(n).Stride != 0 { // 0: never opened
		n++
	}
	most.Pools = int(n)
	most.Owned = int(st.owned.used) // a place that was given back is taken before a new one
	most.Labels = st.labels.most
	return *most
}
