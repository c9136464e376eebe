package budget

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// Measure answers "will it fit?": it says what each part of the plan needs for fn, to the byte. It
// runs fn in a shadow of the plan, in which each region, slot, buffer and scratch is as wide as the
// machine allows (16 GiB for all, 256 MiB on 32-bit targets, half of what the process's limits
// leave), and so are the limits. Then it runs fn in a budget of just what that took, and again,
// until it fits: the report is that of a run, and its Plan is the plan of that run, ready to be
// opened. It has the given plan's name, notes, base, pages, Go heap and OnError; no region takes
// the rest, and Size is 0: the sum.
//
// A part's size in it is its Peak, the highest of its slots, buffers or scratch arenas; with one
// byte less fn is full. Where there were temporaries ([scope.Scope.Temp]), which begin at a line,
// it may be the next multiple of 64. Where it depends on which goroutine comes first how much a
// scratch arena holds, it is what sufficed in the run. What was never used has 1 byte, the least
// that a plan takes. Slots, buffers and workers are as planned, limits the highest MostOpen and at
// least 1: they are as tight as sizes, and one Defer more than in the run is full. A region with
// slots, and one that has limits in the given plan, has limits of its own, the highest of its
// slots; Plan.Limits is the highest of the others. Set both to your own to keep those.
//
// fn runs at least twice, and once more for each part whose temporaries need the next line: it does
// the same each time, starts with a fresh budget, ends its goroutines, and bears with being run
// again in what it makes outside of the budget. It need not close the budget. A full that it
// returns or panics with, and also one that it hides, asks for more room; any other error ends
// Measure and is its error, and so do the leaks that Close finds at the end. Full in the widest
// plan is an error that says so.
//
// The shadow is open without pages made present, locked, huge or guarded, at no certain address,
// and without a share of the Go heap: fn may run beside a budget that governs it. In a checked build
// the shadow has 256 MiB at first, and where fn is full in those it runs again in 16 times as much.
// In checked and asan builds each [scope.Builder] looks at all that is free: measure in a release
// build.
//
// Nothing stays reserved but the head of the tables, so that scopes and pools that fn kept stay
// dead. What fn kept of the memory itself is none of anybody's: unlike with other budgets, whose
// addresses stay reserved, other things may come to lie there.
func Measure(plan Plan, fn func(b *Budget) error) (Report, error) {
	if err := plan.check(); err != nil {
		return Report{}, err
	}
	m := &measurement{plan: plan.resolved(), first: wideFirst, most: wideTotal(), limits: wideLimit,
		open: func(p Plan) (*Budget, error) { return openPlan(p, inPassing) },
		run:  func(b *Budget) (Report, []*scope.FullError, error) { return b.measured(fn) }}
	report, err := m.runWide()
	if err != nil {
		return Report{}, err
	}
	needs := report.needs()
	for key, n := range needs {
		n.bytes = max(1, n.bytes)
		needs[key] = n
	}
	return m.narrow(m.wide.fit(needs))
}

// MeasureDry is Measure of what play does with dry arenas (see [Dry]): package record's. A full in the widest plan is hardly met,
// since that has all addresses of a budget, and nothing of them is memory. What wasn't used is as planned, and Plan.Limits too; the
// note of a region says so, or what was recorded.
func MeasureDry(plan Plan, play func(Arenas) error) (Report, error) {
	if err := plan.check(); err != nil {
		return Report{}, err
	}
	m := &measurement{plan: plan.resolved(), first: planSizeMax, most: planSizeMax, open: openDry,
		run: func(b *Budget) (report Report, fulls []*scope.FullError, err error) {
			err = play(Arenas{b})
			if full, ok := errors.AsType[*scope.FullError](err); ok && widens(full) {
				fulls, err = append(fulls, full), nil
			}
			return Arenas{b}.Report(), fulls, err
		}}
	report, err := m.runWide()
	if err != nil {
		return Report{}, err
	}
	tight := m.plan.fit(report.needs())
	tight.Size, tight.Limits = 0, m.plan.Limits
	if report, err = m.narrow(tight); err != nil {
		return Report{}, err
	}
	needs := report.needs()
	for i := range report.Plan.Regions {
		report.Plan.Regions[i].Note = needs[regionSizeKey(i)].noted(" bytes at most, recorded")
	}
	return report, nil
}

