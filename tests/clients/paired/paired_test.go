package paired

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// kept keeps the compiler from removing the allocation.
var kept []byte

// spend makes garbage, and advances the clock of the test.
func spend(clock *time.Time, each time.Duration, bytes int) func(n int) {
	return func(n int) {
		for range n {
			kept = make([]byte, bytes)
			*clock = clock.Add(each)
		}
	}
}

// TestCompare: a tenth of the time and garbage gives 0.1, and ten times as much gives 10.
func TestCompare(t *testing.T) {
	clock := time.Unix(0, 0)
	now = func() time.Time { return clock }
	t.Cleanup(func() { now = time.Now })
	little, much := spend(&clock, 20*time.Microsecond, 1000), spend(&clock, 200*time.Microsecond, 10_000)
	f := Compare(t, "a tenth", 1000, little, much)
	assert.Equal(t, "a tenth", f.Name)
	assert.Equal(t, 0.1, f.Ratio)
	assert.Equal(t, 20_000.0, f.Nanoseconds)
	assert.InDelta(t, 0.1, f.GarbageRatio, 0.05)
	assert.InDelta(t, 1024, f.Garbage, 200)
	f = Compare(t, "ten times", 1000, much, little)
	assert.Equal(t, 10.0, f.Ratio)
	assert.Greater(t, f.GarbageRatio, 5.0)
}

// TestCompareTakesTurns: both do the same work equally often, and neither always comes first.
func TestCompareTakesTurns(t *testing.T) {
	var order string
	Compare(t, "turns", 7, func(n int) {
		order += "o" + string(rune('0'+n))
	}, func(n int) { order += "t" + string(rune('0'+n)) })
	assert.Contains(t, order, "o7t7t7o7o7t7t7o7")
	assert.Len(t, order, 4*(rounds()+1))
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
