package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// agreed returns the report that each reader knows.
func agreed(t *testing.T) (r budget.Report) {
	t.Helper()
	data, err := os.ReadFile("../../testdata/agree.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &r))
	return r
}

// given returns the values of a report by the metric and the values of its labels.
func given(t *testing.T, r budget.Report) map[string]uint64 {
	t.Helper()
	got := map[string]uint64{}
	Each(&r, func(i int, value uint64, region, name string) {
		m := table[i]
		key := strings.TrimSpace(m.Name + " " + strings.TrimSpace(region+" "+name))
		assert.NotContains(t, got, key)
		assert.Equal(t, len(m.Labels) > 0, region != "", key)
		assert.Equal(t, len(m.Labels) > 1, name != "", key)
		got[key] = value
	})
	return got
}

// waits are the figures that only quotas and slots have.
var waits = map[string]bool{"waiting": true, "waited": true, "longest_wait": true}

// TestAgree: metrics have the values of the report, and those of the table that every reader of the
// report has.
func TestAgree(t *testing.T) {
	r := agreed(t)
	got := given(t, r)
	for name, value := range map[string]uint64{"size": r.Size, "committed": r.Committed,
		"not_granted": uint64(len(r.NotGranted)), "finalizer_errors": uint64(r.ErrorCount),
		"go_heap_limit": r.GoHeap.Limit, "go_heap_used": r.GoHeap.Used,
		"outside": r.Outside.Bytes, "outside_error": r.Outside.Error} {
		assert.NotZero(t, value, name)
		assert.Equal(t, value, got[name], name)
	}
	data, err := os.ReadFile("../../testdata/agree.txt")
	require.NoError(t, err)
	names := map[string]string{"used": "label_used", "arena_used": "label_arena_used", "peak": "label_arena_peak"}
	count := 0
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		// only a checked build counts the last two
		if words[0] == "#" || words[1] == "objects" || words[1] == "padding" {
			continue
		}
		key := "region_" + words[1] + " " + words[0]
		if of := strings.Split(words[1], ":"); len(of) == 3 {
			key = names[of[2]] + " " + words[0] + " " + of[1]
		}
		value, err := strconv.ParseUint(words[2], 10, 64)
		require.NoError(t, err)
		if _, shown := got[key]; !shown && value == 0 && waits[words[1]] {
			continue // of a part for which no caller can wait
		}
		require.Contains(t, got, key)
		assert.Equal(t, value, got[key], line)
		count++
	}
	assert.Greater(t, count, 80)
}

// TestWhole: no figure is left out, each metric of the table has a value, and a part of C's malloc
// is a part like any other.
func TestWhole(t *testing.T) {
	r := agreed(t)
	for i := range r.Arenas {
		r.Arenas[i].Counted = true
	}
	r.CHeap.ArenaReport = budget.ArenaReport{Name: "c_heap", Part: "c_heap", Kind: "c_heap", Size: 123, Peak: 45}
	got := given(t, r)
	for _, f := range budget.Figures() {
		assert.Contains(t, got, "region_"+f.Name+" room")
		_, shown := got["region_"+f.Name+" level"]
		assert.Equal(t, !waits[f.Name], shown, f.Name)
	}
	assert.EqualValues(t, 123, got["region_size c_heap"])
	assert.EqualValues(t, 45, got["region_arena_peak c_heap"])
	found := map[string]bool{}
	for key := range got {
		name, _, _ := strings.Cut(key, " ")
		found[name] = true
	}
	names := map[string]bool{}
	for _, m := range Table() {
		assert.True(t, found[m.Name], "%s has no value", m.Name)
		assert.False(t, names[m.Name], "%s is in the table twice", m.Name)
		assert.NotEmpty(t, m.Unit, "%s needs an entry in units", m.Name)
		names[m.Name] = true
	}
}

// TestUnknown: a value that isn't known is left out.
func TestUnknown(t *testing.T) {
	r := agreed(t)
	r.GoHeap.Limit, r.Outside = 0, budget.Outside{Unknown: "no /proc"}
	got := given(t, r)
	assert.NotContains(t, got, "go_heap_limit")
	assert.NotContains(t, got, "outside")
	assert.NotContains(t, got, "outside_error")
	assert.NotContains(t, got, "region_objects level")
	assert.NotContains(t, got, "region_padding level")
	assert.NotContains(t, got, "region_allocated scratch")
}

func TestBounded(t *testing.T) {
	names := func() (list []budget.PartUsage) {
		for i, name := range []string{"map", "\xff", "others", "\uFFFD", "frog", "newt"} {
			n := uint64(10 * (i + 1))
			u := scope.Usage{Name: name, Bytes: n, Peak: 2 * n}
			list = append(list, budget.PartUsage{Usage: u, ArenaBytes: n - 1})
		}
		return list
	}
	for most, want := range map[int]string{
		5: "\uFFFD 60 39 80, newt 60 59 120, frog 50 49 100, map 10 9 20, others 30 29 60",
		2: "newt 60 59 120, frog 50 49 100, others 100 39 80",
		0: "newt 60 59 120, others 150 49 100",
	} {
		var got []string
		for _, u := range bounded(names(), most) {
			got = append(got, fmt.Sprint(u.Name, " ", u.Bytes, " ", u.ArenaBytes, " ", u.Peak))
		}
		assert.ElementsMatch(t, strings.Split(want, ", "), got, most)
	}
	assert.Empty(t, bounded(nil, 3))
}

// TestGarbage: only the report's parts make Go allocations.
func TestGarbage(t *testing.T) {
	if arena_c.Asan {
		t.Skip("AddressSanitizer allocates: go test ./budget/internal/metrics runs it")
	}
	r := agreed(t)
	parts := testing.AllocsPerRun(100, func() { r.Parts() })
	assert.Equal(t, parts, testing.AllocsPerRun(100, func() { Each(&r, func(int, uint64, string, string) {}) }))
}
