package stack

import (
	"fmt"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/arena_c"
)

// MisuseOf returns the reason why a scope, of the generation gen at an end, can't be used now. Its
// text begins with an operation: "Open in".
func MisuseOf(h *arena_c.Scopes, gen uint64, what string) error {
	st := Of(h)
	if st == nil {
		return &Misuse{what + " a scope whose budget is closed", true}
	}
	depth := h.Find(gen)
	if depth == 0 {
		t := st.tombstone()
		if h.Back != 0 { // of temporaries the generations are others
			t.emptied = emptied{}
		}
		return t.misuse(what, gen)
	}
	text := fmt.Sprintf("%s scope %q of %s", what, st.nameOf(h, depth), st.Arena)
	switch {
	case h.Odd&arena_c.Closing != 0:
		text += " while its finalizers run"
	case h.Odd&arena_c.Building != 0 && depth == h.Depth:
		text += ", where a Builder holds all free bytes until Done"
	case h.Back != 0 && depth < h.Depth:
		text += ", which isn't the newest of the temporaries"
	case h.Back != 0:
		text += ", which holds temporaries: open or label a scope in the one that called Temp"
	case depth < h.Depth:
		text += fmt.Sprintf(" while scope %q, opened in it, is open; close %[1]q first", st.nameOf(h, depth+1))
	case depth <= h.Base && h.Gen == gen:
		text += ", which only its Load, Rewind or NextFrame closes"
	case st.row.Kind == arena_c.KindFrame:
		text += ", which is frozen since its frame ended"
	default:
		text += ", which is frozen since its load returned"
	}
	return &Misuse{Text: text}
}

func (t tombstone) misuse(what string, gen uint64) *Misuse {
	return &Misuse{fmt.Sprintf("%s a closed scope of %s%s", what, t.arena, t.ended(gen)), true}
}

// givenBack returns the misuse of a scratch arena whose lending has ended.
func (st *Stack) givenBack(what string) error {
	if st.dropped {
		return &Misuse{fmt.Sprintf("%s %s, whose budget is closed", what, st.Arena), true}
	}
	return &Misuse{fmt.Sprintf("%s %s, which was released", what, st.Arena), true}
}

// topMisuse returns the reason why the topmost scope can't be used now.
func (st *Stack) topMisuse(what string) error { return MisuseOf(st.h, st.h.Top().Gen, what) }

// leftOpen returns the misuse of a function that ends with scopes open from depth up, or nil.
func (st *Stack) leftOpen(depth int) error {
	if st.Depth() <= depth {
		return nil
	}
	names := make([]string, 0, 1)
	for i := depth; i < st.Depth(); i++ {
		names = append(names, fmt.Sprintf("%q", st.nameOf(st.h, uint64(i+1))))
	}
	if len(names) == 1 {
		return Misusef("scope %s of %s was left open; close it in the function that opens it", names[0], st.Arena)
	}
	return Misusef("%d scopes of %s were left open: %s; close each in the function that opens it", len(names), st.Arena,
		strings.Join(names, ", "))
}

// WasClosed returns the misuse of a closed scope, with a text that stays valid when the budget
// closes. If h is nil it is the misuse of a container that was freed.
func WasClosed(h *arena_c.Scopes, gen uint64) error {
	if h == nil {
		return &Misuse{"use of a container that was freed", true}
	}
	if st := Of(h); st == nil || st.made != numberOf(gen) {
		if t, ok := tombstoneOf(gen); ok {
			return t.misuse("use of", gen)
		}
	}
	return MisuseOf(h, gen, "use of")
}

// PoolMisuse returns the misuse of a pool with that generation. The text begins with an operation
// and the type of one value: "Put of a T".
func PoolMisuse(what string, one any, gen uint64, code arena_c.Code) *Misuse {
	ended := ""
	if code == arena_c.Stale {
		ended = endedPool(gen)
	}
	return &Misuse{fmt.Sprintf("%s a %T: %s%s", what, one, code.OfPool(), ended), code == arena_c.Stale}
}

// ended describes the operation that last emptied the arena. It returns "" if the near end's scope
// or pool with that generation was opened later. Any goroutine may call it.
func (t tombstone) ended(gen uint64) string {
	e := &t.emptied
	if gen > e.last || numberOf(gen) != t.made { // opened later, or by another stack
		return ""
	}
	return fmt.Sprintf("; %s was last emptied %v ago, by a %s", t.arena, time.Since(e.when).Round(time.Millisecond),
		e.by()) +
		e.site.Tell(e.by())
}

func endedPool(gen uint64) string {
	if all := registry.stacks.Load(); all != nil {
		for i := range *all {
			if st := (*all)[i].Load(); st != nil && st.made == numberOf(gen) {
				return st.tombstone().ended(gen)
			}
		}
	}
	t, _ := tombstoneOf(gen)
	return t.ended(gen)
}
