// Package paired is for tests of modules that put somebody else's library into a budget: what that
// costs beside the library's own default, measured in turns, and what it leaves live. Command
// clients, the folder above, reads what it logs.
package paired

import (
	"encoding/json"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/upfront-mem/upfront/tests/step"
)

// What stands before what is logged for command clients.
const (
	FigureMark = "figure: " // a Figure as JSON
	LiveMark   = "live: "   // a number of bytes
)

// rounds is how often both are measured: a few times, or as often as a figure for a page needs.
func rounds() int { return step.Pick(3, 3, 15) }

// now is the clock. The package's own tests have another.
var now = time.Now

// Figure is what ours costs, and what that is of theirs: the medians of all rounds.
type Figure struct {
	Name         string  `json:"name"`
	Ratio        float64 `json:"ratio"`         // time, theirs = 1
	GarbageRatio float64 `json:"garbage_ratio"` // Go bytes allocated an operation, theirs = 1
	Garbage      float64 `json:"garbage"`       // Go bytes an operation, ours
	Nanoseconds  float64 `json:"ns"`            // an operation, ours
}

// Compare runs ours and theirs in turns, n operations a call, for some rounds (more in make soak),
// logs the medians as a line of figures that command clients reads, and gives them. The first that
// a test program compares is its client's headline.
//
// Each turn begins behind a collection, so that nobody pays for what the other left; one of a tenth
// of a second has some of its own. Go bytes are the process's: nothing else runs meanwhile. Where
// theirs allocates less than a byte an operation, GarbageRatio is of one byte.
func Compare(t *testing.T, name string, n int, ours, theirs func(n int)) Figure {
	t.Helper()
	var times, garbage, timeRatios, garbageRatios []float64
	for round := range rounds() + 1 {
		var our, their turn
		if round%2 == 0 {
			our, their = measure(n, ours), measure(n, theirs)
		} else {
			their, our = measure(n, theirs), measure(n, ours)
		}
		if round == 0 { // it warms both
			continue
		}
		times, garbage = append(times, our.ns), append(garbage, our.bytes)
		timeRatios = append(timeRatios, our.ns/max(their.ns, 1e-3))
		garbageRatios = append(garbageRatios, garbageRatio(our.bytes, their.bytes))
	}
	f := Figure{name, median(timeRatios), median(garbageRatios), median(garbage), median(times)}
	line, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s%s", FigureMark, line)
	return f
}

// Live logs how many bytes a client still held in the budget at its end, as a line that command
// clients reads, and fails unless it is 0.
func Live(t *testing.T, bytes uint64) {
	t.Helper()
	t.Logf("%s%d", LiveMark, bytes)
	if bytes != 0 {
		t.Errorf("%d bytes are live at the end", bytes)
	}
}

// turn is what an operation took.
type turn struct{ ns, bytes float64 }

func measure(n int, fn func(n int)) turn {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := now()
	fn(n)
	took := now().Sub(start)
	runtime.ReadMemStats(&after)
	return turn{float64(took) / float64(n), float64(after.TotalAlloc-before.TotalAlloc) / float64(n)}
}

func garbageRatio(ours, theirs float64) float64 {
	if ours == theirs {
		return 1
	}
	return ours / max(theirs, 1)
}

// median sorts its argument.
func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
