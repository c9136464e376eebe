package stack

// Misbook adds bytes to the ledger's line of a name, of scopes or of labels.
func (st *Stack) Misbook(label bool, name string, bytes uint64) {
	u := &st.scopes
	if label {
		u = &st.labels.totals
	}
	u.lines[st.lineOf(u, name)].Bytes += bytes
}

// Numbers returns the number of the newest stack.
func Numbers() uint64 { return registry.made }
