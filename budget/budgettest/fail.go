package budgettest

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// FailEach runs fn in a budget of the plan again and again, each time with one size or limit too small for it: from so
// little that its first request fails, up to what it needs. So each allocation and each registration of fn in a region,
// the frame or a scratch arena is once the first that fails, and all that come after it fail too, but for what fits into the padding
// that one before it needs; whoever handles a full is tried wherever it can come from. It needs no hook: the limit
// of the arena is where the failure is.
//
// In a checked build (-tags checked) it goes on with the plan as it is: the first request is refused, in the next run the
// second, and so on until a run ends without a refusal. What comes after the refused one is served again: that finds who
// takes a second success for a first. Chunks of pools, and the blocks of package arena, are requests then too; what C code
// takes by itself is none, nor is what Close's finalizers ask for. The count is the process's: let nothing else allocate
// from a budget at the same time; other calls of FailEach wait.
//
// fn returns the first full that it gets, or nil when it got none; it closes what it opens, as always. FailEach fails
// the test when fn returns another error, or a full of another key than the one that was too small, when it panics, when
// the walk doesn't cover the budget afterwards, when Close has something to say, or when something leaked. In a checked
// build it fails it too when fn returns nil, or another full, though something was refused: who goes on after a full still
// returns it at the end. A chunk of a pool and a block of an arena are the exceptions: no error reports them, nil is the
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
	for i, k := range knobs(&plan) {
		for value := uint64(1); ; runs++ {
			full, err := tryOnce(with(plan, i, value), fn)
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

// knob is one size or limit of a plan, in a size or in a count.
type knob struct {
	key   string
	size  *uint64
	count *int
	most  uint64
}

func (k knob) set(value uint64) {
	if k.size != nil {
		*k.size = value
	} else {
		*k.count = int(value)
	}
}

// knobs are those of the plan that fn can find too small: the rest, too, when it is given a size.
func knobs(plan *budget.Plan) (list []knob) {
	size := func(key string, size *uint64) { list = append(list, knob{key: key, size: size, most: *size}) }
	count := func(key string, count *int, usual int) {
		list = append(list, knob{key: key, count: count, most: uint64(cmp.Or(*count, usual))})
	}
	for i := range plan.Regions {
		r := &plan.Regions[i]
		size(fmt.Sprintf("regions[%d].size", i), &r.Size)
		for _, l := range []struct {
			key   string
			limit *int
		}{{"scopes", &r.Limits.Scopes}, {"pools", &r.Limits.Pools}, {"owned", &r.Limits.Owned}, {"labels", &r.Limits.Labels}} {
			if *l.limit != 0 { // else the plan's
				count(fmt.Sprintf("regions[%d].limits.%s", i, l.key), l.limit, 0)
			}
		}
		if r.Slots > 1 {
			count(fmt.Sprintf("regions[%d].slots", i), &r.Slots, 0)
		}
	}
	if plan.Frame.Buffers > 0 {
		size("frame.size", &plan.Frame.Size)
	}
	if plan.Scratch.Workers > 0 {
		size("scratch.size", &plan.Scratch.Size)
	}
	count("limits.scopes", &plan.Limits.Scopes, 64)
	count("limits.pools", &plan.Limits.Pools, 64)
	count("limits.owned", &plan.Limits.Owned, 256)
	count("limits.labels", &plan.Limits.Labels, 32)
	return list
}

// with is the plan with another value of its i-th knob.
func with(plan budget.Plan, i int, value uint64) budget.Plan {
	plan.Regions = slices.Clone(plan.Regions)
	knobs(&plan)[i].set(value)
	return plan
}

// next is the least value with which the request that was refused may have room. Its alignment isn't reported, so each power
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
