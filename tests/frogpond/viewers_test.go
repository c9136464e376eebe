//go:build linux && !race && !asan && !checked && !upfront_cgo

package main

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/serve"
	"github.com/upfront-mem/upfront/tests/step"
)

// A server runs without viewers, with a viewer for each room, and with a thousand connections that
// open streams and read nothing. Each time, play makes no Go allocation, memory stays within the
// plan, and ticks go on. The test logs tick times, which can be compared on an idle machine.
func TestViewers(t *testing.T) {
	step.Needs(t, step.Check)
	beside(t)
	for round := range step.Pick(1, 1, 3) {
		for _, crowd := range []string{"nobody", "viewers", "thousand"} {
			r := viewed(t, crowd)
			assert.Zero(t, r.GoAllocs, strings.Join(r.AllocatedBy, "\n"))
			assert.Zero(t, r.Faults+r.Unloaded)
			require.NotNil(t, r.ResidentPeak)
			assert.LessOrEqual(t, *r.ResidentPeak, r.BudgetBytes+r.GoShare+besideBudget)
			assert.Equal(t, crowd != "nobody", r.GoAllocsPage > 0)
			t.Logf("round %d, %s: %d ticks, %d late, %d let be; p50 %d us, p99 %d us; CPU p50 %d us, p99 %d us, "+
				"mean %.0f us",
				round, crowd, r.Ticks, r.LateTicks, r.Skipped, r.TickP50, r.TickP99, r.CPUP50, r.CPUP99, r.CPUMean)
		}
	}
}

// viewed serves 32 bots in two rooms while a crowd views its pages.
func viewed(t *testing.T, crowd string) (r serve.Result) {
	t.Helper()
	if crowd == "thousand" {
		step.Machine(t, step.Files(2048))
	}
	s := startServer(t, "-wad", doom.Builtin, "-rooms", "2", "-http", "127.0.0.1:0", "-http-per-address", "128")
	states := step.Pick(0, 50, minute)
	b := s.bots(32, states)
	address := regexp.MustCompile(`page on http://([^/]+)/`).FindStringSubmatch(s.stderr.String())[1]
	var list []io.Closer
	for i := range map[string]int{"viewers": 2, "thousand": 1000}[crowd] {
		if crowd == "viewers" {
			answer, err := http.Get("http://" + address + "/room/" + strconv.Itoa(i) + "/events")
			require.NoError(t, err)
			list = append(list, answer.Body)
			go func() { _, _ = io.Copy(io.Discard, answer.Body) }()
			continue
		}
		// more connections than the server has room for
		if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
			_, _ = io.WriteString(c, "GET /room/"+strconv.Itoa(i%2)+"/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
			list = append(list, c)
		}
	}
	checkPlayed(t, b.saw(), 32, states)
	for _, c := range list {
		c.Close()
	}
	return s.end()
}
