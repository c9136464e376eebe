package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
)

// Reconfigure moves the boundaries of empty regions, so that the regions get the sizes of the plan.
// It moves all regions from the lowest to the highest one whose size differs, within the bytes that
// these regions have together. Apart from the notes and Plan.Size, everything else stays. To give
// the next world another shape, Rewind these regions, Reconfigure, and Load.
//
// Reconfigure fails, and changes nothing, if one of these regions isn't empty, during a load, if
// the plan differs in more than the sizes and notes of regions, or if these sizes, each rounded up
// to 64 KiB, add up to another total. It doesn't compare the plan's Size, expectations and
// functions. It waits for workers that pin one of these regions ([Reader]) until ctx ends. These
// regions may get new addresses, and their peaks are reset. If Open made pages present, Reconfigure
// also makes pages present that were padding. If the system refuses these pages, Reconfigure
// returns an error, but the new sizes are in force. Cost: that of an Open for these regions'
// tables.
func (b *Budget) Reconfigure(ctx context.Context, plan Plan) error {
	if err := plan.check(); err != nil {
		return err
	}
	plan = plan.resolved()
	if plan.GoHeap == Rest && b.follow.layout.goRest {
		plan.GoHeap = b.plan.GoHeap // as of Open
	}
	if err := b.onlySizesDiffer(plan); err != nil {
		return err
	}
	l, err := b.begin(Region{}, "Reconfigure", b.along(nil))
	if err != nil {
		return err
	}
	defer b.end(l)
	changed := b.changed(plan)
	if len(changed) == 0 {
		return nil
	}
	edges, err := plan.layout()
	if err != nil {
		return err
	}
	parts := edges.parts()
	if err := b.sealRefuses(changed, parts); err != nil {
		return err
	}
	for _, r := range changed {
		if r.phase() != empty {
			return fmt.Errorf("budget %q: Reconfigure while region %s is loaded; Rewind it first", b.plan.Name, r.name)
		}
	}
	if still := b.keepOut(ctx, l, reach{from: changed}); still != nil {
		return fmt.Errorf("budget %q: Reconfigure waited: %s; nothing has changed: call Unpin, then try again: %w",
			b.plan.Name, strings.Join(still, ", "), ctx.Err())
	}
	return b.reconfigure(changed, plan, parts, edges.cost())
}

// furnishMoved makes present, or locks, the pages that were padding before the move. After Seal it
// makes no system call.
func (b *Budget) furnishMoved(first, last int, parts []platform.PageRun) error {
	if slices.Equal(parts, b.parts) {
		return nil
	}
	b.parts = parts
	from, to := b.table.Start(uint64(first)), b.table.End(uint64(last))
	var moved []platform.PageRun
	for _, part := range parts {
		at, end := max(from, part.Offset), min(planRound(to), part.Offset+part.Size)
		if at < end {
			moved = append(moved, platform.PageRun{Offset: at, Size: end - at})
		}
	}
	r := b.pages()
	switch {
	case r == nil || len(moved) == 0:
		return nil
	case b.locked:
		if err := r.Lock(moved...); err != nil {
			return fmt.Errorf("budget %q: Reconfigure: the new sizes are in force, but pages.lock failed: %w",
				b.plan.Name, err)
		}
	case b.prefaulted:
		return r.Touch(moved...)
	}
	return nil
}

