package save

import "fmt"

// owned is a Go value that a scope keeps, and whose place in the chain lies in a state. Until the
// state is over it can only end: by CloseNow or Cancel, which no copy of bytes undoes.
type owned struct {
	place uint64
	what  string
}

func (st *State) findOwned() {
	stack := st.saved.Stack()
	st.owned = nil // of a ring before
	for node := range stack.NodesSince(st.mark) {
		if what := stack.OwnedAt(node.Place); what != "" {
			st.owned = append(st.owned, owned{node.Place, what})
		}
	}
	st.alive = len(st.owned)
}

// living is how many of st.owned live. They are the first ones; what ended moves behind them, and
// then stays where it is. So those that lived when there were n are the first n for ever.
func (st *State) living() int {
	for i := 0; i < st.alive; {
		if st.saved.Stack().OwnedLives(st.owned[i].place) {
			i++
			continue
		}
		st.alive--
		st.owned[i], st.owned[st.alive] = st.owned[st.alive], st.owned[i]
	}
	return st.alive
}

// ownedEnded refuses a snapshot in which so many lived, if one of them ended since.
func (p *part) ownedEnded(from *slot, lived int) error {
	if living := p.living(); living < lived {
		return fmt.Errorf("save: Restore of snapshot %d of region %s: %s was closed, run or "+
			"cancelled since, which can't be undone; make it before Begin, or after NewRing",
			from.number, p.saved.Name(), p.owned[living].what)
	}
	return nil
}
