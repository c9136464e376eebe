package scope

import (
	"math"
	"strings"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Stack is the seam to package budget, which makes and drives it, and all of that: an arena whose scopes
// nest, as its owner sees it. That is a region, a slot, a buffer of the frame, or a scratch arena. One goroutine at
// a time. The fields are what it must know of the plan, most of it for its messages; Start comes next.
type Stack struct {
	Budget string         // name of the plan
	Arena  string         // "region level", "frame 0", "scratch 1.0"
	Part   string         // of the plan, as reports call it: "level", "frame"
	Index  int            // among the arenas of its part
	Kind   string         // "region", "slot", "frame", "scratch"
	Key    string         // key of the plan that gives the arena its size
	Owned  int            // how many Go values (Own, Defer, Keep) may be held at once
	Names  int            // how many labels there may be at once
	Base   int            // how many of the lowest scopes the owner opens and closes itself
	From   unsafe.Pointer // where the budget begins
	Size   uint64         // of the budget, in bytes

	Siblings []*Stack // of a scratch arena: its worker's, in order; the same list for each of them

	h      *arena_c.Scopes
	row    *arena_c.Row
	lent   atomic.Uint64 // of a scratch arena: number of the lending
	notes  []note        // of the scopes, by depth; then of those at the far end
	id     uint64        // in the registry
	made   uint64        // how many stacks were made before it, and 1
	owned  ownedTable
	labels labels
	ledger
	fails   bool   // what ran failed, and is unwound
	dropped bool   // its budget is closed
	inside  int    // calls of Do and Make that are at work
	watch   *watch // nil: nobody asks
	rooms   rooms
	emptied lastEmptied

	tempNodes []uint64 // of a dry arena's temporaries, the oldest first: where the near end stood behind the node

	TableKeys map[string]string // by table, keys of the limits that are not the plan's: "owned": "regions[1].limits.owned"

	_ noCopy
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// note is what the Go side knows of an open scope.
type note struct {
	name   string
	gen    uint64       // its generation: C opens scopes without a note
	site   arena_c.Site // where it was opened
	lost   error        // of the parts of a constructor that was unwound: nobody got them
	making making
	met    met   // what it was refused last
	owed   error // the first misuse that no caller has reported; a full is owed while the scope's Asked has it
}

// Why Open and Close of an arena take the long way, beside arena_c.Closing and Building.
const (
	oddTemp     = 1 << (2 + iota) // the far end
	oddNoted                      // a note owes a misuse or has lost, or a scope has labels
	oddNames                      // what scopes hold is counted by name
	oddWatched                    // what is given back becomes zeros
	oddRecorded                   // somebody is told of each
	oddRooms                      // an arena lies in it, or a state that is whole
)

// keep gives a name that outlives what it lies in: it may be one that Sprintf made in a scope of the
// budget.
func (st *Stack) keep(name string) string {
	if arena_c.Place(unsafe.Pointer(unsafe.StringData(name)), st.From) < st.Size {
		return strings.Clone(name)
	}
	return name
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
		return short(n.name)
	}
	return cName
}

// nameMost is how much of a name is told, in bytes.
const nameMost = 128

// short is the part of a name that is told.
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

// Depth is the number of open scopes.
func (st *Stack) Depth() int { return int(st.h.Depth) }

// making is the constructors (Make) that are at work in a scope.
type making struct {
	gen   uint64 // of the scope
	from  uint64 // cursor when the outermost began, 0: there is none
	start uint64 // and when the innermost did
}

func (st *Stack) ends() [2]*arena_c.Scopes { return [2]*arena_c.Scopes{st.h, &st.row.Temp} }

// noteOf is the note of the scope at a depth. Those of temporaries lie behind the others.
func (st *Stack) noteOf(h *arena_c.Scopes, depth uint64) *note {
	if h.Back != 0 {
		depth += h.Slots + 1
	}
	return &st.notes[depth]
}

// tempStart is where the newest of the temporaries begins, from the far end's header.
func (st *Stack) tempStart() uint64 { return st.row.Arena.Limit - st.row.Temp.Back }

// lentDropped is the number of no lending: the stack is dropped, whoever asks for it.
const lentDropped = math.MaxUint64
