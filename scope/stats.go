package scope

// Stats are figures of the arena; Used, Padding and Objects are of this moment.
type Stats struct {
	Size, Used, Free         uint64
	Padding                  uint64 // of Used, bytes that nobody asked for: alignment, and the rests of temporaries' pieces
	Peak, PeakSince          uint64 // highest use ever, and since ResetPeak
	Objects                  uint64 // allocations in the scopes that are open, modulo 2^26 for each scope
	Finalizers               uint64 // that ran since the arena was made
	Failed                   int    // of them, those that returned an error or panicked
	Held                     int    // Go values held now
	Pools, PoolCap, PoolPeak uint64 // pools open now, their chunks, and the sum of their peaks
	MostOpen                 Open   // at once, since the arena was made
}

// Stats reads the figures. Call it where the arena may be used: they are live.
func (st *Stack) Stats() Stats {
	row := st.row
	s := Stats{Size: row.End - row.Start, Used: row.Used(), Finalizers: st.finalizers, Failed: st.failed}
	s.PeakSince = max(row.Peak, s.Used)
	s.Peak = max(st.peakEver, s.PeakSince)
	s.Free, s.Padding = s.Size-s.Used, row.Padding()
	for i := range row.Open {
		s.Objects += row.Slot(i).Objects()
	}
	if row.FarOf != 0 {
		s.Objects += row.Far().Objects()
	}
	s.Held = st.held.live
	s.MostOpen = st.mostOpen()
	for i := range uint64(s.MostOpen.Pools) { // the others were never taken
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

// ForgetPeak begins a new count of Peak too, and of those by name: the arena has another size now. pre: it is empty.
func (st *Stack) ForgetPeak() {
	st.peakEver = 0
	st.scopes.lines, st.subsystems.lines = st.scopes.lines[:0], st.subsystems.lines[:0]
	clear(st.notes) // of lines
	st.bear()
}
