package budget

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform/jsonfile"
)

// Check returns the errors of the plan, each on a line with its key. An error may hide others that
// depend on the same values, such as sums:
//
//	plan "handheld": regions[2].size: 0 bytes; give a size
//
// For a plan that a 64-bit target can lay out, Check returns nil, or an error that matches
// [ErrWarning]. It doesn't check that the machine has enough memory, or that a 32-bit target has
// enough addresses; Open does.
func (p Plan) Check() error {
	if err := p.check(); err != nil {
		return err
	}
	var errs []error
	for _, warning := range p.warnings() {
		errs = append(errs, fmt.Errorf("plan %s: %s: %w: %s", jsonfile.Quote(p.Name), warning.key, ErrWarning,
			warning.text))
	}
	return errors.Join(errs...)
}

// ErrWarning matches, with errors.Is, the error that [Plan.Check] returns for a valid plan with a
// likely mistake. Open accepts such a plan, and [Plan.String] shows the warning. The mistakes are:
//
//   - a region that stands on one with slots: a load, rewind or release of any slot empties the
//     region, and all its slots
//   - an expected size above the size of its part
var ErrWarning = errors.New("warning")

// check is Check without the warnings.
func (p Plan) check() error {
	var errs []error
	for _, fault := range p.faults() {
		errs = append(errs, fmt.Errorf("plan %s: %s: %s", jsonfile.Quote(p.Name), fault.key, fault.text))
	}
	return errors.Join(errs...)
}

func (p Plan) warnings() (f planFaults) {
	for i, r := range p.Regions {
		if on := p.below(i); on >= 0 && p.Regions[on].Slots != 0 {
			all := ""
			if r.Slots != 0 {
				all = "all slots of "
			}
			f.add(fmt.Sprintf("regions[%d]", i), "each Load, Rewind or Release of a slot of %[2]q also empties "+
				"%[3]s%[1]q; list %[1]q before %[2]q, or set its on", r.Name, p.Regions[on].Name, all)
		}
	}
	for i, e := range p.Expected {
		size, _ := p.sizeOf(e.Part)
		for _, point := range e.points() {
			if *point.value > size {
				f.add(fmt.Sprintf("expected[%d].%s", i, point.key), "%s, but %s has %s", sizeInPlan(*point.value),
					e.Part, sizeInPlan(size))
			}
		}
	}
	return f
}

type planFault struct{ key, text string }

type planFaults []planFault

func (f *planFaults) add(key, format string, args ...any) {
	*f = append(*f, planFault{key, fmt.Sprintf(format, args...)})
}

const (
	planManyText  = "%d of them; a plan has at most %d"
	planLargeText = "%s; a budget has less than %s, tables included"
)

func (p Plan) faults() planFaults {
	var f planFaults
	f.name("name", p.Name)
	f.whole(p)
	f.regions(p.Regions)
	f.trims(p)
	f.siblings("frame.buffers", p.Frame.Buffers, planBuffersMin, planBuffersMax, frameSizeKey, p.Frame.Size)
	f.siblings("scratch.workers", p.Scratch.Workers, 1, planWorkersMax, scratchSizeKey, p.Scratch.Size)
	if each := p.Scratch.Each; each < 0 || each > planEachMax {
		f.add("scratch.each", "%d is out of range: give 0 (the default) or 1 to %d", each, planEachMax)
	} else if each != 0 && p.Scratch.Workers == 0 {
		f.add("scratch.each", "%d, but scratch.workers is 0; give both or neither", each)
	}
	f.limits("limits.", p.Limits, "the default")
	for _, page := range p.Pages.byKey() {
		if demand := *page.value; demand != Default && demand != Off && !demand.asks() {
			f.add("pages."+page.key, `%s is no demand: give "off", "wished" or "required"`,
				jsonfile.Quote(string(demand)))
		}
	}
	if p.GoHeap != 0 && p.GoHeap != Rest && (p.GoHeap < planHeapMin || p.GoHeap > planHeapMax) {
		f.add("go_heap", "%s is out of range: give 0 (no limit), \"rest\", or %s to %s", sizeInPlan(p.GoHeap),
			sizeInPlan(planHeapMin), sizeInPlan(planHeapMax))
	}
	switch size := sizeInPlan(p.GoHeapMax); {
	case p.GoHeapMax == 0:
	case p.GoHeapMax < planHeapMin || p.GoHeapMax > planHeapMax:
		f.add("go_heap_max", "%s is out of range: give 0 (no bound), or %s to %s", size, sizeInPlan(planHeapMin),
			sizeInPlan(planHeapMax))
	case p.GoHeap == 0:
		f.add("go_heap_max", `%s bounds a go_heap of "rest", and there is none`, size)
	case p.GoHeap != Rest && p.GoHeap > p.GoHeapMax:
		f.add("go_heap_max", "%s is less than go_heap, %s", size, sizeInPlan(p.GoHeap))
	}
	f.cHeap(p.CHeap)
	f.quotas(p)
	f.expected(p)
	f.sums(p)
	return f
}

