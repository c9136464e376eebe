package stack

import (
	"fmt"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
)

// A refusal is kept in two steps. The fast path only writes one word of the arena's header: Asked,
// if the topmost scope had no room, or Misused, if another scope was used. Code that needs the
// reason, a full error or a misuse, works it out later and keeps it in the scope's note.
//
//   - why returns the reason of a panic.
//   - peek returns the reason that no call has reported so far.
//   - take is peek for a caller that reports the reason; Close doesn't report it again.
//
// An example: TryNew of 24 bytes in scope "level" returns nil and writes Asked with 24. Err calls
// peek, which makes the FullError with the numbers of that moment; a second Err returns the same
// error. A Do or Load around calls take and returns the error, and the Close that follows reports
// nothing. Without a Do or Load, Close itself calls take.

func init() { arena_c.Explain = why }

// Depths are the numbers of open scopes at both ends of an arena when a function began. Scopes
// above are the function's own. All scopes are above the zero Depths.
type Depths [2]uint64

// Verdict returns the error with which a function ends that worked in the scopes opened since
// before. v is the value of recover, and err is the function's error. Without a panic the verdict
// is err. If the function panicked with a full error, the verdict is that error. If the function
// ignored a full error before another panic, the verdict is the full error, with the panic as its
// Cause. For any other panic, Verdict returns the panic's value as other, and the caller panics
// with other after the unwinding.
func (st *Stack) Verdict(v any, err error, before Depths) (other any, verdict error) {
	if v == nil {
		return nil, err
	}
	reason := handled(v)
	if full, ok := reason.(*FullError); ok {
		return nil, full
	}
	if _, refused := v.(arena_c.Refusal); refused {
		return reason, nil // a caller's bug
	}
	for end, h := range st.ends() {
		for depth := before[end] + 1; depth <= h.Depth; depth++ {
			if *askedOf(h, depth) == 0 {
				continue
			}
			if full, ok := st.askedError(h, depth).(*FullError); ok {
				told := *full
				told.Cause = fmt.Errorf("panic: %v", v)
				return nil, &told
			}
		}
	}
	return v, nil
}

// handled returns the value of a panic that the caller reports. For a Refusal it returns the
// reason, worked out before an unwinding changes it, and marks it as reported.
func handled(v any) any {
	r, ok := v.(arena_c.Refusal)
	if !ok {
		return v
	}
	err := why(r)
	if st := Of(r.Arena); st != nil {
		if depth, _ := asker(r.Arena, r.Gen); depth != 0 {
			_ = st.take(r.Arena, depth)
		}
	}
	return err
}

// why returns the reason of a Refusal, usually a full error.
func why(r arena_c.Refusal) error {
	h, gen, st := r.Arena, r.Gen, Of(r.Arena)
	// the request was refused before its budget closed
	if (st == nil || st.made != numberOf(gen)) && h.Misused != gen {
		if t, ok := tombstoneOf(gen); ok {
			if err := reasonOf(t.refusals, gen); err != nil {
				return err
			}
			return t.misuse("allocation in", gen)
		}
	}
	depth, wrong := asker(h, gen)
	switch {
	case wrong != nil:
		return wrong
	case st == nil:
		return MisuseOf(h, gen, "use of")
	case depth == 0 && h.Misused == gen:
		return MisuseOf(h, gen, "allocation in")
	}
	st.settle(h)
	if depth == h.Depth && h.Asked != 0 { // the full error came last
		return st.askedError(h, depth)
	}
	if err := reasonOf(st.refusals(), gen); err != nil {
		return err
	}
	return MisuseOf(h, gen, "allocation in")
}

// asker returns the depth of the open scope that a request was for, 0 if it is closed, and the
// request's own error, which is independent of the scope.
func asker(h *arena_c.Scopes, gen uint64) (depth uint64, wrong error) {
	depth, bad := h.BadAlign(gen)
	if bad {
		return depth, badAlign
	}
	if gen&Key != 0 {
		wrong = Undeclared
	}
	return h.Find(gen &^ Key), wrong
}

// settle moves the misuse in the header to the note of its scope, while the reason can still be
// worked out, and returns the note. It returns nil if the header holds no misuse, or the scope is
// closed: the request has already ended in a panic or nil.
func (st *Stack) settle(h *arena_c.Scopes) *note {
	gen := h.Misused
	if gen == 0 {
		return nil
	}
	h.Misused = 0
	depth, err := asker(h, gen)
	if depth == 0 {
		return nil
	}
	if err == nil {
		err = MisuseOf(h, gen, "allocation in")
	}
	n := st.noteOf(h, depth)
	if n.refused = (refusal{gen, err}); n.owed == nil {
		n.owed = err
	}
	h.Odd |= oddNoted
	// the misuse replaces an earlier full error, and later ones follow it
	if h.Odd&arena_c.Closing == 0 {
		*askedOf(h, depth) = 0
	}
	return n
}

