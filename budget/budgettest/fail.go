package budgettest

import (
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// FailEach runs fn in a budget of the plan again and again, each time with one size or limit too small for it: from so
// little that its first request fails, up to what it needs. So each allocation and each registration of fn in a region,
// the frame or a scratch arena is once the first that fails, and all that come after it fail too, but for what fits into the padding
// that one before it needs; whoever handles a full is tried at each place where it can come from. It needs no hook: the limit
// of the arena is where the failure is.
//
// In a checked build (-tags checked) it goes on with the plan as it is: the first request is refused, in the next run the
// second, and so on until a run ends without a refusal. What comes after the refused one is served again: that finds who
// takes a second success for a first. Chunks of pools, and the blocks of package arena, are requests then too; what C code
// takes by itself is none, nor is what Close's finalizers ask for. The count is the process's: let nothing else allocate
// from a budget at the same time; other calls of FailEach wait.
//
// fn returns the first full that it meets, or nil when it met none; it closes what it opens, as always. FailEach fails
// the test when fn returns another error, or a full of another key than the one that was too small, when it panics, when
// the walk doesn't cover the budget afterwards, when Close has something to say, or when something leaked. In a checked
// build it fails it too when fn returns nil, or another full, though something was refused: who goes on after a full still
// returns it at the end. A chunk of a pool and a block of an arena are the exceptions: no error tells of them, nil is the
// whole answer, so fn may go on without, or return an error that is ErrFull.
//
// The plan is one that is wide enough. It is opened once for each request, without making its pages present unless it
// says so. Cost: that of fn, once for each request that it makes.
func FailEach(t testing.TB, plan budget.Plan, fn func(b *budget.Budget) error) {
	t.Helper()
	if arena_c.Checked {
		counting.Lock()
		defer counting.Unlock()
	}
	if plan.Pages.Prefault == budget.Default {
		plan.Pages.Prefault = budget.Off
	}
	if full, err := tryOnce(plan, fn); full != nil || err != nil {
		t.Errorf("budgettest: FailEach: in the plan as it is: %v", errors.Join(asError(full), err))
		return
	}
	runs := 0
	for _, k := range knobs(plan) {
		for value := k.least; ; runs++ {
			small := k.set(plan, value)
			full, err := tryOnce(small, fn)
			if full != nil && full.Key != k.key {
				err = fmt.Errorf("another key is full: %w", full)
			}
			if err != nil {
				t.Errorf("budgettest: FailEach: with %s = %d: %v", k.key, value, err)
				return
			}
			if full == nil || value >= k.most {
				break
			}
			value = min(k.most, next(full, value))
		}
	}
	t.Logf("budgettest: FailEach: %d requests failed, each once the first", runs)
	if arena_c.Checked {
		failOnce(t, plan, fn)
	}
}

// knob is one size or limit of a plan.
type knob struct {
	key         string
	least, most uint64
	set         func(plan budget.Plan, value uint64) budget.Plan
}

// knobs are those of the plan that fn can find too small: the rest, too, when it is given a size.
func knobs(plan budget.Plan) (list []knob) {
	for i, r := range plan.Regions {
		region := func(change func(*budget.RegionPlan, uint64)) func(budget.Plan, uint64) budget.Plan {
			return func(p budget.Plan, value uint64) budget.Plan {
				p.Regions = append([]budget.RegionPlan(nil), p.Regions...)
				change(&p.Regions[i], value)
				return p
			}
		}
		list = append(list, knob{fmt.Sprintf("regions[%d].size", i), 1, r.Size,
			region(func(r *budget.RegionPlan, value uint64) { r.Size = value })})
		if r.Slots > 1 {
			list = append(list, knob{fmt.Sprintf("regions[%d].slots", i), 1, uint64(r.Slots),
				region(func(r *budget.RegionPlan, value uint64) { r.Slots = int(value) })})
		}
	}
	if plan.Frame.Buffers > 0 {
		list = append(list, knob{"frame.size", 1, plan.Frame.Size,
			func(p budget.Plan, value uint64) budget.Plan { p.Frame.Size = value; return p }})
	}
	if plan.Scratch.Workers > 0 {
		list = append(list, knob{"scratch.size", 1, plan.Scratch.Size,
			func(p budget.Plan, value uint64) budget.Plan { p.Scratch.Size = value; return p }})
	}
	limit := func(name string, most int, change func(*budget.Limits, int)) {
		list = append(list, knob{"limits." + name, 1, uint64(most), func(p budget.Plan, value uint64) budget.Plan {
			change(&p.Limits, int(value))
			return p
		}})
	}
	limits := plan.Limits
	limit("scopes", or(limits.Scopes, 64), func(l *budget.Limits, n int) { l.Scopes = n })
	limit("pools", or(limits.Pools, 64), func(l *budget.Limits, n int) { l.Pools = n })
	limit("owned", or(limits.Owned, 256), func(l *budget.Limits, n int) { l.Owned = n })
	limit("labels", or(limits.Labels, 32), func(l *budget.Limits, n int) { l.Labels = n })
	return list
}

func or(limit, usual int) int {
	if limit == 0 {
		return usual
	}
	return limit
}

// next is the least value with which the request that was refused may have room. Its alignment isn't told, so each power
// of two is tried: at worst a request fails a few times.
func next(full *scope.FullError, value uint64) uint64 {
	if full.What != "bytes" {
		return value + 1
	}
	used := full.Size - full.Free
	for shift := range bits.Len64(64 * budget.KiB) {
		align := uint64(1) << shift
		if least := (used+align-1)&^(align-1) + full.Asked; least > value {
			return least
		}
	}
	return value + 64*budget.KiB
}

// tryOnce opens the plan, runs fn and looks at what is left: full is what fn returned.
func tryOnce(plan budget.Plan, fn func(b *budget.Budget) error) (full *scope.FullError, err error) {
	b, err := budget.Open(plan)
	if err != nil {
		return nil, err
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("it panicked%s: %v", panicked(), v)
		}
		_, walk := b.Walk()
		closed := b.Close()
		err = errors.Join(err, walk, closed)
		if leaks := b.Report().Leaks; leaks != (budget.Leaks{}) {
			err = errors.Join(err, fmt.Errorf("leaks: %+v", leaks))
		}
	}()
	err = fn(b)
	if errors.As(err, &full) {
		err = nil
	}
	return full, err
}

// panicked is where: it is called while the panic's frames are on the stack yet.
func panicked() string {
	var calls [64]uintptr
	frames := runtime.CallersFrames(calls[:runtime.Callers(0, calls[:])])
	for began := false; ; {
		frame, more := frames.Next()
		if ours := strings.HasPrefix(frame.Function, "runtime."); began && !ours {
			return fmt.Sprintf(" in %s (%s:%d)", frame.Function, filepath.Base(frame.File), frame.Line)
		}
		if began = began || frame.Function == "runtime.gopanic"; !more {
			return ""
		}
	}
}

func asError(full *scope.FullError) error {
	if full == nil {
		return nil
	}
	return full
}
