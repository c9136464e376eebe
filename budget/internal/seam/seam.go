// Package seam has functions of package budget for packages such as save and record, which programs
// don't need.
// Package budget sets the variables when it is initialized. Their types have types of package
// budget, which this package can't import, so a package asserts the type of each function that it
// uses:
//
//	var stacks = seam.Stacks.(func(*budget.Budget) []*stack.Stack)
package seam

import (
	"context"
	"sync/atomic"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Functions of package budget.
var (
	// Stacks is func(*budget.Budget) []*stack.Stack. It returns all arenas in map order: regions
	// with their slots, frame, scratch arenas.
	Stacks any
	// AtSetUp is func(b *budget.Budget, call string) error. It returns an error after Close or
	// Seal, when it is too late to record the arenas.
	AtSetUp any
	// TableBytes is func(budget.Plan) (uint64, error). It returns the bytes that the tables of an
	// open plan take in the budget, and an estimate of those on the Go heap. The result doesn't
	// depend on the budget's use. The plan must be valid.
	TableBytes any

	// Dry is func(budget.Plan) (*budget.Budget, error). It returns a budget that has tables, on the
	// Go heap, but no memory for its arenas. Only Plan and Walk of its methods work, and only
	// [stack.Stack.Play] of its arenas' methods that allocate. Dry fails if the plan is invalid or
	// can't be laid out.
	Dry any
	// DryReport is func(*budget.Budget) budget.Report, for a dry budget.
	DryReport any
	// MeasureDry is func(budget.Plan, func(*budget.Budget) error) (budget.Report, error). It is
	// [budget.Measure] for package record: it runs the function on dry budgets. The shadow has
	// about half of the addresses that a budget may have, or more, and takes no memory for them, so
	// the function hardly ever runs out of room. The sizes of unused parts and Plan.Limits stay as
	// planned. A region's note has the recorded bytes, or "never used".
	MeasureDry any
	// Widen is func(p *budget.Plan, other budget.Plan) error. It raises the sizes and numbers of p
	// to those of other. No other plan may share p.Regions.
	Widen any

	// StateOf is func(r budget.Region, s scope.Scope) (*State, error). It returns the state of the
	// load that runs in r. s is the scope of the load's function.
	StateOf any
	// NewExclusive returns an Exclusive for these states, which belong to one budget and to
	// different regions. Other states are a caller's bug and panic.
	NewExclusive func(what string, states ...*State) Exclusive

	// Watch is func(*budget.Budget) Watched, for one timeline of a budget. A second call, or a call
	// after Seal or Close, panics.
	Watch any

	// Look is func(b *budget.Budget, name string) (*stack.Stack, error). It returns the arena of
	// that name in reports if its contents may be read.
	Look any
	// LookRegion is func(budget.Region) (*stack.Stack, error), as Look.
	LookRegion any
)

// State gives package save access to one load of a region. Package save copies and restores the
// region's bytes while no other goroutine touches the region.
type State struct {
	Budget  string // name of the budget's plan
	Name    string // as budget.Region.Name
	Region  string // the region's name in the plan, which all slots of a region share
	Slot    string // Name of a slot, and "" for a region without slots
	Stack   *stack.Stack
	IsState bool // the region has State in the plan
	// Track reports whether the region has Track in the plan. If it has and Tracker is nil, package
	// save compares pages.
	Track   bool
	Tracker *platform.Tracker // of the region's written pages, or nil

	Of     any // the budget's region
	Word   *atomic.Uint64
	Loaded uint64 // Word after the load
	Closed *atomic.Bool
	Why    func(word uint64) error // the result of Check
}

// Check returns nil from the end of the load until the load's objects are rewound. Otherwise it
// returns an error with the reason. Any goroutine may call it.
func (s *State) Check() error {
	if now := s.Word.Load(); s.Closed.Load() || now != s.Loaded {
		return s.Why(now)
	}
	return nil
}

// Exclusive locks the regions of some states for a restore. Like a load, it excludes other calls
// that touch these regions. Unlike a load, it doesn't lock the regions above them: one of those may
// be loaded at the same time.
type Exclusive interface {
	// Begin locks the regions. Like Load, it waits for workers that pin them, and fails while
	// another load touches them. It also fails if State.Check of a state does. It makes no Go
	// allocation unless it waits or fails.
	Begin(ctx context.Context) error
	// End unlocks the regions.
	End()
}
