package budget

import (
	"errors"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// RegionReport are the figures of a region, a buffer of the frame, or a pad. Sizes are bytes.
type RegionReport struct {
	Name       string
	Size       uint64
	Used       uint64
	Peak       uint64 // highest use since Open, temporaries included
	LoadPeak   uint64 // highest use since it was last emptied, temporaries included
	Free       uint64
	Objects    uint64        // allocations that are live
	Finalizers uint64        // that ran since Open
	PoolCap    uint64        // chunks of the pools that are open
	PoolPeak   uint64        // sum of their peaks
	Accounts   []scope.Usage `json:",omitempty"` // what subsystems hold (scope.Account)
}

// Leaks counts what should not be.
type Leaks struct {
	Scopes     int // pad scopes that were open at a Turn, a Give or Close
	Held       int // Go values that were never released
	Finalizers int // that returned an error or panicked
}

// Total is their sum.
func (l Leaks) Total() int { return l.Scopes + l.Held + l.Finalizers }

// Report are the figures of a budget.
type Report struct {
	Name       string
	Size       uint64   // bytes reserved, tables included
	Prefaulted bool     // every page was present at Open
	NotGranted []string `json:",omitempty"` // what the plan wished and the system refused: key and reason
	Regions    []RegionReport
	Beside     []RegionReport // frame and pads
	Leaks      Leaks
	Errors     []string // of finalizers whose contents a load replaced: the last 16
	ErrorCount int      // of them in all
}

const reportErrors = 16

// place is where on a pad a scope is open.
type place struct {
	pad   *scope.Stack
	depth int
}

// Report reads the figures as they are now; after Close, as they were then. Call it where the arenas may be used.
func (b *Budget) Report() Report {
	if b.closed.Load() {
		return b.last
	}
	return b.report()
}

func (b *Budget) report() Report {
	r := Report{Name: b.plan.Name, Size: b.Size(), Prefaulted: b.prefaulted, NotGranted: b.refused, ErrorCount: b.errorsN}
	for _, region := range b.regions {
		r.Regions = append(r.Regions, region.report(&r.Leaks))
	}
	for _, st := range b.stacks()[len(b.regions):] {
		r.Beside = append(r.Beside, stackReport(st.Name(), st, &r.Leaks))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, names := range b.leaks {
		r.Leaks.Scopes += len(names)
	}
	for _, err := range b.errors {
		r.Errors = append(r.Errors, err.Error())
	}
	return r
}

// Report are the figures of this region now.
func (r *OpenRegion) Report() RegionReport {
	if r.released() {
		return RegionReport{Name: r.name} // the figures are another owner's
	}
	if r.b.closed.Load() {
		return r.b.last.Regions[r.row]
	}
	return r.report(&Leaks{})
}

func (r *region) report(leaks *Leaks) RegionReport { return stackReport(r.name, r.stack, leaks) }

func stackReport(name string, st *scope.Stack, leaks *Leaks) RegionReport {
	s := st.Stats()
	leaks.Finalizers += s.Failed
	if st.Depth() == 0 {
		leaks.Held += s.Held
	}
	return RegionReport{Name: name, Size: s.Size, Used: s.Used, Peak: s.Peak, LoadPeak: s.PeakSince, Free: s.Free, Objects: s.Objects,
		Finalizers: s.Finalizers, PoolCap: s.PoolCap, PoolPeak: s.PoolPeak, Accounts: st.Accounts()}
}

// note keeps an error of old contents' finalizers for the report and gives it to the plan's hook.
func (b *Budget) note(err error) {
	if err == nil {
		return
	}
	b.mu.Lock()
	b.errorsN++
	if b.errors = append(b.errors, err); len(b.errors) > reportErrors {
		b.errors = b.errors[1:]
	}
	b.mu.Unlock()
	if b.plan.OnError != nil {
		b.plan.OnError(err)
	}
}

// countOpenPads counts each pad scope that is open, once. Pads on loan may be in use at a Turn; they count when they are
// given back, and at the end.
func (b *Budget) countOpenPads(lent bool) {
	for i, pad := range b.pads {
		if (lent || b.Pads.isFixed(i)) && pad.Depth() != 0 {
			b.countOpen(pad)
		}
	}
}

func (b *Budget) countOpen(pad *scope.Stack) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for depth := range pad.Depth() {
		at, open := place{pad, depth}, pad.At(depth)
		if b.leaked[at] != open {
			b.leaked[at] = open
			b.leaks[pad] = append(b.leaks[pad], fmt.Sprintf("%q", pad.NameAt(depth)))
		}
	}
}

// leakError says what is left open at Close.
func (b *Budget) leakError() error {
	var errs []error
	for _, st := range b.stacks() {
		if held := st.Stats().Held; held > 0 {
			errs = append(errs, fmt.Errorf("budget %q: %s: %d held values were never released", b.plan.Name, st.Name(), held))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, pad := range b.pads {
		if names := b.leaks[pad]; len(names) > 0 {
			errs = append(errs, fmt.Errorf("budget %q: %s: left open at a Turn, a Give or Close: scope %s; close each where it is opened",
				b.plan.Name, pad.Name(), strings.Join(names[:min(len(names), reportErrors)], ", ")))
		}
	}
	return errors.Join(errs...)
}

// Range is one named piece of the budget.
type Range struct {
	Arena  string // "level", "frame 0"; empty for what belongs to none
	What   string // "tables", "used", "free", "temp", "slack: edge", "slack: unplanned", "slack: guard"
	Offset uint64
	Size   uint64
}

var rangeNames = [...]string{arena_c.RangeTables: "tables", arena_c.RangeUsed: "used", arena_c.RangeFree: "free",
	arena_c.RangeTemp: "temp", arena_c.RangeEdge: "slack: edge", arena_c.RangeUnplanned: "slack: unplanned",
	arena_c.RangeGuard: "slack: guard"}

// Walk names every byte of the budget: ranges in order of address that cover it without gap or overlap, from the tables
// themselves. An error says which arena's control words contradict themselves. Cost: O(arenas * limits.scopes).
func (b *Budget) Walk() ([]Range, error) {
	if b.closed.Load() {
		return nil, fmt.Errorf("budget %q: Walk: %w", b.plan.Name, ErrClosed)
	}
	rows := uint64(len(b.regions) + len(b.frame) + len(b.pads))
	raw := make([]arena_c.Range, 6*rows+3)
	count, code := rows, arena_c.Corrupt
	if sameShape(*b.table, arena_c.Map{Rows: rows, Slots: uint64(b.plan.Limits.Scopes), Pools: uint64(b.plan.Limits.Pools),
		Guard: b.plan.guard()}) {
		count, code = b.table.Walk(b.Size(), raw)
	}
	if code == arena_c.Corrupt {
		name := "the map"
		if count < rows {
			name = b.rowName(count)
		}
		return nil, fmt.Errorf("budget %q: the control words of %s contradict themselves: something wrote where it had no right to",
			b.plan.Name, name)
	}
	ranges := make([]Range, count)
	at := uint64(0)
	for i, r := range raw[:count] {
		ranges[i] = Range{What: rangeNames[r.What], Offset: r.Offset, Size: r.Size}
		if r.Row < rows {
			ranges[i].Arena = b.rowName(r.Row)
		}
		if r.Offset != at {
			return nil, fmt.Errorf("budget %q: the walk has a gap or an overlap at offset %d", b.plan.Name, at)
		}
		at += r.Size
	}
	if at != b.Size() {
		return nil, fmt.Errorf("budget %q: the walk covers %d of %d bytes", b.plan.Name, at, b.Size())
	}
	return ranges, nil
}

func (b *Budget) rowName(row uint64) string {
	if row < uint64(len(b.regions)) {
		return b.regions[row].name
	}
	return b.stacks()[row].Name()
}

// String draws the memory map: a bar for each region, then frame and pads.
func (r Report) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "budget %s: %s\n", r.Name, sizeText(r.Size))
	line := func(x RegionReport) {
		fmt.Fprintf(&out, "  %-10s %s used %12d  peak %12d  of %12d\n", x.Name, x.bar(32), x.Used, x.Peak, x.Size)
	}
	for _, x := range r.Regions {
		line(x)
	}
	for _, x := range r.Beside {
		line(x)
	}
	fmt.Fprintf(&out, "  leaks: %d pad scopes, %d held values, %d finalizers failed\n", r.Leaks.Scopes, r.Leaks.Held, r.Leaks.Finalizers)
	return out.String()
}

// bar shows what is used (#), what was at the peak (+) and what never was (.).
func (x RegionReport) bar(width int) string {
	cells := func(n uint64) int { return int((n*uint64(width) + x.Size - 1) / x.Size) }
	used, peak := cells(x.Used), cells(max(x.Peak, x.Used))
	return "[" + strings.Repeat("#", used) + strings.Repeat("+", peak-used) + strings.Repeat(".", width-peak) + "]"
}
