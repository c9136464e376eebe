package budget_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

// The allocations of these functions must be found at their lines.
var (
	keptPointer *[8]int64
	keptAny     any
	keptText    string
	keptList    []int64
	keptMap     map[int]int
	keptTiny    [3]*int32
	keptFunc    func() int
)

//go:noinline
func escape() { keptPointer = new([8]int64) } // line: escape

//go:noinline
func convert(n int) { keptAny = n } // line: convert

//go:noinline
func closure(n int) { keptFunc = func() int { return n } } // line: closure

func tiny() {
	for i := range keptTiny {
		keptTiny[i] = new(int32) // line: tiny
	}
}

// lineOf returns the place of a marked line, as in a report.
func lineOf(t testing.TB, mark string) string {
	t.Helper()
	text, err := os.ReadFile("noheap_test.go")
	require.NoError(t, err)
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasSuffix(line, "// line: "+mark) {
			return fmt.Sprintf("noheap_test.go:%d)", i+1)
		}
	}
	require.Fail(t, "no such line", mark)
	return ""
}

func noHeap(t testing.TB, b *budget.Budget, fn func()) string {
	t.Helper()
	if err := b.NoHeap(fn); err != nil {
		return err.Error()
	}
	return ""
}

func TestNoHeapNamesWhoAllocates(t *testing.T) {
	b := open(t, small())
	keptList, keptMap = nil, map[int]int{}
	for mark, fn := range map[string]func(){
		"escape":  escape,
		"convert": func() { convert(12345) },
		"closure": func() { closure(7) },
		"append":  func() { keptList = append(keptList, 1, 2, 3) },      // line: append
		"map":     func() { keptMap[len(keptMap)] = 1; fillMap() },      // line: map
		"sprintf": func() { keptText = fmt.Sprintf("%d frogs", 12345) }, // line: sprintf
		"tiny":    tiny,
	} {
		said := noHeap(t, b, fn)
		assert.Contains(t, said, `budget "small": NoHeap: `, mark)
		if mark == "map" {
			mark = "fill"
		}
		assert.Contains(t, said, lineOf(t, mark), mark)
	}
}

func fillMap() {
	for i := range 100 {
		keptMap[i] = i // line: fill
	}
}

func TestNoHeapsWords(t *testing.T) {
	b := open(t, small())
	said := strings.Split(noHeap(t, b, escape), "\n")
	require.GreaterOrEqual(t, len(said), 4)
	assert.Regexp(t, `^budget "small": NoHeap: 1 Go allocation, (64|96) bytes:$`, said[0], "96 with AddressSanitizer")
	assert.Regexp(t, `^  1 object, (64|96) bytes:$`, said[1])
	assert.Regexp(t, `^    github.com/upfront-mem/upfront/budget_test.escape \(.*/`+
		lineOf(t, "escape")[:len(lineOf(t, "escape"))-1]+`\)$`, said[2])
	assert.Regexp(t, `^    github.com/upfront-mem/upfront/budget.\(\*Budget\).NoHeap \(.*\)$`, said[3])

	said = strings.Split(noHeap(t, b, func() { escape(); escape(); convert(12345); escape() }), "\n")
	assert.Regexp(t, `^budget "small": NoHeap: 4 Go allocations, (200|208|312) bytes:$`, said[0])
	assert.Regexp(t, `\n  3 objects, (192|288) bytes:\n`, noHeap(t, b, func() {
		for range 3 {
			escape()
		}
	}), "one place")
}

func TestNoHeapShowsTheFirstPlaces(t *testing.T) {
	b := open(t, small())
	said := noHeap(t, b, func() { nest(20) })
	assert.Equal(t, 1, strings.Count(said, "Go allocations"))
	assert.Contains(t, said, "\n  and 13 more places")
	assert.Regexp(t, `\n    and \d+ callers`, said)
}

//go:noinline
func nest(depth int) {
	escape()
	if depth > 0 {
		nest(depth - 1)
	}
}

// elsewhere starts a goroutine that runs functions for the test.
func elsewhere(t testing.TB) (do func(fn func())) {
	work, done := make(chan func()), make(chan bool)
	go func() {
		for fn := range work {
			fn()
			done <- true
		}
	}()
	t.Cleanup(func() { close(work) })
	return func(fn func()) { work <- fn; <-done }
}

