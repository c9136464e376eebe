// Package schedules runs every schedule of three goroutines and a few operations on the regions of
// a budget, beside a model that has no locks: load, rewind, pin, acquire, release and close, those
// of a load's inside among them.
//
// A schedule is a list of steps; each is one goroutine's, up to where it is held next: before an
// operation, in the function of its load, in a finalizer, while it has a region pinned, or while it
// waits for pins or for what is inside of its load. After a step all goroutines are held
// (testing/synctest says so, and its clock stands for waiting), and what can be seen must be what
// the model has: where each goroutine is and what it was told; whether what was loaded is there,
// with its bytes, or gone, with its finalizer, once; how many slots are free; what OnError was
// told. So these are held to, in every schedule:
//
//   - One owner at a time: who touches what another touches is told ErrLoading, and nothing else happens.
//   - Nothing is rewound while it is pinned, or what lies below it; nothing is pinned while it is loaded or rewound.
//   - What is rewound is finalized, once, top first, before it can be loaded again; no Loaded.Get gives it any more.
//   - A slot has one owner, and none of its former owners, nor their readers, get at it.
//   - A load ends after what is inside of it; inside is one at a time, and only with the scope of a load at work.
//   - A refusal, and a wait in vain, changes nothing. After Close everything is told ErrClosed.
//
// Goroutines that are idle are all alike, so the first of them stands for all. A budget doesn't
// know goroutines: what one does inside of its own load or pin is the schedule in which another
// does it, and the first waits. A closed budget is asked for each operation once, and not in every
// order.
//
// Steps are not cut finer, since nobody could tell. Between two places where an operation is held
// it takes the regions, all under one lock; shuts out each region's readers; changes words that Get
// compares; and gives the regions back, under the lock. Who comes between these is told what he
// would be told before the step or after it. That holds by the order of two words on each side,
// where Pin meets a load without a lock: TestPinIsInsideBeforeItLooks and
// TestLoadShutsBeforeItLooks of package budget are for that. No schedule shows the other order, and
// hardly a crowd.
//
// A difference is told by the shortest schedule that shows it, which can be played again:
//
//	UPFRONT_SCHEDULE='empty: g1 load level, g2 pin level' go test -v -run Replay ./tests/model/schedules
//
// How a load's function or a finalizer ends otherwise, and what lies in arenas, is for the random
// programs of package model.
package schedules_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	proof "github.com/upfront-mem/upfront/tests/step"
)

// instrumented builds pay for what they watch.
const instrumented = arena_c.Race || arena_c.Asan || arena_c.Checked

func TestSchedules(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a sixth of the time
	// Operations of each schedule, from a budget that is empty, and from one that is full.
	empty, full := proof.Pick[int8](4, 5, 6), proof.Pick[int8](2, 3, 5)
	if instrumented {
		empty, full = proof.Pick[int8](4, 4, 5), proof.Pick[int8](2, 2, 4)
	}
	var all counts
	t.Run("empty", func(t *testing.T) { explore(t, false, empty, &all) })
	t.Run("full", func(t *testing.T) { explore(t, true, full, &all) })
	for r := done; r < unexpected; r++ {
		met := 0
		for _, came := range all.came {
			met += came[r]
		}
		assert.Positive(t, met, "schedules in which nobody is told %q prove nothing of it", resultNames[r])
	}
}

// explore runs all schedules, with a bubble for each processor.
func explore(t *testing.T, full bool, limit int8, all *counts) {
	list := make([]*explorer, runtime.GOMAXPROCS(0))
	t.Run("all", func(t *testing.T) {
		for i := range list {
			list[i] = &explorer{full: full, limit: limit, part: i, of: len(list)}
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(*testing.T) { list[i].run() })
			})
		}
	})
	var here counts
	for _, x := range list {
		if x.found != nil {
			text := x.found.String()
			if short := shortest(t, full, limit, fault{}); short != nil {
				text = short.String()
			}
			require.Fail(t, "the budget is not as the model has it", text)
		}
		here.add(&x.counts)
	}
	t.Logf("%d operations, from a budget that is %s: %v", limit, startNames[full], &here)
	all.add(&here)
}

// TestReplay plays the schedule of UPFRONT_SCHEDULE, and those of the faults, which the library
// doesn't have.
func TestReplay(t *testing.T) {
	schedules := []string{os.Getenv("UPFRONT_SCHEDULE")}
	if schedules[0] == "" {
		schedules = nil
		for _, f := range faults {
			schedules = append(schedules, f.shortest)
		}
	}
	for _, text := range schedules {
		full, path, err := read(text)
		require.NoError(t, err)
		assert.Equal(t, text, name(full, path))
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(fault{}.library())
			defer w.end()
			w.begin(full)
			if d := play(w, path); d != nil {
				d.full = full
				assert.Fail(t, "the budget is not as the model has it", d.String())
			}
			t.Logf("%s\n%s", text, tellAll(full, path))
		})
	}
	_, _, err := read("empty: g1 load level, g1 acquire")
	assert.ErrorContains(t, err, `after "empty: g1 load level" nobody can do "g1 acquire"; what can be done: [g1 goes on g1 fails `)
	_, _, err = read(strings.ToUpper(schedules[0]))
	assert.ErrorContains(t, err, "a schedule begins with")
}
