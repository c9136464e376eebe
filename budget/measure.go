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

// Measure finds the bytes that each part of the plan needs for fn. It returns the report of a run
// that fitted. The report's Plan can be opened as it is. Apart from sizes and limits, this new plan
// is the old plan with its defaults. No region of it takes the [Rest], and its Size is 0: the sum
// of the parts. No region warns during Measure.
//
// Measure first runs fn in a shadow: a budget with the same parts, each arena with an equal share
// of 16 GiB, or of 256 MiB on 32-bit targets and in race and asan builds, but at most of half of
// the bytes that the process's limits leave. Limits are up to 4096, and more if fn needs more. No
// size or limit is less than planned. Then Measure runs fn in a budget whose sizes are the peaks of
// the first run. It repeats this with larger sizes until fn fits.
//
// The size of a part is the highest peak of its slots, buffers or scratch arenas. With one byte
// less, an arena would be full, with these exceptions:
//
//   - Temporaries ([scope.Scope.Temp]) begin at a cache line, so the size of a part with
//     temporaries may be up to 63 bytes more than it needs.
//   - If the use of a scratch arena depends on the order of goroutines, the size is one that
//     sufficed.
//   - An unused part gets 1 byte, the smallest size that a plan allows.
//
// The numbers of slots, buffers and workers stay. Limits are the highest MostOpen ([ArenaReport]),
// at least 1. They are as tight as sizes: one more Defer finds its table full. A region with slots,
// or with limits of its own in the old plan, gets limits of its own: the highest MostOpen of its
// slots. Plan.Limits is the highest MostOpen of all other arenas. To keep your own limits,
// overwrite both.
//
// fn runs at least twice, and again if a size or limit was too small. fn must do the same each
// time, even when variables outside the budget still have results of an earlier run. fn must end
// its goroutines, and need not close the budget. Whenever fn fills an arena or exceeds a limit,
// even if it ignores the error or panics with it, Measure tries a larger size. Measure returns any
// other error of fn, the leaks that Close finds at the end, and an [ErrFull] if even the largest
// shadow is too small.
//
// The shadow's pages aren't prefaulted, locked, huge or guarded. The shadow has no fixed base and
// sets no limit of the Go heap, so a budget with a GoHeap may be open meanwhile. In a checked build
// the shadow starts with 256 MiB, and becomes 16 times as large if fn runs out of room. In checked
// and asan builds each [scope.Builder] touches all free bytes, so measure in a release build.
//
// After Measure only the heads of the tables stay reserved on Linux, so scopes and pools that fn
// kept stay dead. The other addresses are reused, unlike the addresses of other budgets, so
// pointers that fn kept may point into other memory.
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

// measureDry is seam.MeasureDry.
func measureDry(plan Plan, play func(*Budget) error) (Report, error) {
	if err := plan.check(); err != nil {
		return Report{}, err
	}
	m := &measurement{plan: plan.resolved(), first: planSizeMax, most: planSizeMax, open: openDry,
		run: func(b *Budget) (report Report, fulls []*scope.FullError, err error) {
			err = play(b)
			if full, ok := errors.AsType[*scope.FullError](err); ok && widens(full) {
				fulls, err = append(fulls, full), nil
			}
			return b.dryReport(), fulls, err
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

type measurement struct {
	plan        Plan   // the caller's, resolved
	first, most uint64 // bytes of a wide plan at first and at most
	// each limit of an arena in a wide plan, or 1 for each wideRoom bytes if that is less
	limits uint64
	open   func(Plan) (*Budget, error)
	run    func(*Budget) (report Report, fulls []*scope.FullError, err error)
	wide   Plan
	tight  Plan // the next plan to try
}

// measureTries is the number of runs before Measure gives up, because fn differs each time.
const measureTries = 100

// runWide runs fn in a wide plan.
func (m *measurement) runWide() (Report, error) {
	shadow := m.plan
	shadow.Size, shadow.Base, shadow.GoHeap, shadow.GoHeapMax, shadow.Pages = 0, 0, 0, 0, Pages{Prefault: Off}
	shadow.Regions = slices.Clone(shadow.Regions)
	for i := range shadow.Regions { // a plan that fits to the byte would warn
		shadow.Regions[i].Warn = 0
	}
	for total := min(m.first, m.most); ; {
		m.wide = shadow.wide(total, m.limits)
		b, err := m.open(m.wide)
		if err != nil && total >= planEdge { // RLIMIT_AS or the kernel's overcommit refuses it
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
				return Report{}, fmt.Errorf("budget %q: Measure: full even in a plan that is far wider: %w",
					m.plan.Name, full)
			}
		}
		total = wider
	}
}

// narrow runs fn in a tight plan, and in larger ones until it fits.
func (m *measurement) narrow(tight Plan) (report Report, err error) {
	defer func() {
		if err == nil {
			report.Plan.Base, report.Plan.GoHeap, report.Plan.Pages = m.plan.Base, m.plan.GoHeap, m.plan.Pages
			report.Plan.GoHeapMax = m.plan.GoHeapMax
			for i, r := range m.plan.Regions {
				report.Plan.Regions[i].Warn = r.Warn
			}
		}
	}()
	m.tight = tight
	var best Report // the report before lower
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
				return Report{}, fmt.Errorf("budget %q: Measure: full with sizes that sufficed before; fn must "+
					"do the same each time: %w", m.plan.Name, full)
			}
		}
	}
	return Report{}, fmt.Errorf("budget %q: Measure: no sizes were found in %d runs; fn must do the same each time",
		m.plan.Name, measureTries)
}