// askedOf returns the word for a request that found the scope at a depth full: the header's own, if
// it is the topmost.
func askedOf(h *arena_c.Scopes, depth uint64) *uint64 {
	if depth == h.Depth {
		return &h.Asked
	}
	return &h.Record(depth).Asked
}

// peek returns the unreported refusal of the scope at a depth: its first misuse, or else its last
// full error, or nil. A full error has the numbers of the moment when it was first returned.
func (st *Stack) peek(h *arena_c.Scopes, depth uint64) error {
	st.settle(h)
	if n := st.noteOf(h, depth); n.owed != nil {
		return n.owed
	}
	if *askedOf(h, depth) == 0 {
		return nil
	}
	return st.askedError(h, depth)
}

// askedError returns the error of the request in Asked of the scope at a depth: a full error, or a
// bad align. pre: Asked isn't 0.
func (st *Stack) askedError(h *arena_c.Scopes, depth uint64) error {
	n, gen, asked := st.noteOf(h, depth), h.Record(depth).Gen, *askedOf(h, depth)
	if full, ok := n.refused.err.(*FullError); ok && n.refused.gen == gen && full.asked == asked {
		return full
	}
	n.refused = refusal{gen, badAlign} // a request that fits was refused for its align
	if builds := h.Back == 0 && h.Top().Edge != 0; builds || asked&arena_c.Purpose != 0 ||
		asked%(1<<arena_c.AskedAt)+arena_c.AlignMax > h.Limit-h.Cursor {
		full := st.full(h, asked)
		full.Scope = st.nameOf(h, depth)
		n.refused.err = full
	}
	return n.refused.err
}

// take is peek for a caller that reports the refusal; the scope forgets it.
func (st *Stack) take(h *arena_c.Scopes, depth uint64) error {
	err := st.peek(h, depth)
	st.noteOf(h, depth).owed = nil
	*askedOf(h, depth) = 0
	return err
}

// peekFrom works out the refusals of an end's scopes, from a depth up, before the scopes close: a
// panic on its way may need the refusals afterwards.
func (st *Stack) peekFrom(h *arena_c.Scopes, depth uint64) {
	for i := max(depth, 1); i <= h.Depth; i++ {
		_ = st.peek(h, i)
	}
}

func (st *Stack) depths() Depths { return Depths{st.h.Depth, st.row.Temp.Depth} }

// takeSince takes and returns the refusal of the lowest scope opened since o that has a refusal;
// temporaries come last.
func (st *Stack) takeSince(o Depths) error {
	for end, h := range st.ends() {
		for depth := o[end] + 1; depth <= h.Depth; depth++ {
			if err := st.take(h, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// full returns the full error of a request in the topmost scope of an end, with the present
// numbers.
func (st *Stack) full(h *arena_c.Scopes, asked uint64) *FullError {
	row, mask := st.row, asked>>arena_c.AskedAt%arena_c.AlignMax // NodeSize-1 at least
	var top [3]Usage
	holders := slices.Clone(top[:st.holders(&top)])
	e := &FullError{Budget: st.Budget, Arena: st.Arena, Scope: st.nameOf(h, h.Depth), What: "bytes", asked: asked,
		Asked: asked % (1 << arena_c.AskedAt), Free: h.Limit - h.Cursor, Size: row.Size(), Key: st.Key, Top: holders}
	if asked&arena_c.Purpose != 0 {
		return e.onPurpose()
	}
	// a full Builder's values take all free bytes except a remainder
	if r := h.Top(); h.Back == 0 && r.Edge != 0 {
		e.Free = (h.Limit - r.Limit) % r.Edge
	}
	if h.Back != 0 {
		e.What, e.Key, e.Top, e.Size = "temporaries", "", nil, h.Limit-st.tempStart()
	}
	e.Need = roundUp(e.Size-e.Free, min(mask+1, arena_c.LineSize)) + e.Asked
	// the arena begins at a cache line, not always at the same multiple of the align
	if mask >= arena_c.LineSize {
		e.Need += mask + 1 - arena_c.LineSize
	}
	// temporaries are at multiples of a cache line, counted from the far end
	if h.Back == 0 && row.Temp.Depth > 0 {
		e.Need += (e.Size - e.Need) % arena_c.LineSize
	}
	if e.Need >= arena_c.OffsetMax {
		e.Need = 0
	}
	return st.counted(e)
}
