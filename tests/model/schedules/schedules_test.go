// Package schedules runs every schedule of three goroutines with a few operations on the regions of
// a budget, and compares each schedule with a model without locks. The operations are load, rewind,
// pin, acquire, release and close. An operation may also be inside of a load.
//
// A schedule is a list of steps. A step lets one goroutine run until it is held again: before an
// operation, in the function of its load, in a finalizer, while it has a region pinned, or while it
// waits for pins or for a load inside of its own. After a step all goroutines are held
// (testing/synctest reports it, and its clock stands for waiting). Then the visible state must
// equal the model's: the place and the result of each goroutine; whether the contents of each load
// exist, with their bytes, or were finalized once; the number of free slots; the errors in OnError.
// Every schedule checks these rules:
//
//   - One owner at a time: an operation on a part that another operation touches returns
//     ErrLoading, and changes nothing.
//   - A pinned part, and the parts below it, aren't rewound. A part isn't pinned while it is loaded
//     or rewound.
//   - Rewound contents are finalized once, top first, before the next load. Loaded.Get no longer
//     returns them.
//   - A slot has one owner. Its former owners and their readers can't reach it.
//   - A load ends after the load inside of it. A load inside of another uses that load's scope, and
//     there is only one at a time.
//   - A refusal, and a wait that ends early, changes nothing. After Close every operation returns
//     ErrClosed.
//
// The number of schedules is reduced in three ways. Idle goroutines are equal, so only the first of
// them takes a step. A budget doesn't know goroutines, so an operation inside of a goroutine's own
// load or pin equals the schedule in which another goroutine does the operation and the first
// goroutine waits. A closed budget gets each operation once, and not in every order.
//
// Steps needn't be smaller, because no goroutine could see a difference. Between two places where
// an operation is held, it takes the regions, all under one lock. It shuts out each region's
// readers. It changes words that Get compares. Then it releases the regions, under the lock. If
// another operation runs between these actions, its result is the same as before the step or after
// the step. For Pin, which runs without a lock against a load, this depends on the order in which
// each of the two writes and reads two words. TestPinIsInsideBeforeItLooks and
// TestLoadShutsBeforeItLooks of package budget test this order. No schedule shows the wrong order,
// and a test with many goroutines hardly ever does.
//
// For a difference, the test reports the shortest schedule, which you can play again:
//
//	cd tests/model/schedules
//	UPFRONT_SCHEDULE='empty: g1 load level, g2 pin level' go test -v -run Replay
//
// The random programs of package model test the other ways in which a load's function or a
// finalizer can end, and the contents of arenas.
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

// Builds with instrumentation are slower.
const instrumented = arena_c.Race || arena_c.Asan || arena_c.Checked

func TestSchedules(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a sixth of the time
	// Operations of each schedule, from an empty budget, and from a full one.
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
		assert.Positive(t, met, "schedules in which none is told %q prove nothing of it", resultNames[r])
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
	assert.ErrorContains(t, err,
		`after "empty: g1 load level" none can do "g1 acquire"; what can be done: [g1 goes on g1 fails `)
	_, _, err = read(strings.ToUpper(schedules[0]))
	assert.ErrorContains(t, err, "a schedule begins with")
}