func nothing() {}

func TestNoHeapNamesOtherGoroutines(t *testing.T) {
	b, do := open(t, small()), elsewhere(t)
	assert.Empty(t, noHeap(t, b, func() { do(nothing) }), "who waits is no matter")
	said := noHeap(t, b, func() { do(escape) })
	assert.Contains(t, said, lineOf(t, "escape"))
	assert.Contains(t, said, "budget_test.elsewhere.func")
	assert.NotContains(t, said, ").NoHeap (", "its stack is another")
}

// TestNoHeapIsSilent: allocations of the runtime for threads, waiters and timers don't count. A
// collection frees some of these objects.
func TestNoHeapIsSilent(t *testing.T) {
	b := open(t, small())
	work, done := make(chan bool), make(chan bool)
	var lock sync.Mutex
	for range 8 {
		go func() {
			for range work {
				lock.Lock()
				time.Sleep(time.Microsecond)
				lock.Unlock()
				done <- true
			}
		}()
	}
	defer close(work)
	play := func() {
		for range 8 {
			work <- true
		}
		frogs.New(b.Frame())
		scope := b.Scratch(0, 0).Open("scratch")
		frogs.Slice(scope, 7)
		_ = scope.Close()
		for range 8 {
			<-done
		}
	}
	turn := func() { _ = b.NextFrame() }
	rounds := step.Pick(3, 25, 25)
	for _, processors := range []int{1, 2} {
		before := runtime.GOMAXPROCS(processors)
		for range rounds {
			require.Empty(t, noHeap(t, b, play))
			require.Empty(t, noHeap(t, b, func() { play(); runtime.GC(); play() }))
			require.Empty(t, noHeap(t, b, turn))
		}
		runtime.GOMAXPROCS(before)
	}
}

func TestNoHeapGoesAwayWithoutATrace(t *testing.T) {
	b := open(t, small())
	rate := runtime.MemProfileRate
	assert.Equal(t, "stop", panics(t, func() { _ = b.NoHeap(func() { escape(); panic("stop") }) }))
	assert.True(t, attempt(func() error { return b.NoHeap(runtime.Goexit) }).exited)
	during := 0
	assert.NoError(t, b.NoHeap(func() { during = runtime.MemProfileRate }))
	assert.Equal(t, 1, during)
	assert.Equal(t, rate, runtime.MemProfileRate)

	var inner error
	outer := b.NoHeap(func() { inner = b.NoHeap(escape) })
	assert.ErrorContains(t, inner, lineOf(t, "escape"))
	assert.Equal(t, inner.Error(), outer.Error(), "what the inner one allocates for its report isn't the program's")
	require.NoError(t, b.Close())
	assert.Contains(t, noHeap(t, b, escape), lineOf(t, "escape"), "a closed budget has a name still")
}

// TestNoHeapsBesideEachOther: parallel calls don't end each other's record.
func TestNoHeapsBesideEachOther(t *testing.T) {
	b := open(t, small())
	rate := runtime.MemProfileRate
	var all sync.WaitGroup
	var lock sync.Mutex
	for range 4 {
		all.Go(func() {
			assert.Error(t, b.NoHeap(func() {
				lock.Lock() // guards the variables of escape
				defer lock.Unlock()
				escape()
			}))
		})
	}
	all.Wait()
	assert.Equal(t, rate, runtime.MemProfileRate)
}

// The runtime's own objects, for timers and for interfaces that it looks up, don't count.
func TestNoHeapLeavesTheRuntimeItsOwn(t *testing.T) {
	b := open(t, small())
	things := []any{budget.Rest, t, background, "x"}
	count := 0
	for range 40 {
		ticker := time.NewTicker(time.Millisecond)
		require.Empty(t, noHeap(t, b, func() {
			<-ticker.C
			for i := range 20_000 {
				if _, ok := things[i%len(things)].(fmt.Stringer); ok {
					count++
				}
				switch things[i%len(things)].(type) {
				case testing.TB, fmt.Stringer:
					count++
				}
			}
		}))
		ticker.Stop()
	}
	require.NotZero(t, count)
}
