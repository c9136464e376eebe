package prometheus_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	with "github.com/upfront-mem/upfront/budget/with/prometheus"
	"github.com/upfront-mem/upfront/scope"
)

func plan(name string) budget.Plan {
	return budget.Plan{
		Name: name,
		Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB, Limits: budget.Limits{Pools: 7}},
			{Name: "match", Size: 70 * budget.KiB, Slots: 20}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 2, Size: 64 * budget.KiB},
		Limits:  budget.Limits{Labels: 5},
	}
}

func open(t *testing.T, p budget.Plan) *budget.Budget {
	t.Helper()
	b, err := budget.Open(p)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// play fills each part; each slot has a label of its own.
func play(t *testing.T, b *budget.Budget) {
	t.Helper()
	fill(t, b.Region("level"), func(s scope.Scope) {
		s.Bytes(30_000)
		label(t, s, "sound", 12_345)
		label(t, s, "others", 5)
		label(t, s, "\xff\"\n", 54_321)
	})
	for i := range 10 {
		slot, err := b.Slots("match").Acquire()
		require.NoError(t, err)
		fill(t, slot, func(s scope.Scope) { label(t, s, fmt.Sprint("player ", i), 1000+i); label(t, s, "map", 10*i) })
		t.Cleanup(func() { _ = slot.Release(context.Background()) })
	}
	b.Frame().Bytes(99)
	require.NoError(t, b.NextFrame())
}

func fill(t *testing.T, r budget.Region, fn func(scope.Scope)) {
	t.Helper()
	_, err := budget.Load(context.Background(), r, func(s scope.Scope) (*struct{}, error) { fn(s); return nil, nil })
	require.NoError(t, err)
}

func label(t *testing.T, s scope.Scope, name string, bytes int) {
	t.Helper()
	require.NoError(t, scope.Label(s, name, func() error { s.Bytes(bytes); return nil }))
}

// registry returns a registry of the budgets that refuses undescribed metrics.
func registry(t *testing.T, budgets ...*budget.Budget) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	for _, b := range budgets {
		require.NoError(t, r.Register(with.NewCollector(b)))
	}
	return r
}

// scrape returns the answer of a metrics server, read by the official parser.
func scrape(t *testing.T, r *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(w,
		httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.Body)
	require.NoError(t, err)
	return families
}

