package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// tell prints the maps played, whether they fitted in the plan, and the plan's slack.
func (r *Result) tell(out io.Writer, verbose bool) {
	var refused, bad []string
	for _, l := range r.Levels {
		switch {
		case l.bad():
			bad = append(bad, l.Name)
		case l.Error != "":
			refused = append(refused, l.Name)
		}
	}
	played := len(r.Levels) - len(refused) - len(bad)
	fmt.Fprintf(out, "Frogpond played %s of %s by itself in %.1f s:\n",
		many(played, "map"), r.files(), r.Seconds)
	fmt.Fprintf(out, "on each %s and up to %s (35 are a second of the game), with %s.\n",
		many(r.options.bots, "player"), many(r.options.Ticks, "tick"), many(r.Workers, "worker"))
	fmt.Fprintf(out, "It is the inside of a game server.\n\n")

	fmt.Fprintf(out, "Its memory is the plan %q: %s, taken once, at the start. %s\n",
		r.Report.Plan.Name, budget.SizeText(r.BudgetBytes), r.base())
	if len(refused) > 0 {
		fmt.Fprintf(out, "Not run, as the plan has no room for it: %s.\n", strings.Join(refused, ", "))
	} else {
		fmt.Fprintln(out, "Everything fitted.")
	}
	if len(bad) > 0 {
		fmt.Fprintf(out, "Not run, as it can't be loaded: %s.\n", strings.Join(bad, ", "))
	}
	fmt.Fprintf(out, "%s\n%s\n%s\n", r.kept(), r.during(), r.again())
	r.slack(out)
	if verbose {
		r.list(out)
		return
	}
	fmt.Fprintf(out, "\n-v lists each map, with the hash of its last state; "+
		"-json says all that was measured.\n")
	fmt.Fprintf(out, "frogpond serve lets others play it over the network, and frogpond bots sends players.\n")
}

// files returns the names of the files played, without their folders.
func (r *Result) files() string {
	var names []string
	for name := range strings.SplitSeq(r.WAD, ",") {
		if name == doom.Builtin {
			name = "its own"
		}
		names = append(names, filepath.Base(name))
	}
	return strings.Join(names, " and ")
}

// base returns a sentence about the budget's address: whether it is the one in the plan.
func (r *Result) base() string {
	if r.Report.Plan.Base == 0 {
		return "It begins where there was room, at " + r.BudgetBase + "."
	}
	for _, refusal := range r.Report.NotGranted {
		if strings.HasPrefix(refusal, "pages.base: ") {
			return fmt.Sprintf("It begins at %s; the plan's wish wasn't granted: %s.", r.BudgetBase, refusal)
		}
	}
	return "It begins at " + r.BudgetBase +
		",\nas the plan wishes, so that its pointers are the same in every run."
}

// kept returns a sentence on leaks and on the walks of the budget.
func (r *Result) kept() string {
	text := "Nothing leaked"
	if r.Leaks > 0 {
		text = fmt.Sprintf("%d leaks", r.Leaks)
	}
	if r.IdentityOK {
		return text + ", and each walk of the budget accounted for every byte."
	}
	return fmt.Sprintf("%s, and a walk of the budget did not account for every byte: %v", text, r.walk)
}

// during returns sentences on Go allocations and page faults during play, and on the times of
// ticks.
func (r *Result) during() string {
	allocations, missing, longest := uint64(0), 0, uint32(0)
	middles := []uint32{}
	for _, l := range r.Levels {
		if l.GoAllocs != nil {
			allocations += *l.GoAllocs
		}
		if l.BudgetFaults != nil {
			missing += *l.BudgetFaults
		}
		if l.TickTime.Max != nil {
			longest = max(longest, *l.TickTime.Max)
			middles = append(middles, *l.TickTime.P50)
		}
	}
	text := fmt.Sprintf("During play the Go heap had %s, and %s missing",
		many(int(allocations), "allocation"), pages(missing))
	if len(middles) == 0 {
		return text + "."
	}
	slices.Sort(middles)
	return fmt.Sprintf("%s.\nA tick usually took %s µs, the longest %s µs.", text,
		micros(&middles[len(middles)/2]), micros(&longest))
}

