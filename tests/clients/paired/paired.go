// Package paired is for tests of modules that put a library into a budget. It measures the module
// and the library's own default in turns, and logs the bytes that are live at the end:
//
//	paired.Compare(t, "call", 1000, ours, theirs)
//	paired.Live(t, live)
//
// Command clients, in the folder above, reads the logged lines.
package paired

import (
	"encoding/json"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/upfront-mem/upfront/tests/step"
)

// Each line for command clients begins with one of these marks.
const (
	FigureMark = "figure: " // a Figure as JSON
	LiveMark   = "live: "   // a number of bytes
)

// rounds returns how often both are measured.
func rounds() int { return step.Pick(3, 3, 15) }

// now is the clock, which the package's own tests replace.
var now = time.Now

// Figure has the medians of all rounds: our cost, and its ratio to theirs.
type Figure struct {
	Name         string  `json:"name"`
	Ratio        float64 `json:"ratio"`         // time, theirs = 1
	GarbageRatio float64 `json:"garbage_ratio"` // Go bytes allocated an operation, theirs = 1
	Garbage      float64 `json:"garbage"`       // Go bytes an operation, ours
	Nanoseconds  float64 `json:"ns"`            // an operation, ours
}

// Compare runs ours and theirs in turns, n operations a call, for 3 rounds (15 in make soak). It
// logs the medians as a line for command clients, and returns them. The first Figure of a test
// program is its client's headline.
//
// A collection precedes each turn, so that neither pays for the other's garbage; a turn of a tenth
// of a second has collections of its own. Go bytes are counted in the whole process, so run nothing
// else. If theirs allocates less than a byte an operation, GarbageRatio is relative to one byte.
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
		if round == 0 { // warms both
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

// Live logs the bytes that a client still holds in the budget at its end, as a line for command
// clients. It fails t unless bytes is 0.
func Live(t *testing.T, bytes uint64) {
	t.Helper()
	t.Logf("%s%d", LiveMark, bytes)
	if bytes != 0 {
		t.Errorf("%d bytes are live at the end; want 0", bytes)
	}
}

// turn is the cost of an operation.
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