// values returns the values of a metric by its labels, without the budget's.
func values(of *dto.MetricFamily) map[string]float64 {
	all := map[string]float64{}
	for _, m := range of.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			if l.GetName() != "budget" {
				labels = append(labels, l.GetValue())
			}
		}
		all[strings.Join(labels, " / ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return all
}

// slots returns the slots of match.
func slots(r budget.Report) (list []budget.ArenaReport) {
	for _, a := range r.Arenas {
		if a.Part == "match" {
			list = append(list, a)
		}
	}
	return list
}

// TestScrape: a scrape equals the report.
func TestScrape(t *testing.T) {
	b := open(t, plan("game"))
	play(t, b)
	r, got := b.Published(), scrape(t, registry(t, b))
	used, size, fullest := 0.0, 0.0, 0.0
	for _, slot := range slots(r) {
		used, size, fullest = used+float64(slot.Used), size+float64(slot.Size), max(fullest, float64(slot.Used))
	}
	level := r.Arena("level")
	assert.Equal(t, map[string]float64{"": float64(r.Size)}, values(got["upfront_size_bytes"]))
	assert.Equal(t, used, values(got["upfront_region_used_bytes"])["match"])
	assert.Equal(t, size, values(got["upfront_region_size_bytes"])["match"])
	assert.Equal(t, fullest, values(got["upfront_region_arena_used_bytes"])["match"])
	assert.EqualValues(t, level.Used, values(got["upfront_region_used_bytes"])["level"])
	assert.EqualValues(t, level.Peak, values(got["upfront_region_arena_peak_bytes"])["level"])
	assert.EqualValues(t, 20, values(got["upfront_region_arenas"])["match"])
	assert.EqualValues(t, 10, values(got["upfront_region_arenas_in_use"])["match"])
	assert.EqualValues(t, 2, values(got["upfront_region_arenas"])["frame"])
	assert.EqualValues(t, 4, values(got["upfront_region_arenas"])["scratch"])
	assert.EqualValues(t, 3, values(got["upfront_region_open_labels"])["level"])
	assert.EqualValues(t, 5, values(got["upfront_region_open_limit"])["labels / match"])
	assert.EqualValues(t, 16, values(got["upfront_region_open_limit"])["scopes / match"])
	assert.EqualValues(t, 16, values(got["upfront_region_open_limit"])["pools / match"])
	assert.EqualValues(t, 7, values(got["upfront_region_open_limit"])["pools / level"], "its own")
	assert.Equal(t, used, values(got["upfront_region_allocated_bytes_total"])["match"])
	for _, name := range []string{"upfront_region_objects", "upfront_region_padding_bytes"} {
		assert.Equal(t, level.Counted, got[name] != nil, "only where they are counted")
		delete(got, name)
	}
	assert.NotContains(t, got, "upfront_go_heap_limit_bytes", "the plan has no go_heap")
	for _, name := range []string{"upfront_outside_bytes", "upfront_outside_error_bytes"} {
		assert.Equal(t, r.Outside.Unknown == "", got[name] != nil, "only where it is known")
		delete(got, name)
	}
	assert.Len(t, got, 13+len(budget.Figures())-2, "each other family has a value")
}

// TestBounded: names have at most as many series as the plan has labels, and no byte gets lost.
func TestBounded(t *testing.T) {
	b := open(t, plan("game"))
	play(t, b)
	got := scrape(t, registry(t, b))
	want, sum, names := 0.0, 0.0, 0
	for _, a := range slots(b.Published()) {
		for _, u := range a.Labels {
			want += float64(u.Bytes)
		}
	}
	for key, value := range values(got["upfront_label_used_bytes"]) {
		if strings.Contains(key, "match") {
			sum += value
			names++
		}
	}
	assert.Equal(t, want, sum)
	assert.Equal(t, 5+1, names)
	scopes := values(got["upfront_scope_used_bytes"])
	assert.Equal(t, values(got["upfront_region_used_bytes"])["match"], scopes["match / match"], "of all slots")
	level := values(got["upfront_label_used_bytes"])
	assert.Contains(t, level, "\uFFFD\"\n / level")
	assert.Contains(t, level, "others / level", "a label of that name is one of them")
}

func TestLint(t *testing.T) {
	b := open(t, plan("game"))
	play(t, b)
	problems, err := testutil.GatherAndLint(registry(t, b))
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// TestSeveral: budgets of different names fit into one registry; a second one of a name needs
// another label.
func TestSeveral(t *testing.T) {
	game, again, tool := open(t, plan("game")), open(t, plan("game")), open(t, plan("tool"))
	r := registry(t, game, tool)
	assert.Len(t, scrape(t, r)["upfront_size_bytes"].GetMetric(), 2)
	require.Error(t, r.Register(with.NewCollector(again)))
	r = prometheus.NewPedanticRegistry()
	for i, b := range []*budget.Budget{game, again} {
		labels := prometheus.Labels{"process": fmt.Sprint(i)}
		require.NoError(t, prometheus.WrapRegistererWith(labels, r).Register(with.NewCollector(b)))
	}
	assert.Len(t, scrape(t, r)["upfront_size_bytes"].GetMetric(), 2)
}

// TestFull: refused allocations are counted.
func TestFull(t *testing.T) {
	b := open(t, plan("game"))
	r := registry(t, b)
	assert.Zero(t, values(scrape(t, r)["upfront_region_fulls_total"])["level"])
	_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*struct{}, error) {
		s.Bytes(budget.MiB)
		return nil, nil
	})
	require.ErrorIs(t, err, budget.ErrFull)
	assert.EqualValues(t, 1, values(scrape(t, r)["upfront_region_fulls_total"])["level"])
}

// TestAnyGoroutine scrapes while the program plays and closes, for the race detector.
func TestAnyGoroutine(t *testing.T) {
	b := open(t, plan("game"))
	r := registry(t, b)
	stop := make(chan struct{})
	var scrapers sync.WaitGroup
	for range 4 {
		scrapers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := r.Gather(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 200 {
		fill(t, b.Region("level"), func(s scope.Scope) { label(t, s, "sound", 100); b.Frame().Bytes(8) })
		require.NoError(t, b.NextFrame())
	}
	require.NoError(t, b.Close())
	assert.NotZero(t, values(scrape(t, r)["upfront_region_arena_peak_bytes"])["level"])
	close(stop)
	scrapers.Wait()
}

// TestBare: a budget without a region, frame or scratch has metrics of its own.
func TestBare(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(with.NewCollector(open(t, budget.Plan{Name: "bare"}))))
	families, err := registry.Gather()
	require.NoError(t, err)
	assert.NotEmpty(t, families)
}
