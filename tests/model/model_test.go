// Package model plays random programs on a budget. After every step it checks these rules:
//
//   - A live object is inside its arena, is aligned, was zeroed, overlaps no other, and keeps its
//     bytes.
//   - The topmost scope allocates while there is room, and returns a full error otherwise. Any
//     other scope refuses with a misuse.
//   - A refusal is reported once, by the scope that refused, or to the caller that closes it.
//   - A finalizer runs once, when its scope ends. The finalizers of a scope run newest first, after
//     the finalizers of all scopes above.
//   - The caller that ends scopes gets each failure of the scopes' finalizers once. If no caller
//     waits, a failure goes to the report.
//   - After a scope closes, as many bytes are used as before it opened. The peak never falls.
//   - A region is loaded after a Load that succeeded, until it is rewound. Until then, only a
//     holder of the load's scope may change the region.
//   - The walk names every byte, and offsets and peaks are the same in each build.
package model_test

import (
	"fmt"
	"runtime"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// step takes one step, in the scope of the innermost callback or in another.
func (w *world) step(inner *life) {
	if w.steps++; w.steps > w.limit || !w.good() {
		return
	}
	if w.layers > 6 {
		return
	}
	if w.chance(4) {
		w.stepOutside()
		return
	}
	s := w.pick(inner)
	if s == nil {
		index := 2*worker + w.random.IntN(2)
		w.onScratch(w.scratches[index], w.b.Scratch(worker, index%2))
		return
	}
	switch w.random.IntN(20) {
	case 0, 1, 2:
		w.allocate(s)
	case 3, 4, 5:
		w.object(s)
	case 6:
		w.openScope(s)
	case 7, 8:
		w.close(s)
	case 9:
		w.err(s)
	case 10:
		w.temp(s)
	case 11:
		w.build(s)
	case 12:
		w.grow(s)
	case 13:
		w.text(s)
	case 14:
		w.openPool(s)
	case 15:
		w.usePool()
	case 16:
		w.do(s.arena, s, s.real.Do)
	case 17:
		w.make(s)
	case 18:
		w.label(s)
	default:
		w.release()
	}
}

// stepOutside takes one step on the budget.
func (w *world) stepOutside() {
	switch w.random.IntN(10) {
	case 0, 1, 2:
		w.load()
	case 3:
		w.rewind()
	case 4:
		w.acquire()
	case 5:
		w.nextFrame()
	case 6:
		w.take()
	case 7:
		w.give()
	default:
		index := 2*worker + w.random.IntN(2)
		if len(w.leases) > 0 && w.chance(2) {
			index = 2*w.leases[0].pair + w.random.IntN(2)
		}
		scratch, _ := w.scratch(index)
		w.onScratch(w.scratches[index], scratch)
	}
}

func (w *world) onScratch(a *arena, scratch scope.Scratch) {
	switch top := a.top(); {
	case top != nil && top.froze:
	case w.chance(2):
		w.do(a, nil, scratch.Do)
	case len(a.near) < maxScopes:
		w.say("%s: open", a.name)
		a.open(scratch.Open("scope"), "scope")
	}
}

// play runs a program. Each step has its own goroutine, so that it may end in any way.
func (w *world) play() {
	for w.steps < w.limit && w.good() {
		done := make(chan any)
		go func() {
			var v any
			defer func() {
				if v == nil {
					v = recover()
				}
				done <- v
			}()
			w.step(nil)
		}()
		switch v := (<-done).(type) {
		case nil, *scope.Misuse:
		case arena_c.Refusal:
		case error:
			if _, full := v.(*scope.FullError); !full {
				w.fail("a panic: %v", v)
			}
		case string:
			w.check(v == "boom", "a panic: %v", v)
		}
		w.layers, w.flight, w.exiting, w.now, w.emptied = 0, nil, false, 0, nil
		w.compare()
	}
}

// end closes the budget: all finalizers run.
func (w *world) end() {
	missing, ok := w.b.Missing()
	w.check(!ok || missing == 0, "%d pages of the budget are absent", missing)
	done := make(chan struct{})
	w.emptied = w.parts
	go func() {
		defer close(done)
		_ = w.b.Close()
	}()
	<-done
	for _, a := range w.arenas {
		w.closedTo(a, 0)
	}
	for id, f := range w.finalizers {
		w.check(f.times == 1 || f.off, "finalizer %d ran %d times", id, f.times)
	}
	w.replay()
}

// program plays one program, and returns its world.
func program(t *testing.T, seed uint64, limit int) *world {
	w, err := newWorld(seed, limit)
	require.NoError(t, err)
	w.play()
	w.end()
	return w
}

// liveObjects returns the number of objects on the Go heap.
func liveObjects() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapObjects
}

const programSteps = 120

// The sums of the first programs' offsets and peaks, in each build and on each target of 64 bits.
// They change with the programs and the layout rules. On 32 bits Go aligns a uint64 to 4, so they
// differ.
const (
	alike        = 40
	offsetsOfAll = 0xb28227504e6fa14c
)

func TestModel(t *testing.T) {
	rounds, end := step.Pick(alike+10, 400, 400), time.Now().Add(step.Time())
	did, offsets, objects := map[string]int{}, uint64(0), []uint64(nil)
	for seed := 0; seed < rounds || time.Now().Before(end); seed++ {
		w := program(t, uint64(seed), programSteps)
		if !w.good() {
			limit := sort.Search(programSteps, func(n int) bool { return !program(t, uint64(seed), n).good() })
			w = program(t, uint64(seed), limit)
			log := w.log[max(0, len(w.log)-logged):]
			t.Fatalf("seed %d, %d steps:\n%s\n%s", seed, limit, strings.Join(log, "\n"), w.failed)
		}
		for what, n := range w.did {
			did[what] += n
		}
		did["steps"] += w.steps
		did["programs"]++
		if seed < alike {
			offsets = offsets*31 + w.offsets
		}
		if seed >= alike && seed%8 == 0 { // by now the runtime and the library have their caches
			objects = append(objects, liveObjects())
		}
		did["finalizers"] += len(w.ran)
	}
	t.Log(did)
	// The runtime's own objects vary. The traces of dropped stacks end now and then, in each half
	// if it has 180 programs.
	const few = 600
	half := len(objects) / 2
	assert.Less(t, slices.Min(objects[half:]), slices.Min(objects[:half])+few,
		"a program leaves nothing on the Go heap")
	assert.Equal(t, uint64(offsetsOfAll), offsets,
		"offsets and peaks are the same in each build, on each target of 64 bits")
	if step.Now() < step.Check {
		return
	}
	for _, what := range deeds {
		assert.Positive(t, did[what], "programs that never do it prove nothing: %s", what)
	}
	for do := range doCount {
		assert.Positive(t, did[fmt.Sprintf("finalizer %d", do)], "no finalizer does %d", do)
	}
	for end := 1; end < endCount; end++ {
		assert.Positive(t, did[fmt.Sprintf("end %d", end)], "no function ends in way %d", end)
	}
}

// deeds are the actions that all programs together must include.
var deeds = []string{"steps", "finalizers", "refused", "unwound", "left open", "Make failed", "too many scopes",
	"refused Close", "Temp", "no room for Temp", "built", "pool", "wrong Put", "C",
	"load", "load refused", "loaded", "load failed", "load left", "replayed", "replay full"}