// measurement is what Measure knows meanwhile.
type measurement struct {
	plan        Plan   // as given
	first, most uint64 // what a wide plan has at first, and at most
	limits      uint64 // how many of each an arena of it may have open at least, if it has wideRoom for each
	open        func(Plan) (*Budget, error)
	run         func(*Budget) (report Report, fulls []*scope.FullError, err error)
	wide        Plan
	tight       Plan // to be tried next
}

// measureTries is where Measure gives up: fn does something else each time.
const measureTries = 100

// runWide runs with room in plenty.
func (m *measurement) runWide() (Report, error) {
	shadow := m.plan
	shadow.Size, shadow.Base, shadow.GoHeap, shadow.Pages = 0, 0, 0, Pages{Prefault: Off}
	shadow.Regions = slices.Clone(shadow.Regions)
	for total := min(m.first, m.most); ; {
		m.wide = shadow.wide(total, m.limits)
		b, err := m.open(m.wide)
		if err != nil && total >= planEdge { // RLIMIT_AS, or the kernel's overcommit, is against it
			total /= 2
			m.most = total
			continue
		}
		if err != nil {
			return Report{}, err
		}
		report, fulls, err := m.run(b)
		if err != nil || len(fulls) == 0 {
			return report, err
		}
		wider := total
		for _, full := range fulls {
			if shadow.raiseLimit(full, 2*full.Size) {
				continue
			}
			if wider = min(wideMore*total, m.most); wider == total {
				return Report{}, fmt.Errorf("budget %q: Measure: full even in a plan that is far wider: %w", m.plan.Name, full)
			}
		}
		total = wider
	}
}

// narrow runs in a plan that may just do, and in others until it fits.
func (m *measurement) narrow(tight Plan) (report Report, err error) {
	defer func() {
		if err == nil {
			report.Plan.Base, report.Plan.GoHeap, report.Plan.Pages = m.plan.Base, m.plan.GoHeap, m.plan.Pages
		}
	}()
	m.tight = tight
	var best Report // before it was lowered
	lowered := false
	for range measureTries {
		b, err := m.open(m.tight)
		if err != nil {
			return Report{}, err
		}
		report, fulls, err := m.run(b)
		if err != nil {
			return Report{}, err
		}
		if len(fulls) == 0 {
			if lowered || !m.lower(report) {
				return report, nil
			}
			best, lowered = report, true
		}
		for _, full := range fulls {
			if lowered && full.Size == lineEnd(full.Size) {
				return best, nil
			}
			if !m.raise(full) {
				return Report{}, fmt.Errorf("budget %q: Measure: full with what was enough before; fn must do the same each time: %w",
					m.plan.Name, full)
			}
		}
	}
	return Report{}, fmt.Errorf("budget %q: Measure: no sizes were found in %d runs; fn must do the same each time", m.plan.Name,
		measureTries)
}

// raise makes the next plan larger where it was full. It is false when that had as much before as there ever was.
func (m *measurement) raise(full *scope.FullError) bool {
	if m.tight.raiseLimit(full, full.Need) {
		return true
	}
	wide := m.wide.sized()
	for i, part := range m.tight.sized() {
		if part.key == full.Key && full.Size < *wide[i].size {
			if line := lineEnd(full.Size); *part.size != full.Size { // another full of this run has raised it
			} else if line > full.Size { // temporaries end there, which may be all that is missing
				*part.size = min(line, *wide[i].size)
			} else {
				*part.size = min(max(full.Size+1, full.Need), *wide[i].size)
			}
			return true
		}
	}
	return false
}

// lower makes the next plan as small as the peaks of a run, if some part had more than that and its temporaries need: the
// size that a full names may be more, for an alignment.
func (m *measurement) lower(report Report) (lowers bool) {
	needs := report.needs()
	for _, part := range m.tight.sized() {
		if least := needs[part.key].bytes; least != 0 && *part.size > lineEnd(least)+arena_c.LineSize {
			*part.size, lowers = least, true
		}
	}
	return lowers
}

func lineEnd(size uint64) uint64 { return (size + arena_c.LineSize - 1) &^ (arena_c.LineSize - 1) }

// raiseLimit makes the limit that was full so many. It is false when it was another thing, or the limit is the largest already.
// The plan's regions are its own.
func (p *Plan) raiseLimit(full *scope.FullError, to uint64) bool {
	for i := range p.Regions {
		if p.Regions[i].Limits.raise(regionLimitsKey(i), full, to) {
			return true
		}
	}
	return p.Limits.raise("limits.", full, to)
}

