package record_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

// everything uses all parts of game() in a map, each up to its limit.
func everything(t testing.TB) func(b *budget.Budget, r *record.Recording) {
	return func(b *budget.Budget, r *record.Recording) {
		r.Mark("start")
		load(t, b.Region("init"), func(s scope.Scope) { octets.Slice(s, 100) })
		r.Mark("E1M1")
		load(t, b.Region("level"), func(s scope.Scope) {
			for range 3 {
				frogs.Pool(s, 1)
				s.Defer(func() {})
				_ = scope.Label(s, fmt.Sprint(s.Free()), func() error { return nil })
			}
			for range 4 {
				s = s.Open("deeper")
				defer s.Close()
			}
			octets.Slice(s, 3000)
		})
		for range 3 {
			room, err := b.Slots("room").Acquire()
			require.NoError(t, err)
			load(t, room, func(s scope.Scope) { octets.Slice(s, 500) })
			octets.Slice(b.Frame(), 700)
			require.NoError(t, b.NextFrame())
		}
		for worker := range 2 {
			for which := range 2 {
				_ = b.Scratch(worker, which).Do("work", func(s scope.Scope) error { octets.Slice(s, 900); return nil })
			}
		}
		r.Mark("over")
	}
}

// TestKnobs: each size and number of a plan can be as small as the program allows, and not one
// smaller.
func TestKnobs(t *testing.T) {
	trace, was := recorded(t, game(), everything(t))
	for _, test := range []struct {
		key   string
		set   func(p *budget.Plan) *int
		least int
	}{
		{"frame.buffers", func(p *budget.Plan) *int { return &p.Frame.Buffers }, 3},
		{"scratch.workers", func(p *budget.Plan) *int { return &p.Scratch.Workers }, 2},
		{"scratch.each", func(p *budget.Plan) *int { return &p.Scratch.Each }, 2},
		{"regions[2].slots", func(p *budget.Plan) *int { return &p.Regions[2].Slots }, 3},
		{"limits.scopes", func(p *budget.Plan) *int { return &p.Limits.Scopes }, 5},
		{"limits.pools", func(p *budget.Plan) *int { return &p.Limits.Pools }, 3},
		{"limits.owned", func(p *budget.Plan) *int { return &p.Limits.Owned }, 3},
		{"limits.labels", func(p *budget.Plan) *int { return &p.Limits.Labels }, 3},
	} {
		t.Run(test.key, func(t *testing.T) {
			plan := game()
			knob := test.set(&plan)
			*knob = test.least
			_, _, err := record.Replay(plan, bytes.NewReader(trace))
			require.NoError(t, err)
			*knob--
			named(t, plan, trace, test.key, uint64(test.least))
		})
	}
	for _, test := range []struct {
		key   string
		set   func(p *budget.Plan) *uint64
		least uint64
	}{
		{"regions[0].size", func(p *budget.Plan) *uint64 { return &p.Regions[0].Size }, was.Arenas[0].Peak},
		{"regions[1].size", func(p *budget.Plan) *uint64 { return &p.Regions[1].Size }, was.Arenas[1].Peak},
		{"regions[2].size", func(p *budget.Plan) *uint64 { return &p.Regions[2].Size }, was.Arenas[2].Peak},
		{"frame.size", func(p *budget.Plan) *uint64 { return &p.Frame.Size }, beside(was)[0].Peak},
		{"scratch.size", func(p *budget.Plan) *uint64 { return &p.Scratch.Size }, beside(was)[3].Peak},
	} {
		t.Run(test.key, func(t *testing.T) {
			plan := game()
			knob := test.set(&plan)
			*knob = test.least
			_, _, err := record.Replay(plan, bytes.NewReader(trace))
			require.NoError(t, err)
			*knob--
			e := named(t, plan, trace, test.key, test.least)
			assert.NotEmpty(t, e.Scopes)
		})
	}
}