func (f *planFaults) cHeap(c CHeapPlan) {
	key := cHeapKey
	if c != (CHeapPlan{Size: c.Size}) {
		key += ".size"
	}
	isOdd := c.Profile != 0 && c.Profile != NoProfile && (c.Profile < planProfileMin || c.Profile > planCHeapMax)
	switch {
	case c == CHeapPlan{}:
		return
	case c.Size < planCHeapMin || c.Size > planCHeapMax:
		f.add(key, "%s is out of range: give %s to %s", sizeInPlan(c.Size), sizeInPlan(planCHeapMin),
			sizeInPlan(planCHeapMax))
	case c.Runtime != 0 && (c.Runtime < planRuntimeMin || c.Runtime > c.Size/2):
		f.add(cHeapKey+".runtime", "%s is out of range: give 0 (the default, %s), or %s to half of the size, %s",
			sizeInPlan(c.Runtime), sizeInPlan(planRuntimeUsual), sizeInPlan(planRuntimeMin), sizeInPlan(c.Size/2))
	case c.runtime() > c.Size/2:
		f.add(key, "%s is too small: %s of it are for Go's runtime; give %s or more, or a c_heap.runtime of %s to %s",
			sizeInPlan(c.Size),
			sizeInPlan(c.runtime()), sizeInPlan(2*c.runtime()), sizeInPlan(planRuntimeMin), sizeInPlan(c.Size/2))
	case isOdd: // the samples of such a profile may not fit
	case c.Reserve > c.Size/2 || c.Reserve+c.runtime()+c.process().Samples() >= c.Size:
		f.add(cHeapKey+".reserve", "%s; at most half of the size, %s, and less than the %s that c_heap.runtime and "+
			"the profile leave", sizeInPlan(c.Reserve), sizeInPlan(c.Size/2),
			sizeInPlan(c.Size-c.runtime()-c.process().Samples()))
	}
	if isOdd {
		f.add(cHeapKey+".profile", "%s is out of range: give 0 (the default, %s), \"off\", or %s to %s",
			sizeInPlan(c.Profile), sizeInPlan(planProfileUsual), sizeInPlan(planProfileMin), sizeInPlan(planCHeapMax))
	}
	if c.Fronts < 0 || c.Fronts > planFrontsMax {
		f.add(cHeapKey+".fronts", "%d is out of range: give 0 (the default) or 1 to %d", c.Fronts, planFrontsMax)
	}
	if c.Trim != 0 && c.Trim < planTrimMin {
		f.add(cHeapKey+".trim", "%v is out of range: give 0 (never) or %v or more", c.Trim, planTrimMin)
	}
	f.warn(cHeapKey+".warn", c.Warn)
}

func (f *planFaults) quotas(p Plan) {
	if n := len(p.Quotas); n > planQuotasMax {
		f.add("quotas", planManyText, n, planQuotasMax)
	}
	first := map[string]bool{}
	for _, q := range p.Quotas {
		key := q.key()
		f.name(key, q.Name)
		isPart := slices.ContainsFunc(p.Regions, func(r RegionPlan) bool { return r.Name == q.Name })
		switch {
		case isPart || slices.Contains(planPartNames, q.Name):
			f.add(key, "%q is the name of another part; choose another name", q.Name)
		case first[q.Name]:
			f.add(key, "%s is the name of another quota already", jsonfile.Quote(q.Name))
		}
		first[q.Name] = true
		if q.Size == 0 || q.Size > planHeapMax {
			f.add(key+".size", "%s is out of range: give 1 to %s", sizeInPlan(q.Size), sizeInPlan(planHeapMax))
		}
		isIn := slices.ContainsFunc(p.Regions, func(r RegionPlan) bool { return r.Name == q.In })
		switch {
		case q.In == "" || q.In == quotaDevice || isIn || q.In == "go_heap" && p.GoHeap != 0 ||
			q.In == cHeapKey && p.CHeap.Size != 0:
		default:
			f.add(key+".in", "%s is no part of the plan: give %q, a region, or the go_heap or c_heap that it has",
				jsonfile.Quote(q.In), quotaDevice)
		}
		if q.Tenants < 0 || q.Tenants > planLimitMax {
			f.add(key+".tenants", "%d is out of range: give 0 (no tenants) or 1 to %d", q.Tenants, planLimitMax)
		}
		switch {
		case q.Tenant > q.Size:
			f.add(key+".tenant", "%s is more than the size, %s", sizeInPlan(q.Tenant), sizeInPlan(q.Size))
		case q.Tenant != 0 && q.Tenants == 0:
			f.add(key+".tenant", "%s, but %s.tenants is 0; give both or neither", sizeInPlan(q.Tenant), key)
		}
		if w := q.Waiters; w < 0 || w > 2*planLimitMax || w != 0 && w <= q.Tenants {
			f.add(key+".waiters", "%d is out of range: give 0 (the default), or %d (one more than tenants) to %d", w,
				q.Tenants+1, 2*planLimitMax)
		}
		if q.Piece&(q.Piece-1) != 0 || q.Piece != 0 && (q.Size%q.Piece != 0 || q.Tenant%q.Piece != 0) {
			f.add(key+".piece", "%s isn't a power of two that divides size and tenant", sizeInPlan(q.Piece))
		}
		f.warn(key+".warn", q.Warn)
	}
	if sum := p.inGoHeap(); p.GoHeap != 0 && p.GoHeap != Rest && sum > p.GoHeap {
		f.add("go_heap", "%s is less than the quotas in it, %s; raise go_heap, or lower the quotas",
			sizeInPlan(p.GoHeap), sizeInPlan(sum))
	}
}

