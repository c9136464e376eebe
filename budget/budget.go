package budget

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Errors for errors.Is.
var (
	// ErrFull: an arena or a table is out of room, or no slot is free. It is an expected
	// result, not a bug. The fields of a [scope.FullError] say which.
	ErrFull = scope.ErrFull
	// ErrNoSlot: no slot is free, because all are acquired. Such an error is an ErrFull too.
	ErrNoSlot = errors.New("upfront: no slot is free")
	// ErrClosed: the budget, scope or slot is closed.
	ErrClosed = scope.ErrClosed
	// ErrLoading: the call isn't allowed during a load, rewind, close or the like.
	ErrLoading = errors.New("upfront: a load, rewind or close is at work")
)

// Budget is a program's planned memory, reserved once. Only the goroutine that drives the program
// calls its methods, unless a method says otherwise. A scratch arena belongs to its worker.
type Budget struct {
	plan Plan
	grant
	shape     arena_c.Map // the map's header as [Budget.Walk] expects it
	cost      Cost
	follow    follower       // of the limits of the process
	stacks    []*stack.Stack // all arenas in map order: regions, frame, scratch
	regions   []*region      // bottom first, one for each slot
	slots     []*Slots
	quotas    []*quota
	sides     waitSides
	frame     []*stack.Stack
	current   scope.Scope // the frame's own
	buffer    int         // index of the current buffer
	traced    bool        // NextFrame is inside its trace region
	scratches []*stack.Stack
	leases    *leases // of the scratch arenas
	left      *leftOpen
	restoreGo func()
	cHeap     bool // C's malloc is this budget's
	heaps     heapLooks
	cycles    uint64 // collections until the end of Open
	allocated uint64 // bytes allocated on the Go heap until then
	published published
	resident  atomic.Uint64 // bytes present when last measured

	mu      sync.Mutex // guards the fields below, and the plan's regions and size, and cost
	whole   *load      // a running Close, Trim or Reconfigure of the budget
	errors  []string
	errorsN int
	last    Report // the report as of Close
	closed  atomic.Bool
	sealed  atomic.Bool
	_       noCopy
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Plan returns the plan with the sizes in force. Plan.Limits, Pages, Scratch.Each and a [Rest] are
// filled in; other zeros stay.
func (b *Budget) Plan() Plan {
	plan := b.plan
	// the caller may change its copy
	plan.Regions, plan.Quotas, plan.Expected = slices.Clone(plan.Regions), slices.Clone(plan.Quotas),
		slices.Clone(plan.Expected)
	return plan
}

// Size returns the number of bytes from the budget's first to its last: tables, padding and guards
// included.
func (b *Budget) Size() uint64 { return b.memory.Size() }

// Base returns the base for pointers, such as [arena.Ptr], from one region to another or to the
// frame. This base stays the same while the budget is open; that of [Region.Base] stays the same
// until Reconfigure moves the region. A pointer that is resolved with the wrong base leads to other
// bytes, without an error.
func (b *Budget) Base() arena.Base { return arena.BaseAt(b.memory.Base(), b.Size()) }

// Missing returns the number of pages of arenas and tables that are not present; the next use of
// each such page is a page fault. ok is false if the system can't count these pages. Alignment
// padding, guards and unplanned space are only addresses and don't count, unless the plan asks for
// pages.huge. Cost: a system call for each run of counted pages, and for each 16 MiB of a run.
func (b *Budget) Missing() (pages int, ok bool) {
	return b.memory.Missing(b.parts...)
}

// note records an error that no call returns, for the report, and passes it to Plan.OnError.
func (b *Budget) note(err error) {
	if err == nil {
		return
	}
	text := err.Error() // now: a report may be read at any time
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