// again returns a sentence on the games that were played again, or "" if there are none.
func (r *Result) again() string {
	desyncs, rollbacks, resimulated, compared := 0, 0, 0, 0
	for _, l := range r.Levels {
		if l.Desyncs == nil {
			continue
		}
		compared++
		desyncs += *l.Desyncs
		if l.Rollbacks != nil {
			rollbacks += *l.Rollbacks
			resimulated += *l.Resimulated
		}
	}
	if compared == 0 {
		return ""
	}
	text := "Each tick was played twice from the same state: "
	if r.options.rollback != 0 {
		text = fmt.Sprintf("With inputs up to %s late it went back %s, and played %s again: ",
			many(r.options.rollback-1, "tick"), many(rollbacks, "time"), many(resimulated, "tick"))
	}
	return text + differ(desyncs) + ".\n"
}

func differ(desyncs int) string {
	switch desyncs {
	case 0:
		return "all states are equal"
	case 1:
		return "1 state differs"
	}
	return fmt.Sprintf("%d states differ", desyncs)
}

// slack prints each part of the plan with a bar of its peak use in this run.
func (r *Result) slack(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "part\tplanned\tthis run\tfree\t")
	line := func(name string, planned, needed uint64) {
		const width = 32
		filled := min(width, int((needed*width+planned-1)/planned))
		fmt.Fprintf(t, "%s\t%s\t%s\t%d %%\t  [%s%s]\n", name, budget.SizeText(planned),
			budget.SizeText(needed), 100*(planned-min(needed, planned))/planned,
			strings.Repeat("#", filled), strings.Repeat(".", width-filled))
	}
	rest := r.BudgetBytes
	for _, p := range r.Report.Parts() {
		name := p.Name
		if n := len(p.Arenas); n > 1 || p.Kind == "frame" || p.Kind == "scratch" {
			name = fmt.Sprintf("%s, each of %d", p.Name, n)
		}
		line(name, p.Value("arena_size"), p.Value("arena_peak"))
		rest -= p.Value("size")
	}
	fmt.Fprintf(t, "tables, edges\t%s\t\t\t\n", budget.SizeText(rest))
	if r.Report.Plan.GoHeap > 0 {
		line("Go heap, outside", r.Report.Plan.GoHeap, r.GoHeapPeak)
	}
	t.Flush()
	if r.ResidentMax != nil {
		fmt.Fprintf(out, "The whole process had at most %s resident, in a %s build.\n",
			budget.SizeText(*r.ResidentMax), r.Build)
	}
	r.sizedFor(out)
}

// sizedFor prints the notes of the plan's regions. Those of the program's own plan name the run
// that each size is from.
func (r *Result) sizedFor(out io.Writer) {
	var notes bytes.Buffer
	t := tabwriter.NewWriter(&notes, 0, 0, 2, ' ', 0)
	for _, region := range r.Report.Plan.Regions {
		if region.Note != "" {
			fmt.Fprintf(t, "  %s\t%s\n", region.Name, region.Note)
		}
	}
	t.Flush()
	head := "The notes of the plan:"
	if r.options.plan == "" {
		head = "The plan is the highest use in these recorded runs, and a tenth more:"
	}
	if notes.Len() != 0 {
		fmt.Fprintf(out, "%s\n%s", head, notes.Bytes())
	}
}

func (r *Result) list(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nmap\tticks\thash\tload\tused\tpeak\tfrogs\tof\tp50\tp99\tmax\t"+
		"Go allocations\tpages missing\t")
	for i := range r.Levels {
		l := &r.Levels[i]
		if l.Error != "" {
			fmt.Fprintf(t, "%s\tnot run%s\n", l.Name, strings.Repeat("\t", 12))
			continue
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%d µs\t%s\t%s\t%d\t%d\t%s µs\t%s µs\t%s µs\t%s\t%s\t\n",
			l.Name, *l.Ticks, *l.Hash, *l.LoadMicros,
			budget.SizeText(*l.Used), budget.SizeText(*l.Peak), *l.PoolPeak, *l.PoolCapacity,
			micros(l.TickTime.P50), micros(l.TickTime.P99),
			micros(l.TickTime.Max), show(l.GoAllocs), show(l.BudgetFaults))
	}
	t.Flush()
}

// many returns n and the noun, in the plural unless n is 1.
func many(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func pages(n int) string {
	if n == 1 {
		return "1 page of the budget was"
	}
	return fmt.Sprintf("%d pages of the budget were", n)
}

// show returns a metric, or a dash if it was not measured.
func show[T any](v *T) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}

func micros(nanoseconds *uint32) string {
	if nanoseconds == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(*nanoseconds)/1000)
}
