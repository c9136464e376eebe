package scope

import (
	"errors"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// ErrFull is what errors.Is finds in every full: an arena, or a table of planned capacity, had no room. It is an
// expected answer.
var ErrFull = errors.New("upfront: full")

// ErrClosed is what errors.Is finds when something was used that is closed.
var ErrClosed = errors.New("upfront: closed")

// FullError says what was full and which key of the plan to raise.
type FullError struct {
	Budget string  // name of the plan
	Arena  string  // "region level"
	Scope  string  // name of the scope that asked; of a full table of scopes, the name of the one that would have opened
	What   string  // "bytes"; the table that is full: "scopes", "pools", "held", "accounts", "slots"; or "temporaries" (see [Scope.Temp])
	Asked  uint64  // bytes, without alignment; or 1
	Free   uint64  // what was left
	Size   uint64  // of the arena or the table
	Need   uint64  // a size with which it has room: the least, or what alignment may ask for beyond
	Key    string  // of the plan: "regions[2].size"
	Top    []Usage // who holds most of the arena, largest first: three at most
	Cause  error   // what went wrong after the full, if it wasn't handled

	asked     uint64 // as the header had it
	sameName  bool   // of scopes: all that are open have one name
	OnPurpose bool   // there was room, and budgettest.FailEach had it refused: only in a checked build
}

// Error says in one line what was full, who holds most of it, and which key of the plan to raise to what.
func (e *FullError) Error() string {
	var b strings.Builder
	state := "is full"
	if e.OnPurpose {
		state = "refused on purpose (budgettest.FailEach)"
	}
	fmt.Fprintf(&b, "budget %q: %s %s: scope %q asked for ", e.Budget, e.Arena, state, e.Scope)
	switch e.What {
	case "bytes":
		fmt.Fprintf(&b, "%d bytes, %d of %d are free", e.Asked, e.Free, e.Size)
	case "temporaries":
		fmt.Fprintf(&b, "%d bytes, %d of the %d that Temp gave are free", e.Asked, e.Free, e.Size)
	default:
		fmt.Fprintf(&b, "one more of %d %s", e.Size, e.What)
	}
	for i, a := range e.Top {
		if i == 0 {
			b.WriteString("; held by ")
		} else {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q %d", a.Name, a.Bytes)
	}
	switch {
	case e.OnPurpose:
	case e.What == "temporaries":
		fmt.Fprintf(&b, "; ask Temp for %d or more", e.Need)
	case e.Asked >= arena_c.OffsetMax:
		b.WriteString("; no plan has as much")
	case e.sameName:
		fmt.Fprintf(&b, ": all that are open have this name: is a Close missing? Else raise %s in the plan to %d or more", e.Key, e.Need)
	default:
		fmt.Fprintf(&b, "; raise %s in the plan to %d or more", e.Key, e.Need)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, "; then: %v", e.Cause)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrFull) true.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// Unwrap is the cause.
func (e *FullError) Unwrap() error { return e.Cause }

// Misuse is a caller's bug: not an answer, but a program to mend. Hits panic with it; Close returns it and changes nothing.
type Misuse struct {
	Text   string
	closed bool
}

const misusePrefix = "scope: BUG: "

// Error is the Text after "scope: BUG: ".
func (e *Misuse) Error() string { return misusePrefix + e.Text }

// Is makes errors.Is(err, ErrClosed) true where something closed was used.
func (e *Misuse) Is(target error) bool { return e.closed && target == ErrClosed }

// refusal is what an operation panics with whose scope refused: the reason is worked out when somebody
// asks, so that a fast path has nothing to do.
func refusal(s Scope) arena_c.Refusal { return arena_c.Refusal{Arena: s.h, Gen: s.gen} }

func init() { arena_c.Explain = why }

// why is most often the full at its end.
func why(r arena_c.Refusal) error {
	h, st := r.Arena, stackOf(r.Arena)
	s := Scope{h, r.Gen}
	switch {
	case st == nil:
		if err := told(r.Gen); err != nil && h.Misused != r.Gen {
			return err
		}
		return &Misuse{"use of a scope whose budget is closed", true}
	case h.BadAlign(r.Gen &^ key):
		return badAlign
	case r.Gen&key != 0:
		return undeclared
	}
	depth := h.Find(r.Gen)
	if h.Misused == r.Gen && depth == 0 {
		return s.misuse("allocation in")
	}
	st.settle(h)
	if depth != 0 {
		if n := st.noteOf(h, depth); n.err != nil && (depth != h.Depth || h.Asked == 0) {
			return n.err // it came last
		}
	}
	if depth == h.Depth && h.Asked != 0 {
		return st.remembered(h, depth)
	}
	if err := lastOf(st.notes, r.Gen); err != nil {
		return err
	}
	if err := told(r.Gen); err != nil { // another budget has the header by now
		return err
	}
	return s.misuse("allocation in")
}

// explained is the panic value with its reason worked out now, before an unwinding changes what it
// would say.
func explained(v any) any {
	if r, ok := v.(arena_c.Refusal); ok {
		return why(r)
	}
	return v
}

// handled is explained for who recovers a panic and tells it: the scope that refused needn't.
func handled(v any) any {
	e := explained(v)
	if r, ok := v.(arena_c.Refusal); ok {
		forget(r)
	}
	return e
}

// forget is for who has told why a scope refused: its Close needn't tell it again.
func forget(r arena_c.Refusal) {
	h, st := r.Arena, stackOf(r.Arena)
	if st == nil {
		return
	}
	st.settle(h)
	depth := h.Find(r.Gen &^ key)
	if h.BadAlign(r.Gen &^ key) {
		depth = h.Depth
	}
	if depth != 0 {
		_ = st.tell(h, depth)
	}
}

// lastError is what a scope met last, whose text may be asked for after it was told, and after the
// scope closed: a panic that nobody handles is printed when every deferred Close has run. It stays
// until another scope in the same place meets something.
type lastError struct {
	gen uint64
	err error
}

// lastOf is what the scope of the generation met last, or nil.
func lastOf(notes []note, gen uint64) error {
	for i := range notes {
		if told := notes[i].told; told.gen == gen && told.err != nil {
			return told.err
		}
	}
	return nil
}

// settle finds out who asked last without being the topmost scope, while that can be said: a scope
// that is alive is told so by its Err and its Close; who is closed was told already, by a panic or
// nil.
func (st *Stack) settle(h *arena_c.Scopes) {
	depth, err := st.misused(h)
	if err == nil {
		return
	}
	h.Odd |= oddNoted
	n := st.noteOf(h, depth)
	n.told = lastError{h.Record(depth).Gen, err}
	if n.err == nil {
		n.err = err
	}
	switch { // the misuse is what is told; what it is refused from now on comes after it
	case h.Odd&arena_c.Closing != 0:
	case depth == h.Depth:
		h.Asked = 0
	default:
		h.Record(depth).Asked = 0
	}
}

// misused is the scope that asked last without being the topmost, and what is wrong with that.
func (st *Stack) misused(h *arena_c.Scopes) (depth uint64, err error) {
	gen := h.Misused
	if gen == 0 {
		return 0, nil
	}
	h.Misused = 0
	depth = h.Find(gen &^ key)
	switch {
	case h.BadAlign(gen &^ key):
		depth, err = h.Find(h.Gen), badAlign
	case gen&key != 0:
		err = undeclared
	case depth != 0:
		err = Scope{h, gen}.misuse("allocation in")
	}
	if depth == 0 {
		return 0, nil
	}
	return depth, err
}

// noteOf is the note of the scope at a depth. Those of temporaries lie behind the others.
func (st *Stack) noteOf(h *arena_c.Scopes, depth uint64) *note {
	if h.Back != 0 {
		depth += h.Slots + 1
	}
	return &st.notes[depth]
}

// met is what the scope at a depth remembers: a misuse, a full, or nil.
func (st *Stack) met(h *arena_c.Scopes, depth uint64) error {
	if err := st.noteOf(h, depth).err; err != nil {
		return err
	}
	return st.remembered(h, depth)
}

// tell is met for who reports it: it is forgotten then.
func (st *Stack) tell(h *arena_c.Scopes, depth uint64) error {
	err := st.met(h, depth)
	st.noteOf(h, depth).err = nil
	if full, ok := err.(*FullError); ok {
		st.lastFull = full
	}
	if depth == h.Depth {
		h.Asked = 0
	} else {
		h.Record(depth).Asked = 0
	}
	return err
}

// remembered is the full that the scope at a depth met, or nil. It says what was so when it was asked
// for first.
func (st *Stack) remembered(h *arena_c.Scopes, depth uint64) error {
	asked := h.Asked
	if depth != h.Depth {
		asked = h.Record(depth).Asked
	}
	if asked == 0 {
		return nil
	}
	n, gen := st.noteOf(h, depth), h.Record(depth).Gen
	if full, ok := n.told.err.(*FullError); ok && n.told.gen == gen && full.asked == asked {
		return full
	}
	full := st.full(h, asked)
	full.Scope = st.nameOf(h, depth)
	if n.told = (lastError{gen, full}); !full.OnPurpose && full.Asked+arena_c.AlignMax <= full.Free {
		n.told.err = badAlign // no other could ask for more than there is
	}
	return n.told.err
}

// workOut finds out what the scopes of an end met, from a depth up, while they can still say why: a
// panic on its way may be asked for it when they are closed.
func (st *Stack) workOut(h *arena_c.Scopes, depth uint64) {
	st.settle(h)
	for i := max(depth, 1); i <= h.Depth; i++ {
		_ = st.remembered(h, i)
	}
}

// Remembered is what a Try... met in the open scopes from depth up, or in the temporaries: a full, a
// misuse, or nil. Who asks tells it.
func (st *Stack) Remembered(depth int) error { return st.rememberedSince(opened{uint64(depth), 0}) }

// opened is how many scopes were open at both ends when something began: what is open above is its own.
type opened struct{ near, far uint64 }

func (st *Stack) opened() opened { return opened{st.h.Depth, st.row.Temp.Depth} }

// since calls fn with each scope that was opened since, the lowest first, until it is false.
func (st *Stack) since(o opened, fn func(h *arena_c.Scopes, depth uint64) bool) {
	for i := o.near + 1; i <= st.h.Depth; i++ {
		if !fn(st.h, i) {
			return
		}
	}
	for i := o.far + 1; i <= st.row.Temp.Depth; i++ {
		if !fn(&st.row.Temp, i) {
			return
		}
	}
}

func (st *Stack) rememberedSince(o opened) (err error) {
	st.settle(st.h)
	st.settle(&st.row.Temp)
	st.since(o, func(h *arena_c.Scopes, depth uint64) bool {
		if err = st.met(h, depth); err != nil {
			err = st.tell(h, depth)
		}
		return err == nil
	})
	return err
}

func (st *Stack) anyFull(o opened) (full *FullError) {
	st.since(o, func(h *arena_c.Scopes, depth uint64) bool {
		full, _ = st.remembered(h, depth).(*FullError)
		return full == nil
	})
	return full
}

func (st *Stack) ends() [2]*arena_c.Scopes { return [2]*arena_c.Scopes{st.h, &st.row.Temp} }

var (
	badAlign   = &Misuse{"Alloc: an align is a power of two up to 64; AllocAligned goes on to 1 MiB", false}
	undeclared = &Misuse{"a Maker that was never declared: make it with scope.Plain or scope.Object", false}
)

// misuse says what is wrong with using s now.
func (s Scope) misuse(what string) error {
	h, st := s.h, stackOf(s.h)
	if st == nil {
		return &Misuse{what + " a scope whose budget is closed", true}
	}
	depth := h.Find(s.gen)
	if depth == 0 {
		return &Misuse{fmt.Sprintf("%s a scope of %s that is closed", what, st.config.Arena), true}
	}
	text := fmt.Sprintf("%s scope %q of %s", what, st.nameOf(h, depth), st.config.Arena)
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
	return &Misuse{text, false}
}

// full is the error of the topmost scope of an end, as things stand now.
func (st *Stack) full(h *arena_c.Scopes, asked uint64) *FullError {
	row := st.row
	size := asked &^ arena_c.Asked
	if arena_c.Checked {
		size &^= arena_c.Purpose
	}
	e := &FullError{Budget: st.config.Budget, Arena: st.config.Arena, Scope: st.nameOf(h, h.Depth), What: "bytes", asked: asked,
		Asked: size, Free: h.Limit - h.Cursor, Size: row.Size(), Key: st.config.Key,
		Top: st.holders()}
	if size|arena_c.Asked != asked {
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
	e.Need = roundUp(e.Size-e.Free, arena_c.NodeSize) + e.Asked // as if it were aligned as most are
	if e.Need <= e.Size {                                       // its alignment asked for more
		e.Need = e.Size + arena_c.AlignMax
	}
	st.lastFull = e
	return e
}

// tempStart is where the newest of the temporaries begins, from the far end's header.
func (st *Stack) tempStart() uint64 { return st.row.Arena.Limit - st.row.Temp.Back }

func roundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// LastFull is the last full that the arena told of, to whomever, or nil.
func (st *Stack) LastFull() *FullError { return st.lastFull }

func (st *Stack) tableFull(table string, size uint64, scope string) *FullError {
	st.lastFull = &FullError{Budget: st.config.Budget, Arena: st.config.Arena, Scope: scope, What: table, Asked: 1, Size: size,
		Need: size + 1, Key: "limits." + table}
	return st.lastFull
}

// scopesFull is the full of who would open one scope too many. A loop that never closes is the usual
// cause: then all that are open have one name.
func (st *Stack) scopesFull(name string) *FullError {
	full := st.tableFull("scopes", st.h.Slots, name)
	full.sameName = st.h.Depth > 1
	for depth := st.h.Base + 1; depth <= st.h.Depth; depth++ {
		full.sameName = full.sameName && st.nameOf(st.h, depth) == name
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

// joined is errors.Join without a nest: both may be lists already.
func joined(a, b error) error {
	var list errorList
	list.add(a)
	list.add(b)
	return list.err()
}

// errorsKept is how many errors of one Close are kept; others are counted.
const errorsKept = 16

// errorList gathers errors. Adding one costs the same however many there are.
type errorList struct {
	one  error
	many *manyErrors
}

func (l *errorList) add(err error) {
	switch {
	case err == nil:
	case l.one == nil:
		l.one = err
	default:
		if l.many == nil {
			l.many = &manyErrors{}
			l.many.add(l.one)
		}
		l.many.add(err)
	}
}

func (l *errorList) err() error {
	if l.many != nil {
		return l.many
	}
	return l.one
}

// manyErrors are several errors, a line each, as errors.Join gives them.
type manyErrors struct {
	list   []error
	others int // that were not kept
}

func (m *manyErrors) add(err error) {
	if more, ok := err.(*manyErrors); ok {
		for _, e := range more.list {
			m.add(e)
		}
		m.others += more.others
	} else if len(m.list) < errorsKept {
		m.list = append(m.list, err)
	} else {
		m.others++
	}
}

func (m *manyErrors) Error() string {
	var b strings.Builder
	for i, err := range m.list {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(err.Error())
	}
	if m.others > 0 {
		fmt.Fprintf(&b, "\nand %d more errors", m.others)
	}
	return b.String()
}

// Unwrap lets errors.Is and errors.As look at each that is kept.
func (m *manyErrors) Unwrap() []error { return m.list }