func (l *Limits) raise(prefix string, full *scope.FullError, to uint64) bool {
	for _, limit := range l.byKey() {
		if prefix+limit.key == full.Key {
			*limit.value = max(*limit.value, int(min(to, planLimitMax)))
			return full.Size < planLimitMax
		}
	}
	return false
}

// measured runs fn in the budget and closes it. The fulls are those that fn returned, panicked with or hid. The error is one
// that ends the search: fn's when nothing was full, that of leaks, or a full of what a measured plan doesn't widen.
func (b *Budget) measured(fn func(*Budget) error) (report Report, fulls []*scope.FullError, err error) {
	ended := false
	defer func() {
		if !ended { // fn panicked, or ended the goroutine
			_ = b.Close()
		}
	}()
	for _, st := range b.scratches {
		st.CountScopes()
	}
	failed := b.attempt(fn)
	report = b.Report()
	ended = true
	err = b.Close()
	fulls = b.fulls() // now: Close asks what was open, as the frame, what it refused
	if full, ok := errors.AsType[*scope.FullError](failed); ok && full.Budget == b.plan.Name && widens(full) {
		fulls = append(fulls, full)
	}
	switch {
	case !b.closed.Load(): // a worker is still inside
	case len(fulls) > 0:
		err = nil // what leaked follows from it
	case failed != nil || errors.Is(err, ErrClosed):
		err = failed // or fn closed it
	}
	return report, fulls, err
}

// attempt calls fn. A full that it panics with is its error, and so is a panic after a full that it hid.
func (b *Budget) attempt(fn func(*Budget) error) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if full, ok := v.(error); ok && errors.Is(full, ErrFull) {
			err = full
			return
		}
		if len(b.fulls()) == 0 {
			panic(v)
		}
		err = fmt.Errorf("panic: %v", v)
	}()
	return fn(b)
}

// fulls are the last that each arena reported, to whomever. What didn't fit into the bytes that Temp gave is none of the
// arena's.
func (b *Budget) fulls() (list []*scope.FullError) {
	for _, st := range b.stacks {
		if full := st.LastFull(); full != nil && full.Key != "" {
			list = append(list, full)
		}
	}
	return list
}

// widens says whether a measured plan gives more of what was full.
func widens(full *scope.FullError) bool {
	return !full.OnPurpose && (strings.HasSuffix(full.Key, "size") || strings.Contains(full.Key, "limits."))
}

// wideLimit is the most of each that an arena of a wide plan may have open, if it has wideRoom for each: the tables have a
// record for each too.
const (
	wideLimit = 4096
	wideRoom  = 4096
)

// wideFirst is what a wide plan has at first, and is multiplied by wideMore when it is full: a checked build has tables of
// its own for all that there may be in a budget, which takes it seconds where it is 16 GiB.
var wideFirst = wideAtFirst()

func wideAtFirst() uint64 {
	if arena_c.Checked {
		return 256 * MiB
	}
	return math.MaxUint64
}

const wideMore = 16

// wide is the plan with every part as large as an equal share of total, and with limits to match, but at least as planned.
func (p Plan) wide(total, limits uint64) Plan {
	p.Regions = slices.Clone(p.Regions)
	share := total / p.arenaCount() &^ (planEdge - 1)
	for _, part := range p.sized() {
		*part.size = max(*part.size, share)
	}
	each := int(min(share/wideRoom, limits))
	p.Limits.raiseTo(Limits{each, each, each, each})
	for i := range p.Regions {
		for _, limit := range p.Regions[i].Limits.byKey() {
			if *limit.value != 0 {
				*limit.value = max(*limit.value, each)
			}
		}
	}
	return p
}

// wideMost is the most that Measure asks for: it may well be beyond the machine's memory, since only what is used becomes
// present, and a small part of what the narrowest address space has, of 39 bits; where they have 32, a sixteenth.
// Instrumented builds touch every byte of a budget, or a shadow of it.
func wideMost() uint64 {
	if arena_c.Race || arena_c.Asan {
		return 256 * MiB
	}
	return min(16*GiB, math.MaxUint/16)
}

// wideTotal is what a wide plan may have: half of what the process's limits leave, but at most wideMost.
func wideTotal() uint64 {
	total := wideMost()
	for _, limit := range readLimits() {
		total = min(total, limit.Rest()/2)
	}
	return total
}
