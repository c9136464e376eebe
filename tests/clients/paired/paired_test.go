package paired

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// kept keeps what makes garbage from being left out.
var kept []byte

func spend(each time.Duration, bytes int) func(n int) {
	return func(n int) {
		for range n {
			if bytes > 0 {
				kept = make([]byte, bytes)
			}
			for start := time.Now(); time.Since(start) < each; {
				runtime.KeepAlive(kept)
			}
		}
	}
}

// TestCompare: who takes a tenth of the time and of the garbage is told so, and so is who takes ten
// times as much. The bounds are wide: the machine isn't idle.
func TestCompare(t *testing.T) {
	little, much := spend(20*time.Microsecond, 1000), spend(200*time.Microsecond, 10_000)
	f := Compare(t, "a tenth", 100, little, much)
	assert.Equal(t, "a tenth", f.Name)
	assert.Less(t, f.Ratio, 0.5)
	assert.GreaterOrEqual(t, f.Nanoseconds, 20_000.0)
	assert.InDelta(t, 0.1, f.GarbageRatio, 0.05)
	assert.InDelta(t, 1024, f.Garbage, 200)
	f = Compare(t, "ten times", 100, much, little)
	assert.Greater(t, f.Ratio, 2.0)
	assert.Greater(t, f.GarbageRatio, 5.0)
}

// TestCompareTakesTurns: both do the same work equally often, and neither always comes first.
func TestCompareTakesTurns(t *testing.T) {
	var order string
	Compare(t, "turns", 7, func(n int) { order += "o" + string(rune('0'+n)) }, func(n int) { order += "t" + string(rune('0'+n)) })
	assert.Contains(t, order, "o7t7t7o7o7t7t7o7")
	assert.Len(t, order, map[bool]int{true: 4 * (shortRounds + 1), false: 4 * (fullRounds + 1)}[testing.Short()])
}

func TestGarbageRatio(t *testing.T) {
	assert.Equal(t, 1.0, garbageRatio(0, 0))
	assert.Equal(t, 50.0, garbageRatio(50, 0), "a number that JSON has")
	assert.Equal(t, 0.5, garbageRatio(50, 100))
}

// TestLive: 0 passes, anything else fails.
func TestLive(t *testing.T) {
	if os.Getenv("PAIRED_LIVE") != "" {
		Live(t, 48)
		return
	}
	Live(t, 0)
	cmd := exec.Command(os.Args[0], "-test.run=^TestLive$", "-test.v")
	cmd.Env = append(os.Environ(), "PAIRED_LIVE=1")
	out, err := cmd.CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), LiveMark+"48\n")
	assert.Contains(t, string(out), "48 bytes are live at the end")
}
