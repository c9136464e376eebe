//go:build linux

package serve

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/with/agones"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
	"github.com/upfront-mem/upfront/tests/sidecar"
)

// Joins and leaves move the counter, also after another plan is taken. A server that drains says
// so, and its last call is Shutdown.
func TestAgones(t *testing.T) {
	t.Parallel()
	fake := sidecar.New()
	web := httptest.NewServer(fake)
	defer web.Close()
	reload, plans := make(chan os.Signal, 1), uint64(0)
	s := begin(t, func(o *Options) {
		o.Agones, o.Drain, o.Reload = agones.New(strings.TrimPrefix(web.URL, "http://")), time.Hour, reload
		o.Plan = func() (budget.Plan, error) {
			plan := smallPlan(o.Rooms + 1)
			plan.Regions[1].Size += plans * 8 * budget.MiB
			plans++
			return plan, nil
		}
	})
	shows := func(state, label string, count int64) {
		t.Helper()
		s.until(fmt.Sprint(state, " ", label, " ", count), func() bool {
			g := fake.Server()
			return g.State == state && g.Labels["agones.dev/sdk-rooms"] == label && g.Count == count && g.Capacity == 2
		})
	}
	shows("Ready", "free", 0)
	reload <- os.Interrupt
	s.until("it listens again", func() bool { return strings.Count(s.said.String(), "players on") == 2 })
	first := s.joins(client.Options{Name: "first", Room: 0, Seed: 1})
	s.joins(client.Options{Name: "watcher", Room: 1, Seed: 2, Watch: true})
	shows("Allocated", "free", 1)
	second := s.joins(client.Options{Name: "second", Room: 1, Seed: 3})
	shows("Allocated", "full", 2)
	first.leave()
	shows("Allocated", "free", 1)
	second.leave()
	shows("Ready", "free", 0)
	last := s.joins(client.Options{Name: "last", Room: 1, Seed: 4})
	shows("Allocated", "free", 1)
	s.stop()
	shows("Allocated", "draining", 1)
	last.leave()
	<-s.ended
	assert.NoError(t, s.err)
	calls := fake.Calls()
	assert.Equal(t, "POST /shutdown {}", calls[len(calls)-1])
	assert.Contains(t, calls, "POST /health {}")
	assert.Empty(t, fake.Wrong())
	assert.NotContains(t, s.said.String(), "agones: ")
}
