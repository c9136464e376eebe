package scope

import (
	"cmp"
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
)

// full is the error of the topmost scope of an end, as things stand now.
func (st *Stack) full(h *arena_c.Scopes, asked uint64) *FullError {
	row := st.row
	size, mask := arena_c.AskedOf(asked)
	e := &FullError{Budget: st.Budget, Arena: st.Arena, Scope: st.nameOf(h, h.Depth), What: "bytes", asked: asked,
		Asked: size, Free: h.Limit - h.Cursor, Size: row.Size(), Key: st.Key,
		Top: st.holders()}
	if asked&arena_c.Purpose != 0 {
		arena_c.Tell()
		e.OnPurpose, e.Need = true, e.Size
		return e
	}
	if r := h.Top(); h.Back == 0 && r.Edge != 0 { // a Builder has all that is free, and is full of values
		e.Free = (h.Limit - r.Limit) % r.Edge
	}
	if h.Back != 0 {
		e.What, e.Key, e.Top, e.Size = "temporaries", "", nil, h.Limit-st.tempStart()
	}
	e.Need = roundUp(e.Size-e.Free, min(mask+1, arena_c.LineSize)) + e.Asked
	if mask >= arena_c.LineSize { // an arena begins at a line, which may lie anywhere the next time
		e.Need += mask + 1 - arena_c.LineSize
	}
	if h.Back == 0 && row.Temp.Depth > 0 { // temporaries lie at multiples of a line, counted from the far end
		e.Need += (e.Size - e.Need) % arena_c.LineSize
	}
	if e.Need >= arena_c.OffsetMax {
		e.Need = 0
	}
	st.keepFull(e)
	return e
}

func (st *Stack) tableFull(table string, size uint64, scope string) *FullError {
	full := &FullError{Budget: st.Budget, Arena: st.Arena, Scope: short(scope), What: table, Asked: 1, Size: size,
		Need: size + 1, Key: cmp.Or(st.TableKeys[table], "limits."+table)}
	st.keepFull(full)
	return full
}

// keepFull has it as the last. A full is made once, whoever is told of it.
func (st *Stack) keepFull(full *FullError) { st.lastFull, st.fulls = full, st.fulls+1 }

// scopesFull is the full of who would open one scope too many. A loop that never closes is the usual
// cause: then all that are open have one name.
func (st *Stack) scopesFull(name string) *FullError {
	full := st.tableFull("scopes", st.h.Slots, name)
	full.sameName = st.h.Depth > 1
	for depth := st.h.Base + 1; depth <= st.h.Depth; depth++ {
		full.sameName = full.sameName && st.nameOf(st.h, depth) == short(name)
	}
	return full
}

// refuseTable is the full of a table that refused on purpose.
func (st *Stack) refuseTable(table string, size uint64, scope string) *FullError {
	arena_c.Tell()
	full := st.tableFull(table, size, scope)
	full.OnPurpose, full.Need = true, size
	return full
}

// misuse says what is wrong with using s now.
func (s Scope) misuse(what string) error {
	h, st := s.h, stackOf(s.h)
	if st == nil {
		return &Misuse{what + " a scope whose budget is closed", true}
	}
	depth := h.Find(s.gen)
	if depth == 0 {
		var e emptied
		if h.Back == 0 {
			e = st.emptied.get()
		}
		return lost{st.made, st.Arena, e, nil}.misuse(what, s.gen)
	}
	text := fmt.Sprintf("%s scope %q of %s", what, st.nameOf(h, depth), st.Arena)
	switch {
	case h.Odd&arena_c.Closing != 0:
		text += " while its finalizers run"
	case h.Odd&arena_c.Building != 0 && depth == h.Depth:
		text += ", which has all that is free until its Done"
	case h.Back != 0 && depth < h.Depth:
		text += ", which isn't the newest of the temporaries"
	case h.Back != 0:
		text += ", which holds temporaries and doesn't nest"
	case depth < h.Depth:
		text += fmt.Sprintf(" while scope %q, opened in it, is open", st.nameOf(h, depth+1))
	case depth <= h.Base && s.open():
		text += ", which its owner closes"
	case st.row.Kind == arena_c.KindFrame:
		text += ", which is frozen since its frame ended"
	default:
		text += ", which is frozen since its load returned"
	}
	return &Misuse{Text: text}
}

// misuse is that of a scope that is closed.
func (l lost) misuse(what string, gen uint64) *Misuse {
	return &Misuse{fmt.Sprintf("%s a scope of %s that is closed%s", what, l.arena, l.ended(gen)), true}
}

// givenBack says why a scratch arena that was given back refuses.
func (st *Stack) givenBack(what string) error {
	if st.dropped {
		return &Misuse{fmt.Sprintf("%s %s, whose budget is closed", what, st.Arena), true}
	}
	return &Misuse{fmt.Sprintf("%s %s, which was given back", what, st.Arena), true}
}