// inGoHeap returns the bytes of the quotas whose memory is the Go heap's.
func (p Plan) inGoHeap() (bytes uint64) {
	for _, q := range p.Quotas {
		if q.In == "go_heap" {
			bytes += q.Size
		}
	}
	return bytes
}

// holdQuotas raises a Go heap that is a number to the quotas in it.
func (p *Plan) holdQuotas() {
	if p.GoHeap != 0 && p.GoHeap != Rest {
		p.GoHeap = max(p.GoHeap, p.inGoHeap())
	}
}

// planPartNames are the names of parts that aren't regions.
var planPartNames = []string{"frame", "scratch", cHeapKey, "go_heap", quotaDevice}

const quotaDevice = "device"

func (q QuotaPlan) key() string { return "quotas." + q.Name }

func (f *planFaults) warn(key string, share Percent) {
	if share < 0 || share > 99 {
		f.add(key, "%d%% is out of range: give 0 (none) or 1%% to 99%%", share)
	}
}

// expected checks that each part or label of the plan has one expectation at most, of a size.
func (f *planFaults) expected(p Plan) {
	if n := len(p.Expected); n > planExpectMax {
		f.add("expected", planManyText, n, planExpectMax)
	}
	first := map[[2]string]int{}
	for i, e := range p.Expected {
		key := fmt.Sprintf("expected[%d]", i)
		subject := [2]string{e.Part, e.Label}
		if _, known := p.sizeOf(e.Part); !known {
			f.add(key+".part", "%s is no part of the plan: give a region, or the frame, scratch or c_heap that it "+
				"has", jsonfile.Quote(e.Part))
		} else if other, twice := first[subject]; twice {
			f.add(key, "the same part and label as expected[%d]", other)
		} else {
			first[subject] = i
		}
		if !utf8.ValidString(e.Label) {
			f.add(key+".label", "not UTF-8")
		}
		if e.Most() == 0 {
			f.add(key, "no size; give boot, load or play")
		}
		f.warn(key+".tolerance", e.Tolerance)
	}
}

// sizeOf returns the size of a part's arenas. A region with the Rest has [Rest]; known reports
// whether the plan has the part.
func (p Plan) sizeOf(part string) (size uint64, known bool) {
	if part == cHeapKey {
		return p.CHeap.Size, p.CHeap.Size != 0
	}
	for _, s := range p.sized() {
		if s.part == part {
			return *s.size, s.count != 0
		}
	}
	return 0, false
}

// whole checks the size and the address of the budget; sums checks that the parts fit.
func (f *planFaults) whole(p Plan) {
	rest := p.rest()
	switch {
	case p.Size > planSizeMax:
		f.add("size", planLargeText, sizeInPlan(p.Size), sizeInPlan(planSizeMax))
	case p.Size == 0 && rest >= 0:
		f.add("size", `0, but %s is "rest"; give the total size`, regionSizeKey(rest))
	}
	switch {
	case p.Base%planEdge != 0:
		f.add("base", "%s isn't a multiple of %s (%s)", addressText(p.Base), sizeInPlan(planEdge),
			addressText(planEdge))
	case p.Base >= planBaseEnd:
		f.add("base", "%s; addresses end at %s", addressText(p.Base), addressText(planBaseEnd))
	case p.Base == 0 && p.Pages.Base.asks():
		f.add("base", "0, but pages.base is %s; give both or neither", p.Pages.Base)
	}
}

