package scope

// Stats are figures of the arena; Used and Objects are of this moment.
type Stats struct {
	Size, Used, Free         uint64
	Peak, PeakSince          uint64 // highest use ever, and since ResetPeak
	Objects                  uint64 // allocations in the scopes that are open
	Finalizers               uint64 // that ran since the arena was made
	Failed                   int    // of them, those that returned an error or panicked
	Held                     int    // Go values held now
	Pools, PoolCap, PoolPeak uint64 // pools open now, their chunks, and the sum of their peaks
}

// Stats reads the figures. Call it where the arena may be used: they are live.
func (st *Stack) Stats() Stats {
	row := st.row
	s := Stats{Size: row.End - row.Start, Used: row.Used(), Finalizers: st.finalizers, Failed: st.failed}
	s.PeakSince = max(row.Peak, s.Used)
	s.Peak = max(st.peakEver, s.PeakSince)
	s.Free = s.Size - s.Used
	for i := range row.Open {
		s.Objects += row.Slot(i).Objects()
	}
	if row.FarOf != 0 {
		s.Objects += row.Far().Objects()
	}
	s.Held = st.held.live
	for i := range row.Pools {
		if p := row.Pool(i); p.Open != 0 {
			s.Pools++
			s.PoolCap += p.Count()
			s.PoolPeak += p.Peak()
		}
	}
	return s
}

// ResetPeak begins a new count of PeakSince.
func (st *Stack) ResetPeak() {
	st.peakEver = max(st.peakEver, st.row.Peak)
	st.row.Peak = 0
}

// ForgetPeak begins a new count of Peak too: the arena has another size now.
func (st *Stack) ForgetPeak() { st.peakEver = 0 }
