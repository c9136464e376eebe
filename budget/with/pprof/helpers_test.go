package pprof_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var plan = budget.Plan{
	Name: "game",
	Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB}, {Name: "nested", Size: 100 * budget.KiB},
		{Name: "match", Size: 70 * budget.KiB, Slots: 3}},
	Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
	Scratch: budget.ScratchPlan{Workers: 2, Size: 64 * budget.KiB},
}

// play opens a budget and fills each of its parts.
func play(t *testing.T) *budget.Budget {
	t.Helper()
	b, err := budget.Open(plan)
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	fill(t, b.Region("level"), func(s scope.Scope) {
		s.Temp(5000).Bytes(5000)
		s.Bytes(30_000)
		label(t, s, "sound", 12_345)
		label(t, s, "monsters <&>\n", 54_321)
	})
	fill(t, b.Region("nested"), func(s scope.Scope) { s.Bytes(7) })
	for i := range 2 {
		slot, err := b.Slots("match").Acquire()
		require.NoError(t, err)
		fill(t, slot, func(s scope.Scope) { s.Bytes(1000 * (i + 1)); label(t, s, "players", 777) })
		t.Cleanup(func() { _ = slot.Release(context.Background()) })
	}
	b.Frame().Bytes(99)
	require.NoError(t, b.NextFrame())
	b.Frame().Bytes(33)
	return b
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

// sums returns the report's totals by sample type.
func sums(r budget.Report) map[string]uint64 {
	all := map[string]uint64{"planned_space": r.Size, "outside_space": r.Outside.Bytes}
	for _, a := range r.Arenas {
		all["inuse_space"] += a.Used
		all["inuse_objects"] += a.Objects
		for _, f := range budget.Figures() {
			if f.Bytes && !f.Most {
				all[f.Name+"_space"] += f.Of(&a)
			}
		}
		all["peak_space"] += max(a.Used, a.Peak)
		for _, u := range a.Scopes {
			all["alloc_space"] += u.Allocated
			all["alloc_objects"] += u.AllocatedObjects
			all["scopes_peak_space"] += u.Peak
			all["scopes_peak_objects"] += u.PeakObjects
		}
		for _, u := range a.Labels {
			all["labels_alloc_space"] += u.Allocated
			all["labels_inuse_space"] += u.Bytes
			all["labels_peak_space"] += u.Peak
		}
	}
	return all
}

// totals returns a profile's totals by sample type.
func totals(p *profile.Profile) map[string]uint64 {
	all := map[string]uint64{}
	for i, t := range p.SampleType {
		for _, s := range p.Sample {
			all[t.Type] += uint64(s.Value[i])
		}
	}
	return all
}

// stacks returns the values of a sample type by stack, the budget first, without lines of code.
func stacks(p *profile.Profile, name string) map[string]int64 {
	all := map[string]int64{}
	for i, t := range p.SampleType {
		for _, s := range p.Sample {
			if t.Type != name || s.Value[i] == 0 {
				continue
			}
			text := ""
			for k := len(s.Location) - 1; k >= 0; k-- {
				if line := s.Location[k].Line[0]; line.Line == 0 {
					text += " > " + line.Function.Name
				}
			}
			all[text[3:]] += s.Value[i]
		}
	}
	return all
}

// below returns the sum of all stacks with that beginning.
func below(stacks map[string]int64, begin string) (sum int64) {
	for stack, value := range stacks {
		if stack == begin || strings.HasPrefix(stack, begin+" > ") {
			sum += value
		}
	}
	return sum
}