// named requires a replay to fail with a full error that names a key, and with the mark.
func named(t testing.TB, plan budget.Plan, trace []byte, key string, need uint64) *record.Error {
	t.Helper()
	e := failed(t, plan, bytes.NewReader(trace))
	var full *scope.FullError
	require.ErrorAs(t, e, &full)
	assert.ErrorIs(t, e, budget.ErrFull)
	assert.Equal(t, key, full.Key)
	assert.Equal(t, need, full.Need)
	assert.False(t, e.Whole)
	mark := map[string]string{"regions[0].size": "start"}[key]
	if mark == "" {
		mark = "E1M1"
	}
	assert.Equal(t, mark, e.Mark)
	assert.ErrorContains(t, e, fmt.Sprintf("after mark %q, event %d", mark, e.Events))
	assert.ErrorContains(t, e, fmt.Sprintf("raise %s in the plan to %d", key, need))
	return e
}

// TestOtherPlan: the plan of another program fails with the region that it lacks, or with its
// fault.
func TestOtherPlan(t *testing.T) {
	trace, _ := recorded(t, game(), everything(t))
	other := game()
	other.Regions = other.Regions[:1]
	require.EqualError(t, failed(t, other, bytes.NewReader(trace)),
		`after mark "E1M1", event 6: the plan has no region "level"; give a plan with the regions of the recording`)
	other = game()
	other.Name = "Game"
	_, _, err := record.Replay(other, bytes.NewReader(trace))
	require.ErrorContains(t, err, `plan "Game": name`)
}

// TestPlan: Plan returns the plan as it was opened.
func TestPlan(t *testing.T) {
	plan := game()
	plan.Size, plan.Regions[0].Size, plan.Limits = budget.MiB, budget.Rest, budget.Limits{}
	plan.Regions[1].Note = "a\nb\x00 <ü>"
	trace, was := recorded(t, plan, func(*budget.Budget, *record.Recording) {})
	read, err := record.Plan(bytes.NewReader(trace))
	require.NoError(t, err)
	want, err := json.Marshal(was.Plan)
	require.NoError(t, err)
	text, err := json.Marshal(read)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(text))

	for from, to := range map[string]string{
		`"name":"room"`: `"name":"Room"`,
		"upfront":       "Upfront",
		"recording 1":   "recording 2",
		`"slots":3`:     `"slots":3,"colour":3`,
	} {
		_, err = record.Plan(bytes.NewReader(bytes.Replace(trace, []byte(from), []byte(to), 1)))
		require.ErrorIs(t, err, record.ErrMalformed, to)
	}
}

// TestReplayHasGuards: the region of the remaining size isn't larger in a replay, since guards keep
// their place.
func TestReplayHasGuards(t *testing.T) {
	trace, _ := recorded(t, game(), everything(t))
	plan := game()
	plan.Size, plan.Regions[1].Size, plan.Pages.Guards = 4*budget.MiB, budget.Rest, budget.Wished
	want := open(t, plan).Report()
	plan.Pages.Guards = budget.Required
	report, _, err := record.Replay(plan, bytes.NewReader(trace))
	require.NoError(t, err)
	assert.Equal(t, want.Size, report.Size)
	assert.Equal(t, want.Arenas[1].Size, report.Arenas[1].Size)
	assert.Equal(t, want.Plan.Regions, report.Plan.Regions)
	assert.Empty(t, report.NotGranted, "of the machine that replays")
}

// TestPlanOfManyTables: a plan that costs GiBs to open is refused, unless the caller passes it.
func TestPlanOfManyTables(t *testing.T) {
	plan := game()
	plan.Regions[2].Slots = 4096
	read := func() error {
		text, err := json.Marshal(plan)
		require.NoError(t, err)
		_, err = record.Plan(strings.NewReader("upfront recording 1\n" + string(text) + "\n"))
		return err
	}
	require.NoError(t, read())
	plan.Limits.Scopes = 4096
	require.ErrorIs(t, read(), record.ErrMalformed)
	if bits.UintSize == 64 { // 32 bits have too few addresses
		require.ErrorContains(t, read(), "the tables of its plan take")
	}
	plan.Regions[2].Slots = 1
	require.NoError(t, read())
	plan.Limits = budget.Limits{Scopes: 65535, Pools: 65535, Owned: 65535, Labels: 65535}
	plan.Regions[2].Slots = 4096
	require.ErrorIs(t, read(), record.ErrMalformed)
}