// trims refuses trims that could never return a page to the system.
func (f *planFaults) trims(p Plan) {
	const keeps = `%v, but pages.%s is "required", which keeps every page present; give "off" there, or no trim`
	for _, page := range []keyed[Demand]{{"prefault", p.Pages.Prefault}, {"lock", p.Pages.Lock}} {
		if page.value != Required {
			continue
		}
		for i, r := range p.Regions {
			if r.Trim == TrimEmpty {
				f.add(fmt.Sprintf("regions[%d].trim", i), keeps, `"empty"`, page.key)
			}
		}
		if p.CHeap.Trim != 0 {
			f.add(cHeapKey+".trim", keeps, p.CHeap.Trim, page.key)
		}
	}
}

func (f *planFaults) regions(regions []RegionPlan) {
	if n := len(regions); n > planRegionsMax {
		f.add("regions", planManyText, n, planRegionsMax)
	}
	first, rest := make(map[string]int, len(regions)), -1
	for i, r := range regions {
		key := fmt.Sprintf("regions[%d]", i)
		f.name(key+".name", r.Name)
		if r.Name == "frame" || r.Name == "scratch" || r.Name == cHeapKey {
			f.add(key+".name", "%q is the name of the %s; choose another name", r.Name, r.Name)
		}
		if other, twice := first[r.Name]; !twice {
			first[r.Name] = i
		} else if r.Name != "" {
			f.add(key+".name", "%s is the name of regions[%d] already", jsonfile.Quote(r.Name), other)
		}
		switch {
		case r.Size != Rest:
			f.size(key+".size", r.Size)
		case rest < 0:
			rest = i
		default:
			f.add(key+".size", `"rest", like %s; only one region may be "rest"`, regionSizeKey(rest))
		}
		if r.On != "" && r.On != Root {
			f.on(key+".on", regions, i)
		}
		if r.Size == Rest && r.Slots != 0 {
			f.add(key+".size", `"rest", but slots is %d; slots have a size of their own`, r.Slots)
		}
		if r.Slots < 0 || r.Slots > planSlotsMax {
			f.add(key+".slots", "%d is out of range: give 0 (no slots) or 1 to %d", r.Slots, planSlotsMax)
		}
		switch {
		case r.Waiters < 0 || r.Waiters > planLimitMax:
			f.add(key+".waiters", "%d is out of range: give 0 (none) or 1 to %d", r.Waiters, planLimitMax)
		case r.Waiters != 0 && r.Slots == 0:
			f.add(key+".waiters", "%d, but slots is 0; goroutines wait for slots", r.Waiters)
		}
		f.limits(regionLimitsKey(i), r.Limits, "the plan's")
		f.warn(key+".warn", r.Warn)
		if r.Trim != "" && r.Trim != TrimEmpty {
			f.add(key+".trim", `%s is no moment of trimming: give "empty" or none`, jsonfile.Quote(string(r.Trim)))
		}
		if !utf8.ValidString(r.Note) {
			f.add(key+".note", "not UTF-8")
		}
	}
}

// on checks the name of the region that regions[i] stands on.
func (f *planFaults) on(key string, regions []RegionPlan, i int) {
	name := jsonfile.Quote(regions[i].On)
	on := slices.IndexFunc(regions, func(r RegionPlan) bool { return r.Name == regions[i].On })
	switch {
	case regions[i].On == "frame" || regions[i].On == "scratch" || regions[i].On == cHeapKey:
		f.add(key, "%s is no region; give the name of a region before this one", name)
	case on < 0:
		var names []string
		for _, r := range regions[:i] {
			names = append(names, r.Name)
		}
		f.add(key, "no region has the name %s; those before this one are %s", name, orNone(names))
	case on == i:
		f.add(key, "%s is this region; give the name of a region before it", name)
	case on > i:
		f.add(key, "%s is regions[%d], after this one; list it before", name, on)
	case regions[on].Slots != 0:
		f.add(key, "%s has slots, which on can't name; give the region that %s stands on, or %q", name, name, Root)
	case !(Plan{Regions: regions}).standsOn(i-1, on):
		f.add(key, "regions[%d] is listed between, and doesn't stand on %s; list this region before it", i-1, name)
	}
}

