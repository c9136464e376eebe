package stack

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Config describes an arena to its Stack. Most of it is for messages.
type Config struct {
	Budget string         // name of the plan
	Arena  string         // "region level", "frame 0", "scratch 1.0"
	Part   string         // of the plan, as reports name it: "level", "frame"
	Index  int            // of this arena in its part
	Kind   string         // "region", "slot", "frame", "scratch"
	Key    string         // key of the plan that sets the arena's size
	Owned  int            // limit of owned Go values (Own, Defer, Keep)
	Names  int            // limit of labels
	Base   int            // number of the lowest scopes, which only the owner opens and closes
	From   unsafe.Pointer // the budget's first byte
	Size   uint64         // of the budget, in bytes
	Pages  Pages          // of the arena

	// keys of limits that differ from the plan's, by table: "owned": "regions[1].limits.owned"
	TableKeys map[string]string
}

// Pages returns pages to the system, for the arenas that are on them.
type Pages interface {
	// Discard makes whole pages zero and returns them to the operating system. Its result is the
	// number of bytes of these pages that were in memory.
	Discard(p unsafe.Pointer, size uint64) (bytes uint64, err error)
}

// Stack is an arena with nested scopes: a region, a slot, a buffer of the frame, or a scratch
// arena. One goroutine at a time uses a Stack. [Start] makes it.
type Stack struct {
	Config
	Siblings []*Stack // of a scratch arena: all arenas of its worker, in order; they share one list

	h      *arena_c.Scopes
	row    *arena_c.Row
	lent   atomic.Uint64 // of a scratch arena: number of the lending
	notes  []note        // of the scopes, by depth; then of those at the far end
	id     uint64        // in the registry
	made   uint64        // its number: the count of stacks made, with itself
	owned  ownedTable
	labels labels
	ledger
	fails   bool   // a function failed, and its scopes are unwound
	dropped bool   // its budget is closed
	inside  int    // running calls of Do, Label and Make
	watch   *watch // nil: no state is being made
	rooms   rooms
	caches  *caches // nil: the arena never had a cache
	emptied lastEmptied
	warn    *warning // nil: the arena warns of nothing

	// of a dry arena: the near end's cursor after the node of each of its temporaries, the oldest
	// first
	tempNodes []uint64

	_ NoCopy
}

// NoCopy makes go vet refuse copies of a type that has it.
type NoCopy struct{}

// Lock is for go vet.
func (*NoCopy) Lock() {}

// Unlock is for go vet.
func (*NoCopy) Unlock() {}

// note is the Go side's record of an open scope.
type note struct {
	name string
	gen  uint64       // the scope's generation: a scope that C opens has no note of its own
	site arena_c.Site // where it was opened
	// errors of a constructor that panicked, which no call has returned
	unreported error
	making     making
	refused    refusal // the last one
	// the first misuse that no call has reported; an unreported full is in the scope's Asked
	owed error
}

// The last refusal of a scope. It stays after it was reported and after the scope closed, until
// another scope in the same place is refused: an unhandled panic is printed after every deferred
// Close.
type refusal struct {
	// of the request. It differs from the scope's generation for a bad align and for a Maker that
	// was never declared.
	gen uint64
	err error // a full error, or a misuse
}

func reasonOf(list []refusal, gen uint64) error {
	for _, r := range list {
		if r.gen == gen {
			return r.err
		}
	}
	return nil
}

// Returns the last refusal in each place for a scope.
func (st *Stack) refusals() (list []refusal) {
	for i := range st.notes {
		if r := st.notes[i].refused; r.err != nil {
			list = append(list, r)
		}
	}
	return list
}

// making describes the running constructors of a scope.
type making struct {
	gen   uint64 // of the scope
	from  uint64 // cursor when the outermost constructor began; 0: no constructor runs
	start uint64 // cursor when the innermost constructor began
}

// Reasons for Open and Close to take the slow path, besides arena_c.Closing and Building.
const (
	oddTemp     = 1 << (2 + iota) // the far end
	oddNoted                      // a note has owed or unreported, or a scope has labels
	oddNames                      // bytes of scopes are counted by name
	oddWatched                    // freed bytes become zeros
	oddRecorded                   // each event goes to a sink
	oddRooms                      // the arena contains an inner arena, a cache or a finished state
)

// keep returns a name that outlives its bytes, which may be in a scope of the budget (Sprintf).
func (st *Stack) keep(name string) string {
	if arena_c.Place(unsafe.Pointer(unsafe.StringData(name)), st.From) < st.Size {
		return strings.Clone(name)
	}
	return name
}

// Opened returns the generation of the open scope at a depth, its name, and the place that opened
// it. The place is empty if C opened the scope. The lowest scope has depth 0. pre: depth < Depth.
func (st *Stack) Opened(depth int) (gen uint64, name string, at *arena_c.Site) {
	gen, name, at = st.h.Record(uint64(depth+1)).Gen, st.nameOf(st.h, uint64(depth+1)), &arena_c.Site{}
	if n := &st.notes[depth+1]; n.gen == gen {
		at = &n.site
	}
	return gen, name, at
}

// The lines of scopes without names of their own.
const (
	othersName = "others" // names for which the table had no line
	tempName   = "temp"   // temporaries
	cName      = "C"      // scopes that C opened
)

// nameOf returns the name of the scope whose record is at a depth, counted from 1.
func (st *Stack) nameOf(h *arena_c.Scopes, depth uint64) string {
	if h.Back != 0 {
		return tempName
	}
	if n := &st.notes[depth]; n.gen == h.Record(depth).Gen {
		return short(n.name)
	}
	return cName
}

// nameMost is how many bytes of a name appear in messages.
const nameMost = 128

func short(name string) string {
	if len(name) <= nameMost {
		return name
	}
	end := nameMost
	for end > nameMost-utf8.UTFMax && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}

// Depth returns the number of open scopes.
func (st *Stack) Depth() int { return int(st.h.Depth) }

func (st *Stack) ends() [2]*arena_c.Scopes { return [2]*arena_c.Scopes{st.h, &st.row.Temp} }

// noteOf returns the note of the scope at a depth. The notes of temporaries follow the others.
func (st *Stack) noteOf(h *arena_c.Scopes, depth uint64) *note {
	if h.Back != 0 {
		depth += h.Slots + 1
	}
	return &st.notes[depth]
}

// tempStart returns the offset of the newest temporaries, from the far end's header.
func (st *Stack) tempStart() uint64 { return st.row.Arena.Limit - st.row.Temp.Back }

func roundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// ending names the topmost scope of an end, for an error of its close.
func (st *Stack) ending(h *arena_c.Scopes) string {
	return fmt.Sprintf("budget %q: %s, scope %q", st.Budget, st.Arena, st.nameOf(h, h.Depth))
}

// NamesOf returns the names of the budget, the arena and the scope, for messages. pre: the scope is
// alive.
func NamesOf(h *arena_c.Scopes, gen uint64) (budget, arena, scope string) {
	st := Of(h)
	return st.Budget, st.Arena, st.nameOf(h, h.Find(gen))
}

func (st *Stack) edgesOf(h *arena_c.Scopes, depth uint64) (from, end uint64) {
	switch {
	case h.Back == 0:
		from = h.Record(depth).Mark
		return from, from + h.Bytes(depth)
	case depth == h.Depth:
		return st.tempStart(), h.Cursor
	}
	next := h.Record(depth + 1)
	return next.Edge - h.Back, next.Mark
}

// lentDropped is a number that no lending has. It marks a dropped stack.
const lentDropped = math.MaxUint64