// onlySizesDiffer returns an error with all other differences, except those that Reconfigure
// ignores.
func (b *Budget) onlySizesDiffer(plan Plan) error {
	var errs []error
	differs := func(key string, have, want any) {
		if have != want {
			errs = append(errs, fmt.Errorf("budget %q: Reconfigure: %s is %v and can't change; the plan has %v",
				b.plan.Name, key, have, want))
		}
	}
	differs("name", b.plan.Name, plan.Name)
	differs("base", b.plan.Base, plan.Base)
	differs("frame.buffers", b.plan.Frame.Buffers, plan.Frame.Buffers)
	differs(frameSizeKey, sizeInPlan(b.plan.Frame.Size), sizeInPlan(plan.Frame.Size))
	differs("scratch.workers", b.plan.Scratch.Workers, plan.Scratch.Workers)
	differs("scratch.each", b.plan.Scratch.Each, plan.Scratch.Each)
	differs(scratchSizeKey, sizeInPlan(b.plan.Scratch.Size), sizeInPlan(plan.Scratch.Size))
	limits := func(prefix string, have, want Limits) {
		for i, l := range have.byKey() {
			differs(prefix+l.key, *l.value, *want.byKey()[i].value)
		}
	}
	limits("limits.", b.plan.Limits, plan.Limits)
	for i, page := range b.plan.Pages.byKey() {
		differs("pages."+page.key, *page.value, *plan.Pages.byKey()[i].value)
	}
	differs("go_heap", b.plan.goHeapText(), plan.goHeapText())
	differs("go_heap_max", sizeInPlan(b.plan.GoHeapMax), sizeInPlan(plan.GoHeapMax))
	differs(cHeapKey, cmp.Or(planText(&b.plan.CHeap), "none"), cmp.Or(planText(&plan.CHeap), "none"))
	differs("quotas", cmp.Or(planText(&b.plan.Quotas), "none"), cmp.Or(planText(&plan.Quotas), "none"))
	differs("the number of regions", len(b.plan.Regions), len(plan.Regions))
	for i := range min(len(b.plan.Regions), len(plan.Regions)) {
		differs(fmt.Sprintf("regions[%d].name", i), b.plan.Regions[i].Name, plan.Regions[i].Name)
		differs(fmt.Sprintf("regions[%d].on", i), b.plan.onText(i), plan.onText(i))
		differs(fmt.Sprintf("regions[%d].slots", i), b.plan.Regions[i].Slots, plan.Regions[i].Slots)
		differs(fmt.Sprintf("regions[%d].waiters", i), b.plan.Regions[i].Waiters, plan.Regions[i].Waiters)
		limits(regionLimitsKey(i), b.plan.Regions[i].Limits.or(b.plan.Limits), plan.Regions[i].Limits.or(plan.Limits))
		differs(fmt.Sprintf("regions[%d].state", i), b.plan.Regions[i].State, plan.Regions[i].State)
		differs(fmt.Sprintf("regions[%d].track", i), b.plan.Regions[i].Track, plan.Regions[i].Track)
		differs(fmt.Sprintf("regions[%d].trim", i), b.plan.Regions[i].Trim, plan.Regions[i].Trim)
		differs(fmt.Sprintf("regions[%d].warn", i), fmt.Sprintf("%d%%", b.plan.Regions[i].Warn),
			fmt.Sprintf("%d%%", plan.Regions[i].Warn))
	}
	if have, want := b.plan.ofKind(arena_c.KindRegion), plan.ofKind(arena_c.KindRegion); errs == nil && have != want {
		errs = append(errs, fmt.Errorf("budget %q: Reconfigure: the regions have %s, the plan's need %s", b.plan.Name,
			SizeText(have), SizeText(want)))
	}
	return errors.Join(errs...)
}

// changed returns the regions from the lowest whose size differs up to the highest; those between
// may move.
func (b *Budget) changed(plan Plan) (list []*region) {
	first, last := len(plan.Regions), -1
	for i, r := range plan.Regions {
		if r.Size != b.plan.Regions[i].Size {
			first, last = min(first, i), i
		}
	}
	for _, r := range b.regions {
		if first <= r.level && r.level <= last {
			list = append(list, r)
		}
	}
	return list
}

func (b *Budget) reconfigure(changed []*region, plan Plan, parts []platform.PageRun, cost Cost) (err error) {
	sizes := make([]uint64, len(changed))
	for i, r := range changed {
		sizes[i] = plan.Regions[r.level].Size
	}
	first := changed[0].index
	if err := b.untrack(changed); err != nil {
		return fmt.Errorf("budget %q: Reconfigure: nothing has changed: %w", b.plan.Name, err)
	}
	defer func() { b.track(changed) }()
	if b.guarded {
		protect := func() error { return b.guard(first, b.memory.Protect) }
		if refused := b.guard(first, b.memory.Unprotect); refused != nil {
			return fmt.Errorf("budget %q: Reconfigure: nothing has changed: pages.guards failed: %w", b.plan.Name,
				errors.Join(refused, protect()))
		}
		defer func() {
			if refused := protect(); refused != nil {
				err = errors.Join(err,
					fmt.Errorf("budget %q: Reconfigure: the new sizes are in force, but pages.guards failed: %w",
						b.plan.Name, refused))
			}
		}()
	}
	if code := b.table.Reconfigure(uint64(first), sizes); code != arena_c.OK {
		return fmt.Errorf("budget %q: BUG: Reconfigure: the C core refuses edges that were checked: %v", b.plan.Name,
			code)
	}
	for _, r := range changed {
		r.stack.ResetPeak(true)
		r.moved = true
	}
	err = b.furnishMoved(first, changed[len(changed)-1].index, parts)
	b.publishRegions(reach{from: changed}, "Reconfigure")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.plan.Regions, b.plan.Size, b.cost = plan.Regions, plan.Size, cost
	return err
}
