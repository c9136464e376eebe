package scope

import (
	"math"
	"strings"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Stack is an arena with nested scopes: a region, a slot, a buffer of the frame, or a scratch
// arena. It is for package budget, which owns the arenas. Programs use Scope instead. One goroutine
// at a time uses a Stack. The exported fields come from the plan, and most of them are for
// messages. Set the fields, then call Start.
type Stack struct {
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

	Pages Pages // of the arena

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

	// keys of limits that differ from the plan's, by table: "owned": "regions[1].limits.owned"
	TableKeys map[string]string

	_ noCopy
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// note is the Go side's record of an open scope.
type note struct {
	name   string
	gen    uint64       // the scope's generation: a scope that C opens has no note of its own
	site   arena_c.Site // where it was opened
	lost   error        // unreturned errors of a constructor that panicked
	making making
	met    met // its last refusal
	// the first misuse that no call has reported; an unreported full is in the scope's Asked
	owed error
}

// Reasons for Open and Close to take the slow path, besides arena_c.Closing and Building.
const (
	oddTemp     = 1 << (2 + iota) // the far end
	oddNoted                      // a note has owed or lost, or a scope has labels
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

// Opened returns the open scope at a depth, its name, and the place that opened it. The place is
// empty if C opened the scope. The lowest scope has depth 0. pre: depth < Depth.
func (st *Stack) Opened(depth int) (s Scope, name string, at *arena_c.Site) {
	s, name, at = st.at(depth), st.nameOf(st.h, uint64(depth+1)), &arena_c.Site{}
	if n := &st.notes[depth+1]; n.gen == s.gen {
		at = &n.site
	}
	return s, name, at
}

func (st *Stack) at(depth int) Scope { return Scope{st.h, st.h.Record(uint64(depth + 1)).Gen} }

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

// making describes the running constructors of a scope.
type making struct {
	gen   uint64 // of the scope
	from  uint64 // cursor when the outermost constructor began; 0: no constructor runs
	start uint64 // cursor when the innermost constructor began
}

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

// lentDropped is a number that no lending has. It marks a dropped stack.
const lentDropped = math.MaxUint64
