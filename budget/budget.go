package budget

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// Errors that errors.Is finds.
var (
	ErrFull    = scope.ErrFull   // an arena or a planned table had no room: an expected answer
	ErrClosed  = scope.ErrClosed // something closed was used
	ErrLoading = errors.New("upfront: loading")
)

// Budget is the whole of the memory, reserved once. Its methods belong to the goroutine that drives the program, except
// where they say otherwise; scratch arenas belong to the workers they are given to.
type Budget struct {
	plan Plan
	grant
	shape     arena_c.Map // what the map's header is to be
	cost      Cost
	stacks    []*scope.Stack // of all arenas, as they lie in the map: regions, frame, scratch arenas
	regions   []*region      // bottom first, each slot one
	slots     []*Slots
	frame     []*scope.Stack
	current   scope.Scope // of the frame
	buffer    int         // the current one
	traced    bool        // NextFrame is in its region of a trace
	scratches []*scope.Stack
	leases    *leases // of them
	left      *leftOpen
	restoreGo func()
	cycles    uint64 // collections up to the end of Open
	published published

	mu      sync.Mutex // guards what follows, and the plan's regions and size, and cost
	errors  []string
	errorsN int
	last    Report // as of Close
	closed  atomic.Bool
	sealed  atomic.Bool
	_       noCopy
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Plan is the plan as opened, with its defaults filled in.
func (b *Budget) Plan() Plan {
	plan := b.plan
	plan.Regions = slices.Clone(plan.Regions) // the caller may make another plan of it
	return plan
}

// Size is the number of bytes that were reserved, tables included.
func (b *Budget) Size() uint64 { return b.memory.Size() }

// Base is what arena.Ptr and its like count from when they point from one region to another, or to the frame. It stays
// the same as long as the budget is open, and so do those of the regions until Reconfigure moves them. A pointer of one
// base that another resolves reads other bytes, unseen.
func (b *Budget) Base() arena.Base { return arena.BaseAt(b.memory.Base(), b.Size()) }

// Missing is the number of the pages of arenas and tables that are not present, each of which would cost a page fault; ok is
// false where it can't be measured. Edges, guards and space that isn't planned are addresses alone and miss nothing. Cost: a
// system call for each arena that an edge or a guard parts from the next, a byte a page.
func (b *Budget) Missing() (pages int, ok bool) {
	return b.memory.Missing(b.parts...)
}

// note keeps what nobody is returned for the report and gives it to the plan's hook, as one error.
func (b *Budget) note(err error) {
	if err == nil {
		return
	}
	text := err.Error() // here: others may ask for it at any time
	b.mu.Lock()
	b.errorsN++
	if b.errors = append(b.errors, text); len(b.errors) > reportErrors {
		b.errors = b.errors[1:]
	}
	b.mu.Unlock()
	if b.plan.OnError != nil {
		b.plan.OnError(err)
	}
}