func (f *planFaults) name(key, name string) {
	if len(name) < 1 || len(name) > planNameMax {
		f.add(key, "%s has %d bytes; a name has 1 to %d", jsonfile.Quote(name), len(name), planNameMax)
		return
	}
	for i := range len(name) {
		if c := name[i]; !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			f.add(key, "%q has %q; a name has a-z, 0-9, _ and - only", name, name[i:i+1])
			return
		}
	}
}

func (f *planFaults) limits(prefix string, limits Limits, zero string) {
	for _, l := range limits.byKey() {
		if *l.value < 0 || *l.value > planLimitMax {
			f.add(prefix+l.key, "%d is out of range: give 0 (%s) or 1 to %d", *l.value, zero, planLimitMax)
		}
	}
}

func (f *planFaults) size(key string, size uint64) {
	switch {
	case size == 0:
		f.add(key, "0 bytes; give a size")
	case size > planSizeMax:
		f.add(key, planLargeText, sizeInPlan(size), sizeInPlan(planSizeMax))
	}
}

// siblings checks a count of equal parts: 0 without a size, or more with one.
func (f *planFaults) siblings(countKey string, count, least, most int, sizeKey string, size uint64) {
	switch {
	case count != 0 && (count < least || count > most):
		f.add(countKey, "%d is out of range: give 0 (none) or %d to %d", count, least, most)
	case count == 0 && size != 0:
		f.add(countKey, "0, but %s is %s; give both or neither", sizeKey, sizeInPlan(size))
	}
	if count != 0 {
		f.size(sizeKey, size)
	}
}

// sums checks the total of the parts and their tables, unless one of them is invalid itself.
func (f *planFaults) sums(p Plan) {
	if slices.ContainsFunc(*f, func(fault planFault) bool { return planSummand(fault.key) }) {
		return
	}
	if count := p.arenaCount(); count > planArenasMax {
		most := 0
		for i, r := range p.Regions {
			if r.Slots > p.Regions[most].Slots {
				most = i
			}
		}
		f.add(fmt.Sprintf("regions[%d].slots", most), "%d; the plan has %d arenas (slots, buffers, scratch), "+
			"at most %d; lower the slots", p.Regions[most].Slots, count, planArenasMax)
	}
	rest := p.rest()
	// no sum can reach 64 bits
	least, size, need, tables := p.total(), planRound(min(p.Size, planSizeMax)), p.partsText(), p.tablesSize()
	if rest >= 0 {
		least += planEdge
		need += fmt.Sprintf(", and regions[%d], which has the rest, %s or more", rest, sizeInPlan(planEdge))
	}
	switch {
	case least+tables >= planSizeMax:
		f.add("regions", "the parts need %s, and their tables %s; a budget has less than %s", need,
			sizeInPlan(tables), sizeInPlan(planSizeMax))
	case p.Size <= planSizeMax && size+tables >= planSizeMax:
		f.add("size", "%s, and the tables need %s; a budget has less than %s", sizeInPlan(p.Size), sizeInPlan(tables),
			sizeInPlan(planSizeMax))
	case p.Size == 0:
	case rest >= 0 && least > size:
		f.add("size", "%s leaves no rest: the parts need %s; %s more would do", sizeInPlan(p.Size), need,
			sizeInPlan(least-p.Size))
	case rest < 0 && least > p.Size:
		f.add("size", "%s is less than the parts need: %s", sizeInPlan(p.Size), need)
	}
	if p.Base < planBaseEnd && p.Base != 0 && max(least, size) > planBaseEnd-p.Base {
		f.add("base", "%s; the parts need %s from there, and addresses end at %s", addressText(p.Base),
			sizeInPlan(max(least, size)), addressText(planBaseEnd))
	}
}

// planSummand reports whether the sum depends on the key.
func planSummand(key string) bool {
	switch key {
	case "regions", "frame.buffers", "scratch.workers", "scratch.each":
		return true
	}
	if strings.HasPrefix(key, "quotas.") {
		return false
	}
	return strings.HasSuffix(key, ".size") && key != cHeapKey+".size" || strings.HasSuffix(key, ".slots") ||
		strings.Contains(key, "limits.")
}

// partsText returns the total and its summands for a message.
func (p Plan) partsText() string {
	sum, guards := p.sum(p.sized()...), ""
	if sum.guards != 0 {
		guards = ", guards " + sizeInPlan(sum.guards)
	}
	return fmt.Sprintf("%s (regions %s, frame %s, scratch %s%s; each rounded up to %s)", sizeInPlan(sum.whole),
		sizeInPlan(p.ofKind(arena_c.KindRegion)), sizeInPlan(p.ofKind(arena_c.KindFrame)),
		sizeInPlan(p.ofKind(arena_c.KindScratch)), guards, sizeInPlan(planEdge))
}
