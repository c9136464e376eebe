package scope

// Open counts what is open in an arena.
type Open struct{ Scopes, Pools, Held, Accounts int }

// bear keeps the generation of each slot and each pool header of the row while nobody has opened it: it moves on when
// that closes, whether Go or C opened it, and at no cost to who does.
func (st *Stack) bear() {
	row := st.row
	if st.born == nil {
		st.born = make([]uint64, row.Slots+row.Pools)
	}
	for i := range row.Slots {
		st.born[i] = row.Slot(i).Tag()
	}
	for i := range row.Pools {
		st.born[row.Slots+i] = row.Pool(i).Tag()
	}
}

// mostOpen is the most of each that were ever open at once. Scopes nest, and a pool takes the first header that is free,
// so the deepest that was ever taken tells. Cost: O(1), and once for each that is new.
func (st *Stack) mostOpen() Open {
	row, most := st.row, &st.most
	n := uint64(most.Scopes)
	for n < row.Slots && (n < row.Open || row.Slot(n).Tag() != st.born[n]) {
		n++
	}
	most.Scopes = int(n)
	n = uint64(most.Pools)
	for n < row.Pools && (row.Pool(n).Open != 0 || row.Pool(n).Tag() != st.born[row.Slots+n]) {
		n++
	}
	most.Pools = int(n)
	most.Held = int(st.held.used) // a place that was given back is taken before a new one
	return *most
}

// Opened moves on whenever the lowest scope closes: an arena that is empty is as it was while this stays the same.
func (st *Stack) Opened() uint64 { return st.row.Slot(0).Tag() }