// raise enlarges the part of the next plan that was full. It returns false if the part already had
// the widest plan's size.
func (m *measurement) raise(full *scope.FullError) bool {
	if m.tight.raiseLimit(full, full.Need) {
		return true
	}
	wide := m.wide.sized()
	for i, part := range m.tight.sized() {
		if part.key == full.Key && full.Size < *wide[i].size {
			// another error of this run has raised it
			if line := lineEnd(full.Size); *part.size != full.Size {
			} else if line > full.Size { // temporaries end there, which may suffice
				*part.size = min(line, *wide[i].size)
			} else {
				*part.size = min(max(full.Size+1, full.Need), *wide[i].size)
			}
			return true
		}
	}
	return false
}

// lower reduces the next plan to the peaks of a run, if a part has more than its peak and
// temporaries need. That happens because the size in a full error may include padding.
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

// raiseLimit raises the limit of the table that was full. It returns false if the error is of
// another kind or the limit is the largest already. pre: p owns its regions.
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

// measured runs fn in the budget and closes it. It returns the full errors that fn returned,
// panicked with or ignored. An error ends the search: fn's when no arena was full, leaks, or a full
// error that no wider plan prevents.
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
	fulls = b.fulls() // after Close, which collects the errors of open scopes
	if full, ok := errors.AsType[*scope.FullError](failed); ok && full.Budget == b.plan.Name && widens(full) {
		fulls = append(fulls, full)
	}
	switch {
	case !b.closed.Load(): // a worker is still inside
	case len(fulls) > 0:
		err = nil // the leaks follow from the full error
	case failed != nil || errors.Is(err, ErrClosed):
		err = failed // or fn closed it
	}
	return report, fulls, err
}

// attempt calls fn. It returns a full error that fn panics with, and any panic after a full error
// that fn ignored.
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

// fulls returns the last full error that each arena reported. An error without a Key isn't the
// arena's: the temporaries of a Temp were full.
func (b *Budget) fulls() (list []*scope.FullError) {
	for _, st := range b.stacks {
		if full := st.LastFull(); full != nil && full.Key != "" {
			list = append(list, full)
		}
	}
	return list
}

// widens reports whether a measured plan can widen the part that was full.
func widens(full *scope.FullError) bool {
	return !full.OnPurpose && (strings.HasSuffix(full.Key, "size") || strings.Contains(full.Key, "limits."))
}

// wideLimit is each limit of an arena in a wide plan. An arena with less than wideRoom bytes for
// each has lower limits, because the tables also have a record for each.
const (
	wideLimit = 4096
	wideRoom  = 4096
)

// wideFirst is the bytes of a wide plan at first; wideMore multiplies it when fn runs out of room.
// A checked build keeps tables for every byte of a budget: those of 16 GiB take seconds.
var wideFirst = wideAtFirst()

func wideAtFirst() uint64 {
	if arena_c.Checked {
		return 256 * MiB
	}
	return math.MaxUint64
}

const wideMore = 16

// wide returns the plan with an equal share of total for each arena, and with limits to match. No
// size or limit is less than planned.
func (p Plan) wide(total, limits uint64) Plan {
	p.Regions = slices.Clone(p.Regions)
	share := total / max(1, p.arenaCount()) &^ (planEdge - 1)
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

// wideMost is the maximum size of a wide plan in bytes. It may exceed the machine's memory, since
// only used pages become present. It is a small part of the narrowest address space of 39 bits, and
// a sixteenth of one of 32 bits. Instrumented builds touch every byte of a budget, or a shadow of
// it.
func wideMost() uint64 {
	if arena_c.Race || arena_c.Asan {
		return 256 * MiB
	}
	return min(16*GiB, math.MaxUint/16)
}

// wideTotal returns the bytes of a wide plan: half of the bytes that the process's limits leave, at
// most wideMost.
func wideTotal() uint64 {
	total := wideMost()
	for _, limit := range readLimits() {
		total = min(total, limit.Rest()/2)
	}
	return total
}
