package scope

import (
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
)

// A refusal is kept in two steps. The fast path that refuses writes a word of the arena's header:
// Asked, of the topmost scope, or Misused, of any other. Who asks for the reason works it out, and
// the note of the scope keeps it: a full or a misuse, one value. peek returns it; take returns it
// to a caller that reports it, and so Close needn't.

func init() { arena_c.Explain = why }

// met is what a scope was refused last. It stays after it was reported, and after the scope closed,
// until another scope in the same place is refused something: a panic that nobody handles is
// printed when every deferred Close has run.
type met struct {
	gen uint64 // that the arena was asked with: of the scope, but for a bad align and a Maker that was never declared
	err error  // a full, or a misuse
}

// metBy is the error of the list that came of asking with that generation, or nil.
func metBy(list []met, gen uint64) error {
	for _, m := range list {
		if m.gen == gen {
			return m.err
		}
	}
	return nil
}

// met lists what the scopes in each place were refused last.
func (st *Stack) met() (list []met) {
	for i := range st.notes {
		if m := st.notes[i].met; m.err != nil {
			list = append(list, m)
		}
	}
	return list
}

// Verdict sorts what ended a function that worked in the open scopes: v is what recover gave, err
// what it returned. A full is an error. A panic after a full that nobody handled is that full, with
// the panic as its cause. Any other panic comes back, to go on after the unwinding.
func (st *Stack) Verdict(v any, err error) (other any, verdict error) {
	return st.verdict(v, err, opened{})
}

// verdict is Verdict of a function that worked in the scopes opened since.
func (st *Stack) verdict(v any, err error, before opened) (other any, verdict error) {
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
			if full, ok := st.metFull(h, depth).(*FullError); ok {
				told := *full
				told.Cause = fmt.Errorf("panic: %v", v)
				return nil, &told
			}
		}
	}
	return v, nil
}

// handled is the value of a panic that the caller reports. Of a Refusal it is the reason, worked
// out before an unwinding changes what it would say; the scope that refused needn't report it
// again.
func handled(v any) any {
	r, ok := v.(arena_c.Refusal)
	if !ok {
		return v
	}
	err := why(r)
	if st := stackOf(r.Arena); st != nil {
		if depth, _ := asker(r.Arena, r.Gen); depth != 0 {
			_ = st.take(r.Arena, depth)
		}
	}
	return err
}

// why is the reason of a Refusal, most often a full.
func why(r arena_c.Refusal) error {
	h, gen, st := r.Arena, r.Gen, stackOf(r.Arena)
	if (st == nil || st.made != numberOf(gen)) && h.Misused != gen { // refused before its budget closed
		if l, ok := lostOf(gen); ok {
			if err := metBy(l.met, gen); err != nil {
				return err
			}
			return l.misuse("allocation in", gen)
		}
	}
	s := Scope{h, gen}
	depth, wrong := asker(h, gen)
	switch {
	case wrong != nil:
		return wrong
	case st == nil:
		return s.misuse("use of")
	case depth == 0 && h.Misused == gen:
		return s.misuse("allocation in")
	}
	st.settle(h)
	if depth == h.Depth && h.Asked != 0 { // it came last
		return st.metFull(h, depth)
	}
	if err := metBy(st.met(), gen); err != nil {
		return err
	}
	return s.misuse("allocation in")
}

// asker is the depth of the open scope that was asked with a generation, 0: it is closed; and what
// was wrong with the request, whoever allocates.
func asker(h *arena_c.Scopes, gen uint64) (depth uint64, wrong error) {
	depth, bad := h.BadAlign(gen)
	if bad {
		return depth, badAlign
	}
	if gen&key != 0 {
		wrong = undeclared
	}
	return h.Find(gen &^ key), wrong
}

// settle notes the misuse that the header knows of, while it can be said what it was, and returns
// the note of the scope that was asked. nil: there is none, or the scope is closed, and a panic or
// nil told it.
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
		err = Scope{h, gen}.misuse("allocation in")
	}
	n := st.noteOf(h, depth)
	if n.met = (met{gen, err}); n.owed == nil {
		n.owed = err
	}
	h.Odd |= oddNoted
	if h.Odd&arena_c.Closing == 0 { // the misuse is what is told; what it is refused from now on comes after it
		*askedOf(h, depth) = 0
	}
	return n
}

// askedOf is what the scope at a depth was refused: the header's own word, if it is the topmost.
func askedOf(h *arena_c.Scopes, depth uint64) *uint64 {
	if depth == h.Depth {
		return &h.Asked
	}
	return &h.Record(depth).Asked
}

// peek returns the refusal of the scope at a depth that no caller has reported: the first misuse, a
// full, or nil. A full has the figures of the moment at which peek first returned it.
func (st *Stack) peek(h *arena_c.Scopes, depth uint64) error {
	st.settle(h)
	if n := st.noteOf(h, depth); n.owed != nil {
		return n.owed
	}
	if *askedOf(h, depth) == 0 {
		return nil
	}
	return st.metFull(h, depth)
}

// metFull is the full that the scope at a depth met. pre: its Asked has it.
func (st *Stack) metFull(h *arena_c.Scopes, depth uint64) error {
	n, gen, asked := st.noteOf(h, depth), h.Record(depth).Gen, *askedOf(h, depth)
	if full, ok := n.met.err.(*FullError); ok && n.met.gen == gen && full.asked == asked {
		return full
	}
	n.met = met{gen, badAlign} // no other could ask for more than there is
	if builds := h.Back == 0 && h.Top().Edge != 0; builds || asked&arena_c.Purpose != 0 ||
		asked%(1<<arena_c.AskedAt)+arena_c.AlignMax > h.Limit-h.Cursor {
		full := st.full(h, asked)
		full.Scope = st.nameOf(h, depth)
		n.met.err = full
	}
	return n.met.err
}

// take is peek for a caller that reports it: it is forgotten then.
func (st *Stack) take(h *arena_c.Scopes, depth uint64) error {
	err := st.peek(h, depth)
	st.noteOf(h, depth).owed = nil
	*askedOf(h, depth) = 0
	return err
}

// peekFrom works out what the scopes of an end were refused, from a depth up, while they can still
// say why: a panic on its way may be asked for it when they are closed.
func (st *Stack) peekFrom(h *arena_c.Scopes, depth uint64) {
	for i := max(depth, 1); i <= h.Depth; i++ {
		_ = st.peek(h, i)
	}
}

// opened is how many scopes were open at both ends when something began: what is open above is its
// own.
type opened [2]uint64

func (st *Stack) opened() opened { return opened{st.h.Depth, st.row.Temp.Depth} }

// takeSince takes what one of the scopes was refused that were opened since, the lowest first,
// those of temporaries behind.
func (st *Stack) takeSince(o opened) error {
	for end, h := range st.ends() {
		for depth := o[end] + 1; depth <= h.Depth; depth++ {
			if err := st.take(h, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// full is the error of the topmost scope of an end, as things stand now.
func (st *Stack) full(h *arena_c.Scopes, asked uint64) *FullError {
	row, mask := st.row, asked>>arena_c.AskedAt%arena_c.AlignMax // NodeSize-1 at least
	e := &FullError{Budget: st.Budget, Arena: st.Arena, Scope: st.nameOf(h, h.Depth), What: "bytes", asked: asked,
		Asked: asked % (1 << arena_c.AskedAt), Free: h.Limit - h.Cursor, Size: row.Size(), Key: st.Key, Top: st.holders()}
	if asked&arena_c.Purpose != 0 {
		return e.onPurpose()
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
	return st.counted(e)
}
