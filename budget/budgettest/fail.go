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

// FailEach runs fn in a budget of the plan, and then again and again with one size or limit too
// small. FailEach starts with 1 for each size and limit, and ends with the value that fn needs. A
// request is an allocation or a registration of fn in a region, the frame or a scratch arena. A
// request that needs a larger size or limit than all requests before it is the first failure of
// some run. Requests after it may also fail in this run.
//
// In a checked build (-tags checked) FailEach then runs fn with the plan as it is. In the first of
// these runs FailEach refuses only the first request, in the next run only the second, and so on
// until a run ends without a refusal. These runs find code that overlooks a full error because a
// later request succeeds. Chunks of pools and blocks of package arena also count as requests.
// Allocations by C code and by finalizers in Close don't. FailEach counts the requests of the whole
// process, so no other goroutine may allocate from a budget during the call. Other calls of
// FailEach wait.
//
// fn must return the first full error that it gets, or nil if it gets none. fn must also close the
// scopes that it opens. FailEach fails the test if:
//
//   - fn panics, or returns an error that isn't a full error of the key that was too small;
//   - after fn, Walk or Close returns an error, or there is a leak;
//   - in a checked build, fn returns nil or another full error although a request was refused. If
//     fn goes on after a full error, fn must still return that error at the end. A refused chunk of
//     a pool or block of an arena is an exception, because the refusal is only a nil. There fn may
//     continue without the chunk or block, or return any error that is ErrFull.
//
// The plan must be large enough for fn; a test fails if fn returns an error in the plan as it is.
// FailEach prefaults no pages unless the plan says so. Cost: an Open and a run of fn for each
// failure, and for each size and limit.
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
	t.Logf("budgettest: FailEach: %d requests failed, each first in its run", runs)
	if arena_c.Checked {
		failOnce(t, plan, fn)
	}
}

// knob is one size or limit of a plan; either size or count is set.
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

// knobs returns the sizes and limits that can be too small for fn, including a size of Rest.
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
		}{{"scopes", &r.Limits.Scopes}, {"pools", &r.Limits.Pools}, {"owned", &r.Limits.Owned},
			{"labels", &r.Limits.Labels}} {
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

func with(plan budget.Plan, i int, value uint64) budget.Plan {
	plan.Regions = slices.Clone(plan.Regions)
	knobs(&plan)[i].set(value)
	return plan
}

// next returns the least value that may suffice for the refused request. The request's alignment
// isn't reported, so next tries each power of two: at worst a request fails a few times.
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

// tryOnce opens the plan, runs fn and then checks the budget. full is the error that fn returned,
// if it is a full error.
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

// panicked returns the function and line of a panic. It must run while the panic's frames are still
// on the stack.
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
