package scope

import "github.com/upfront-mem/upfront/arena_c"

// naming tells the core under which names it notes what is handed out from now on: those of the topmost scope, and of the
// account that gains. Only memdebug builds note them.
func (st *Stack) naming() {
	if !arena_c.Notes || st.row.Open == 0 {
		return
	}
	account := uint32(0)
	if st.booking.live() {
		account = arena_c.Intern(st.accounts[st.booking.account].usage.Name)
	}
	st.row.Names(arena_c.Intern(st.NameAt(st.Depth()-1)), account)
}
