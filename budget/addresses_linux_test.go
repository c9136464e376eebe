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
	"time"

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

// TestOpenUnderALimitOfAddresses raises RLIMIT_DATA in steps. A child opens a plan and then works:
// several goroutines wait in the system, and the Go heap fills its share with garbage. Each child
// succeeds, or Open refuses the plan in words; an abort never ends it after Open has begun. Below
// the need of a child that opens nothing, no Open is tried.
func TestOpenUnderALimitOfAddresses(t *testing.T) {
	if platform.GoBacked || arena_c.Asan || arena_c.Checked {
		t.Skip("instrumented builds need other limits: run it without, go test -run UnderALimitOfAddresses ./budget")
	}
	if part := os.Getenv(partVariable); part != "" {
		underALimit(t, part)
		return
	}
	if err := exec.Command(os.Args[0], "-test.run=^$").Run(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("an emulator that does not start programs: ", err)
	}
	for _, processors := range step.Pick([]int{2}, []int{1, 2, 8}, []int{1, 2, 4, 8, 16}) {
		for _, part := range []string{partUnchecked, partNone, partSize, partRest} {
			bare, refused, died, works := 0, 0, 0, 0
			for limit := 60; limit <= 160 || works == 0; limit += step.Pick(20, 20, 2) {
				require.Less(t, limit, 1000, "%s never works", part)
				if out, err := inLimit(limit, processors, partBare); err != nil || !strings.Contains(out, "works") {
					bare = limit
					continue
				}
				switch out, err := inLimit(limit, processors, part); {
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
				assert.NotZero(t, died, "the control, without the limits in sight of Open")
			} else {
				assert.NotZero(t, refused, part)
			}
			t.Logf("GOMAXPROCS %d, %s: a program dies before Open up to %d MiB, after it up to %d, is refused up to %d, and works with %d",
				processors, part, bare, died, refused, works)
		}
	}
}

func inLimit(mebibytes, processors int, part string) (out string, err error) {
	cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -S -s 8192 && ulimit -d %d && exec "$@"`, mebibytes<<10), "sh", os.Args[0],
		"-test.run=^TestOpenUnderALimitOfAddresses$", "-test.v")
	cmd.Env = append(os.Environ(), partVariable+"="+part, fmt.Sprint("GOMAXPROCS=", processors), "GOTRACEBACK=none")
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// underALimit is a child.
func underALimit(t *testing.T, part string) {
	plan := budget.Plan{Name: "limited", Regions: []budget.RegionPlan{{Name: "level", Size: 4 * budget.MiB}}}
	garbage := 3 * budget.MiB
	switch part {
	case partBare:
		for range 2 { // as Open does
			platform.Limits()
		}
		waitInSystem(1)
		runtime.GC()
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
	waitInSystem(6)
	for range garbage / (64 * budget.KiB) {
		sink = byte(len(make([]byte, 64*budget.KiB)))
	}
	runtime.GC()
	require.NoError(t, b.Close())
	fmt.Println("works")
}

// waitInSystem makes n goroutines wait in the system at the same time. Each takes a thread.
func waitInSystem(n int) {
	var begin, end [2]int
	for _, pipe := range []*[2]int{&begin, &end} {
		if err := syscall.Pipe(pipe[:]); err != nil {
			panic(err)
		}
	}
	one := func(do func(int, []byte) (int, error), file int) {
		if _, err := do(file, make([]byte, 1)); err != nil {
			panic(err)
		}
	}
	for range n {
		go func() {
			one(syscall.Read, begin[0])
			one(syscall.Write, end[1])
		}()
	}
	time.Sleep(time.Millisecond) // most have begun to wait
	for range n {
		one(syscall.Write, begin[1])
	}
	for range n {
		one(syscall.Read, end[0])
	}
}
