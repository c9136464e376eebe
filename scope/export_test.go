package scope

// StackOf is the arena that a scope lies in.
func StackOf(s Scope) *Stack { return stackOf(s.h) }

// Misbook has the ledger say that scopes, or labels, of a name that is there hold so many bytes more.
func (st *Stack) Misbook(label bool, name string, bytes uint64) {
	u := &st.scopes
	if label {
		u = &st.labels.totals
	}
	u.lines[st.lineOf(u, name)].Bytes += bytes
}
