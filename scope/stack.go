package scope

import (
	"fmt"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Stack is the seam to package budget, which makes and drives it, and all of that: an arena whose scopes
// nest, as its owner sees it. That is a region, a slot, a buffer of the frame, or a scratch arena. One goroutine at
// a time. The fields are what it must know of the plan, most of it for its messages; Start comes next.
type Stack struct {
	Budget string         // name of the plan
	Arena  string         // "region level", "frame 0", "scratch 1.0"
	Key    string         // key of the plan that gives the arena its size
	Owned  int            // how many Go values (Own, Defer, Keep) may be held at once
	Names  int            // how many labels there may be at once
	Base   int            // how many of the lowest scopes the owner opens and closes itself
	From   unsafe.Pointer // where the budget begins
	Size   uint64         // of the budget, in bytes

	Siblings []*Stack // of a scratch arena: its worker's, in order; the same list for each of them

	h          *arena_c.Scopes
	row        *arena_c.Row
	lent       atomic.Uint64 // of a scratch arena: number of the lending
	notes      []note        // of the scopes, by depth; then of those at the far end
	id         uint64        // in the registry
	made       uint64        // how many stacks were made before it, and 1
	owned      ownedTable
	labels     labels
	names      usages // what scopes hold by name; nil lines where they aren't counted
	subsystems usages // what labels hold
	most       Open   // ever, as of the last look
	finalizers uint64
	unwound    uint64 // how often nodes ran
	failed     int
	lastFull   *FullError // the last that was told
	dropped    bool       // its budget is closed
	peakEver   uint64     // highest use before the last ResetPeak
	inside     int        // calls of Do, With and Make that are at work
	_          noCopy
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// note is what the Go side knows of an open scope.
type note struct {
	name   string
	gen    uint64       // its generation: C opens scopes without a note
	site   arena_c.Site // where it was opened
	line   int          // of the name, where names are counted
	err    error        // a misuse of it, until its Close tells
	lost   error        // of the parts of a constructor that was unwound: nobody got them
	making making
	told   lastError
}

// Why Open and Close of an arena take the long way, beside arena_c.Closing and Building.
const (
	oddTemp  = 1 << (2 + iota) // the far end
	oddNoted                   // a note has an err or lost, or a scope has labels
	oddNames                   // what scopes hold is counted by name
)

// keep gives a name that outlives what it lies in: it may be one that Sprintf made in a scope of the
// budget.
func (st *Stack) keep(name string) string {
	if arena_c.Place(unsafe.Pointer(unsafe.StringData(name)), st.From) < st.Size {
		return strings.Clone(name)
	}
	return name
}

// Open opens a scope on top of the arena, in the topmost one if there is one. See Scope.Open.
func (st *Stack) Open(name string) Scope { return st.open(st.lent.Load(), name) }

// open is Open for who has the arena on loan.
func (st *Stack) open(lent uint64, name string) Scope {
	h := st.h
	if st.lent.Load() != lent || h.Odd|h.Misused != 0 || h.Depth >= h.Slots || arena_c.Checked { // first: another may use the arena
		if full := st.openLong(lent, name); full != nil {
			panic(full)
		}
	}
	gen := h.Open() // what opens does, without a call
	n := &st.notes[h.Depth]
	n.name, n.gen = st.keep(name), gen
	n.site.Note()
	return Scope{h, gen}
}

// tryOpen is Open for who returns a full.
func (st *Stack) tryOpen(name string) (Scope, *FullError) {
	if full := st.openLong(st.lent.Load(), name); full != nil {
		return Scope{}, full
	}
	return st.opens(name), nil
}

func (st *Stack) opens(name string) Scope {
	h := st.h
	gen := h.Open()
	n := &st.notes[h.Depth]
	n.name, n.gen = st.keep(name), gen
	n.site.Note()
	return Scope{h, gen}
}

// openLong says why a scope can't open, or does what the short way leaves out.
func (st *Stack) openLong(lent uint64, name string) *FullError {
	h := st.h
	if st.lent.Load() != lent {
		Scratch{st, lent}.givenBack("Open on")
	}
	st.settle(h) // who was refused is still the topmost
	if h.Odd&(arena_c.Closing|arena_c.Building) != 0 || h.Depth > 0 && h.Gen == 0 {
		panic(st.at(st.Depth() - 1).misuse("Open in"))
	}
	if h.Depth == h.Slots {
		return st.scopesFull(name)
	}
	if arena_c.Checked && h.Depth > 0 && arena_c.Refuse() {
		return st.refuseTable("scopes", h.Slots, name)
	}
	n := &st.notes[h.Depth+1]
	n.err, n.lost = nil, nil
	if h.Odd&oddNames != 0 {
		st.nameLine(n, name)
	}
	return nil
}

// do is Do of a scope or a scratch arena.
func (st *Stack) do(name string, fn func(Scope) error) (err error) {
	before := st.opened()
	s, full := st.tryOpen(name)
	if full != nil {
		return full
	}
	depth := st.Depth()
	st.inside++
	defer func() {
		st.inside--
		if st.dropped || !s.alive() { // fn closed it, or the budget: what is open now is somebody else's
			switch v := explained(recover()).(type) {
			case nil:
			case *FullError:
				err = v
			default:
				panic(v)
			}
			return
		}
		other, verdict := st.verdict(recover(), err, before)
		if verdict == nil && other == nil {
			verdict = joined(st.leftOpen(depth), st.rememberedSince(before))
		}
		err = joined(verdict, st.CloseTo(depth-1))
		if other != nil {
			panic(other)
		}
	}()
	return fn(s)
}

// Verdict sorts what ended a function that worked in the open scopes: v is what recover gave, err what it
// returned. A full is an error. A panic after a full that nobody handled is that full, with the panic as its
// cause. Any other panic comes back, to go on after the unwinding.
func (st *Stack) Verdict(v any, err error) (other any, verdict error) {
	return st.verdict(v, err, opened{})
}

func (st *Stack) verdict(v any, err error, before opened) (other any, verdict error) {
	if v == nil {
		return nil, err
	}
	_, isRefusal := v.(arena_c.Refusal)
	v = handled(v)
	if full, ok := v.(*FullError); ok {
		return nil, full
	}
	if isRefusal {
		return v, nil // a caller's bug
	}
	if full := st.anyFull(before); full != nil {
		told := *full
		told.Cause = fmt.Errorf("panic: %v", v)
		return nil, &told
	}
	return v, nil
}

// Opened is the open scope at a depth, its name and where it was opened: nowhere when C opened it. The lowest is at 0.
// pre: depth < Depth.
func (st *Stack) Opened(depth int) (s Scope, name string, at *arena_c.Site) {
	s, name, at = st.at(depth), st.nameOf(st.h, uint64(depth+1)), &arena_c.Site{}
	if n := &st.notes[depth+1]; n.gen == s.gen {
		at = &n.site
	}
	return s, name, at
}

// at is the open scope at a depth.
func (st *Stack) at(depth int) Scope { return Scope{st.h, st.h.Record(uint64(depth + 1)).Gen} }

// nameOf is the name of the scope whose record is at a depth, counted from 1.
func (st *Stack) nameOf(h *arena_c.Scopes, depth uint64) string {
	if h.Back != 0 {
		return tempName
	}
	if n := &st.notes[depth]; n.gen == h.Record(depth).Gen {
		return n.name
	}
	return cName
}

// Depth is the number of open scopes.
func (st *Stack) Depth() int { return int(st.h.Depth) }

// Busy says whether finalizers of the arena are running, and whether a Do, a With or a constructor is at work on it.
func (st *Stack) Busy() (closing, inside bool) {
	return (st.h.Odd|st.row.Temp.Odd)&arena_c.Closing != 0, st.inside != 0
}

// Freeze ends allocation in the topmost scope: what is there stays until it closes. Who freezes has asked for Left.
func (st *Stack) Freeze() {
	st.settle(st.h)
	st.notes[st.h.Depth].err = nil
	st.h.Asked = 0
	st.h.Freeze()
}

// Keeps says whether the address outlives the load: it lies outside the arena, or below the cursor of
// the topmost scope.
func (st *Stack) Keeps(p unsafe.Pointer, size uint64) bool {
	h := st.h
	at := h.Offset(p)
	return at-h.Start >= st.row.Size() || at < h.Cursor || size == 0 && at == h.Cursor
}

// Left is what speaks against the end of what ran in the open scopes: scopes from a depth up that were left open, and what
// a Try... met in any, which is told with this.
func (st *Stack) Left(depth int) error {
	return joined(st.leftOpen(depth), st.rememberedSince(opened{}))
}

// leftOpen is the misuse of who ends while scopes from depth up, opened inside, are open; nil when
// there is none.
func (st *Stack) leftOpen(depth int) error {
	if st.Depth() <= depth {
		return nil
	}
	names := make([]string, 0, 1)
	for i := depth; i < st.Depth(); i++ {
		_, name, _ := st.Opened(i)
		names = append(names, fmt.Sprintf("%q", name))
	}
	return &Misuse{fmt.Sprintf("scope %s of %s was left open: close it where it is opened", strings.Join(names, ", "), st.Arena),
		false}
}
