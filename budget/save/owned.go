package save

import "fmt"

// owned is a Go value that a scope owns, with its node in a state. Such a value can only end, by
// CloseNow or Cancel, and a restore can't undo that.
type owned struct {
	place uint64
	what  string
}

func (st *State) findOwned() {
	stack := st.saved.Stack
	st.owned = nil // of an earlier ring
	for node := range stack.NodesSince(st.mark) {
		if what := stack.OwnedAt(node.Place); what != "" {
			st.owned = append(st.owned, owned{node.Place, what})
		}
	}
	st.alive = len(st.owned)
}

// living returns the number of st.owned that live. Living values come first: a value that ended
// moves after them, and stays there. So the n values that live at a snapshot are the first n from
// then on.
func (st *State) living() int {
	for i := 0; i < st.alive; {
		if st.saved.Stack.OwnedLives(st.owned[i].place) {
			i++
			continue
		}
		st.alive--
		st.owned[i], st.owned[st.alive] = st.owned[st.alive], st.owned[i]
	}
	return st.alive
}

func (p *part) ownedEnded(from *slot, lived int) error {
	if living := p.living(); living < lived {
		return fmt.Errorf("save: Restore of snapshot %d of region %s: %s was closed, run or "+
			"cancelled since, which can't be undone; make it before Begin, or after NewRing",
			from.number, p.saved.Name, p.owned[living].what)
	}
	return nil
}
