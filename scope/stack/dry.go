package stack

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
)

// earlierName names the scope of bytes whose own scope isn't known, because it was open before
// Record, or C opened it.
const earlierName = "earlier"

var errEvent = errors.New("no arena can do that")

// Play repeats an event in a dry arena: the core moves the dry arena's headers as it moved the
// headers of the program's arena. If the dry arena has no room for the event, Play returns the full
// error that the program would have got. If the event can't happen at this point, Play returns
// another error and changes nothing.
func (st *Stack) Play(e Event) error {
	h, far := st.h, &st.row.Temp
	switch {
	case e.Kind == EventOpen:
		return st.playOpen(e.Name)
	case e.Kind == EventClose && h.Depth > 0:
		st.playBack(h.Top().Mark)
		h.Pop()
	case e.Kind == EventGrow && h.Depth > 0:
		return st.playGrow(e.Size)
	case e.Kind == EventBack && h.Depth > 0 && e.Size <= h.Cursor-h.Top().Mark:
		st.playBack(h.Cursor - e.Size)
	case e.Kind == EventPeak && h.Depth == 0:
		err := st.playOpen(earlierName)
		if err == nil {
			err = st.Play(e)
			h.Pop()
		}
		return err
	case e.Kind == EventPeak:
		before := h.Cursor
		err := st.playGrow(e.Size - min(e.Size, st.row.Used()))
		h.BackTo(before)
		return err
	case e.Kind == EventTemp && h.Depth > 0:
		return st.playTemp(h, e.Size)
	case e.Kind == EventTempIn && far.Depth > 0:
		return st.playTemp(far, e.Size)
	case e.Kind == EventTempEnd && far.Depth > 0:
		st.playTempEnd()
	case e.Kind == EventScopes:
		return st.playTable("scopes", e.Size, h.Slots, &st.mostScopes)
	case e.Kind == EventPools:
		return st.playTable("pools", e.Size, st.row.Pools, &st.mostPools)
	case e.Kind == EventOwned:
		return st.playTable("owned", e.Size, uint64(st.Owned), &st.owned.used)
	case e.Kind == EventLabels:
		most := uint64(st.labels.most)
		err := st.playTable("labels", e.Size, uint64(st.Names), &most)
		st.labels.most = int(most)
		return err
	default:
		return fmt.Errorf("%w: event of kind %d with %d scopes and %d temporaries open",
			errEvent, e.Kind, h.Depth, far.Depth)
	}
	return nil
}

func (st *Stack) playOpen(name string) error {
	h := st.h
	if h.Depth == h.Slots {
		return st.scopesFull(name)
	}
	gen := h.Open()
	n := &st.notes[h.Depth]
	n.name, n.gen = name, gen
	return nil
}

// playGrow takes size bytes, which include alignment.
func (st *Stack) playGrow(size uint64) error {
	if st.h.Take(size) {
		return nil
	}
	return st.full(st.h, arena_c.Asked|min(size, arena_c.OffsetMax))
}

// playBack takes the topmost scope back to an offset, and ends the temporaries whose nodes were
// after it. The offset may be within a node.
func (st *Stack) playBack(to uint64) {
	for last := len(st.tempNodes) - 1; last >= 0 && st.tempNodes[last] > to; last-- {
		st.playTempEnd()
	}
	st.look()
	st.h.BackTo(to)
}

func (st *Stack) playTemp(of *arena_c.Scopes, size uint64) error {
	far := &st.row.Temp
	if far.Depth == far.Slots {
		return st.tableFull("scopes", far.Slots, tempName)
	}
	st.look()
	if of.TempTake(min(size, arena_c.OffsetMax-1)) == 0 {
		return st.tempFull(of)
	}
	node := st.h.Cursor
	if of == far {
		node = st.tempNodes[len(st.tempNodes)-1]
	}
	st.tempNodes = append(st.tempNodes, node)
	return nil
}

func (st *Stack) playTempEnd() {
	st.look()
	st.row.Temp.TempPop()
	st.tempNodes = st.tempNodes[:len(st.tempNodes)-1]
}

func (st *Stack) playTable(name string, n, places uint64, most *uint64) error {
	if n > places {
		full := st.tableFull(name, places, "")
		full.Need = n
		return full
	}
	*most = max(*most, n)
	return nil
}
