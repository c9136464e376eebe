package budget_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// The parts of a child of TestOpenUnderALimitOfAddresses.
const (
	partVariable  = "UPFRONT_TEST_PART"
	partBare      = "bare"      // opens nothing
	partUnchecked = "unchecked" // Open sees no limit
	partNone      = "no go_heap"
	partSize      = "go_heap 16MiB"
	partRest      = "go_heap rest"
)

// With mostProcessors there are so many threads that each control has to die.
const mostProcessors = 32

// TestOpenUnderALimitOfAddresses raises RLIMIT_DATA in steps. A child opens a plan and then works:
// it takes threads, as many as Open has counted without the runtime's, and the Go heap fills its
// share with garbage. Each child succeeds, or Open refuses the plan in words; an abort never ends
// it after Open has begun. No Open is tried below the need of a child that opens nothing, and of
// two threads: how many threads the runtime has by then depends on the scheduler.
func TestOpenUnderALimitOfAddresses(t *testing.T) {
	if platform.GoBacked || arena_c.Asan || arena_c.Checked {
		t.Skip("instrumented builds need other limits: run it without, go test -run UnderALimitOfAddresses ./budget")
	}
	if part := os.Getenv(partVariable); part != "" {
		underALimit(t, part)
		return
	}
	step.Machine(t, step.Addresses(16*budget.GiB)) // or Open reports RLIMIT_AS
	if err := exec.Command(os.Args[0], "-test.run=^$").Run(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the emulator starts no programs; on a machine of this target, go test ./budget runs it:", err)
	}
	const stack = 8 // MiB, as inLimit sets it
	for _, processors := range step.Pick([]int{mostProcessors}, []int{1, mostProcessors},
		[]int{1, 2, 4, mostProcessors}) {
		for _, part := range []string{partUnchecked, partNone, partSize, partRest} {
			bare, refused, died, works := 0, 0, 0, 0
			for limit := 60; limit <= 160 || works == 0; limit += step.Pick(40, 20, 2) {
				require.Less(t, limit, 1000, "%s never works", part)
				out, err := inLimit(limit-2*stack, processors, partBare)
				if err != nil || !strings.Contains(out, "works") {
					bare = limit
					continue
				}
				switch out, err = inLimit(limit, processors, part); {
				case !strings.Contains(out, "opens"):
					bare = limit // it died at its start
				case err != nil:
					died = limit
					assert.Equal(t, partUnchecked, part, "GOMAXPROCS %d, %d MiB:\n%s", processors, limit, out)
				case strings.Contains(out, "refused"):
					refused = limit
				case strings.Contains(out, "works"):
					works = max(works, limit)
				}
			}
			if part == partUnchecked {
				assert.True(t, died != 0 || processors < mostProcessors,
					"the control, without the limits in sight of Open")
			} else {
				assert.NotZero(t, refused, part)
			}
			t.Logf("GOMAXPROCS %d, %s: a program dies before Open up to %d MiB, after it up to %d, is refused up to "+
				"%d, and works with %d",
				processors, part, bare, died, refused, works)
		}
	}
}

func inLimit(mebibytes, processors int, part string) (out string, err error) {
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -S -s 8192 && ulimit -d %d && exec "$@"`, mebibytes<<10), "sh",
		os.Args[0], "-test.run=^TestOpenUnderALimitOfAddresses$", "-test.v")
	cmd.Env = append(os.Environ(), partVariable+"="+part, fmt.Sprint("GOMAXPROCS=", processors), "GOTRACEBACK=none",
		"GOGC=100") // with GOGC=1 a collection takes threads while Open refuses the plan
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// underALimit is a child.
func underALimit(t *testing.T, part string) {
	plan := budget.Plan{Name: "limited", Regions: []budget.RegionPlan{{Name: "level", Size: 4 * budget.MiB}}}
	garbage := 3 * budget.MiB
	count, _, _ := platform.Threads()
	more, _ := budget.MoreThreads()
	switch part {
	case partBare:
		for range 2 { // as Open does
			platform.Limits()
		}
		fmt.Println("works")
		return
	case partUnchecked:
		budget.SetLimits()
	case partSize:
		plan.GoHeap, garbage = 16*budget.MiB, 64*budget.MiB
	case partRest:
		plan.GoHeap, garbage = budget.Rest, 64*budget.MiB
	}
	fmt.Println("opens")
	b, err := budget.Open(plan)
	if err != nil {
		assert.ErrorContains(t, err, "RLIMIT_DATA")
		assert.ErrorContains(t, err, "raise the limit: ulimit -d (in KiB)")
		fmt.Println("refused", err)
		return
	}
	mustLoad(t, b, "level", func(s scope.Scope) { clear(s.Bytes(3 * budget.MiB)) })
	// the collector may take a thread for each processor, and the runtime two for itself
	holdThreads(t, count+more-runtime.GOMAXPROCS(0)-2)
	for range garbage / (64 * budget.KiB) {
		sink = byte(len(make([]byte, 64*budget.KiB)))
	}
	runtime.GC()
	require.NoError(t, b.Close())
	fmt.Println("works")
}

// holdThreads takes threads until the process has that many.
func holdThreads(t *testing.T, most int) {
	ready, over := make(chan bool), make(chan bool)
	defer close(over)
	for {
		count, _, ok := platform.Threads()
		require.True(t, ok)
		if count >= most {
			return
		}
		go func() {
			runtime.LockOSThread() // the thread stays this goroutine's while it waits
			defer runtime.UnlockOSThread()
			ready <- true
			<-over
		}()
		<-ready
	}
}
