package pprof_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	with "github.com/upfront-mem/upfront/budget/with/pprof"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// TestTotals: each sample type's total is the report's to the byte, also for a report from JSON and
// a closed budget.
func TestTotals(t *testing.T) {
	b := play(t)
	reports := map[string]budget.Report{"report": b.Report(), "published": b.Published()}
	text, err := json.Marshal(b.Report())
	require.NoError(t, err)
	var back budget.Report
	require.NoError(t, json.Unmarshal(text, &back))
	reports["json"] = back
	_ = b.Close()
	reports["closed"] = b.Report()
	for name, r := range reports {
		p, err := with.Profile(r)
		require.NoError(t, err, name)
		want := sums(r)
		for kind, total := range totals(p) {
			assert.Equal(t, want[kind], total, "%s: %s", name, kind)
		}
		assert.Equal(t, "inuse_space", p.DefaultSampleType)
		var file bytes.Buffer
		require.NoError(t, p.Write(&file))
		read, err := profile.Parse(&file)
		require.NoError(t, err)
		assert.Equal(t, totals(p), totals(read))
	}
	assert.NotZero(t, sums(reports["closed"])["peak_space"])
}

// TestStacks: stacks name the holder and its slot.
func TestStacks(t *testing.T) {
	r := play(t).Report()
	p, err := with.Profile(r)
	require.NoError(t, err)
	inuse, labels := stacks(p, "inuse_space"), stacks(p, "labels_inuse_space")
	held := usageOf(r.Arenas[0].Labels)
	for _, name := range []string{"sound", "monsters <&>�"} {
		assert.EqualValues(t, held[name], labels["budget game > region level > label "+name])
		assert.EqualValues(t, held[name], inuse["budget game > region level > scope level > label "+name])
	}
	assert.NotZero(t, stacks(p, "scopes_peak_space")["budget game > region level > scope temp"])
	assert.Contains(t, inuse, "budget game > region match > slot match 1 > scope match > label players")
	assert.Contains(t, inuse, "budget game > frame > frame 1 > scope frame")
	assert.EqualValues(t, r.Arenas[2].Peak, stacks(p, "peak_space")["budget game > region match > slot match 0"])
	assert.Contains(t, stacks(p, "planned_space"), "budget game > tables and padding")
}

// TestAllocated: released bytes stay in alloc_space.
func TestAllocated(t *testing.T) {
	b := budgettest.Open(t, budget.Plan{Name: "game", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}})
	for range 3 {
		fill(t, b.Region("level"), func(s scope.Scope) {
			label(t, s, "sound", 1000)
			s.Temp(64).Bytes(64)
		})
	}
	p, err := with.Profile(b.Published())
	require.NoError(t, err)
	assert.EqualValues(t, 3000, stacks(p, "labels_alloc_space")["budget game > region level > label sound"])
	all, held := stacks(p, "alloc_space"), stacks(p, "inuse_space")
	assert.EqualValues(t, 3*64, all["budget game > region level > scope temp"])
	assert.EqualValues(t, 3*below(held, "budget game > region level"), all["budget game > region level > scope level"])
	if objects := stacks(p, "alloc_objects"); len(objects) != 0 {
		assert.EqualValues(t, 3*totals(p)["inuse_objects"], objects["budget game > region level > scope level"])
	}
}

// TestLongNames: long names in a foreign report don't multiply its size.
func TestLongNames(t *testing.T) {
	r := budget.Report{Name: strings.Repeat("é", 1<<20), Size: 1,
		Arenas: []budget.ArenaReport{{Name: "level", Part: "level", Kind: "region", Size: 1}}}
	for i := range 1000 {
		r.Arenas[0].Labels = append(r.Arenas[0].Labels, scope.Usage{Name: fmt.Sprint(i), Peak: 1})
	}
	p, err := with.Profile(r)
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, p.WriteUncompressed(&file))
	assert.Less(t, file.Len(), 1<<20)
	assert.True(t, utf8.ValidString(p.Function[0].Name))
}

// TestLabelsOfSeveralScopes: while a load has an inner scope, the scope of a label isn't known.
func TestLabelsOfSeveralScopes(t *testing.T) {
	b := play(t)
	fill(t, b.Region("nested"), func(s scope.Scope) {
		s.Temp(100).Bytes(100)
		label(t, s, "outer", 1000)
		require.NoError(t, s.Do("inner", func(s scope.Scope) error {
			label(t, s, "inner", 2000)
			r := b.Report()
			p, err := with.Profile(r)
			require.NoError(t, err)
			inuse, scopes := stacks(p, "inuse_space"), usageOf(r.Arenas[1].Scopes)
			for _, name := range []string{"nested", "inner", "temp"} {
				assert.EqualValues(t, scopes[name], below(inuse, "budget game > region nested > scope "+name))
				assert.NotZero(t, scopes[name])
			}
			if len(r.Arenas[1].Sites) == 0 {
				assert.NotContains(t, fmt.Sprint(inuse), "label inner")
			} else {
				assert.EqualValues(t, 2000, inuse["budget game > region nested > scope inner > label inner"])
			}
			assert.Contains(t, stacks(p, "labels_inuse_space"), "budget game > region nested > label inner")
			assert.Equal(t, sums(r)["inuse_space"], totals(p)["inuse_space"])
			return nil
		}))
	})
}

func usageOf(list []scope.Usage) map[string]uint64 {
	all := map[string]uint64{}
	for _, u := range list {
		if u.Name == "monsters <&>\n" {
			u.Name = "monsters <&>�"
		}
		all[u.Name] = u.Bytes
	}
	return all
}

// TestSites: in a checked build stacks end with lines of code, and other bytes stay with their
// arena.
func TestSites(t *testing.T) {
	made := []string{"main.newFrog /pond/frog.go:7", "main.load.func1 /pond/load.go:31", "strange"}
	match := budget.ArenaReport{Name: "match 3", Part: "match", Index: 3, Kind: "slot", Size: 100, Used: 90, Objects: 2,
		Scopes: []scope.Usage{{Name: "match 3", Bytes: 90}}, Labels: []scope.Usage{{Name: "frogs", Bytes: 50}},
		Sites: []stack.Site{{Scope: "match 3", Label: "frogs", Type: "pond.Frog", Made: made, Bytes: 50, Padding: 2,
			Objects: 2},
			{Scope: "match 3", Bytes: 33}}}
	r := budget.Report{Name: "game", Size: 100, Arenas: []budget.ArenaReport{match}}
	p, err := with.Profile(r)
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"budget game > region match > slot match 3": 7,
		"budget game > region match > slot match 3 > scope match":                         33,
		"budget game > region match > slot match 3 > scope match > label frogs > strange": 50},
		stacks(p, "inuse_space"))
	assert.EqualValues(t, 2, totals(p)["inuse_objects"])
	found := false
	for _, s := range p.Sample {
		if leaf := s.Location[0].Line[0]; leaf.Line != 0 {
			assert.Equal(t, "main.newFrog", leaf.Function.Name)
			assert.Equal(t, "/pond/frog.go", leaf.Function.Filename)
			assert.EqualValues(t, 7, leaf.Line)
			assert.Equal(t, []string{"pond.Frog"}, s.Label["type"])
			found = true
		}
	}
	assert.True(t, found)
	r.Arenas[0].Sites[1].Bytes = 41
	_, err = with.Profile(r)
	assert.ErrorContains(t, err, "match 3: its sites have more bytes than it has")
}

// TestReleaseHasNoObjects: a column without counts is left out.
func TestReleaseHasNoObjects(t *testing.T) {
	r := budget.Report{Name: "game", Size: 10,
		Arenas: []budget.ArenaReport{{Name: "level", Part: "level", Kind: "region", Size: 10, Used: 3}}}
	has := func() bool {
		p, err := with.Profile(r)
		require.NoError(t, err)
		_, found := totals(p)["inuse_objects"]
		return found
	}
	assert.False(t, has())
	r.Arenas[0].Objects = 1
	assert.True(t, has())
}

// TestContradictions: a report that contradicts itself is an error with the place.
func TestContradictions(t *testing.T) {
	level := budget.ArenaReport{Name: "level", Part: "level", Kind: "region", Size: 100, Used: 50,
		Scopes: []scope.Usage{{Name: "level", Bytes: 50}}}
	for says, damage := range map[string]func(r *budget.Report, a *budget.ArenaReport){
		"level: its scopes have more bytes than it has: level": func(_ *budget.Report, a *budget.ArenaReport) {
			a.Used = 49
		},
		"its labels have more bytes than it has: b": func(_ *budget.Report, a *budget.ArenaReport) {
			a.Labels = []scope.Usage{{Name: "a", Bytes: 50}, {Name: "b", Bytes: 1}}
		},
		"its scopes have more count than it has: level": func(_ *budget.Report, a *budget.ArenaReport) {
			a.Scopes[0].Objects = 1
		},
		"its size of 100 bytes is less than its arenas have": func(r *budget.Report, a *budget.ArenaReport) {
			a.Size = 101
		},
		"peak_space is beyond 63 bits": func(_ *budget.Report, a *budget.ArenaReport) { a.Peak = math.MaxInt64 + 1 },
		"labels_peak_space is beyond 63 bits": func(_ *budget.Report, a *budget.ArenaReport) {
			a.Labels = []scope.Usage{{Name: "a", Peak: math.MaxUint64}, {Name: "b", Peak: 7}}
		},
	} {
		a := level
		a.Scopes = []scope.Usage{level.Scopes[0]}
		r := budget.Report{Name: "game", Size: 100}
		damage(&r, &a)
		r.Arenas = []budget.ArenaReport{a}
		_, err := with.Profile(r)
		assert.ErrorContains(t, err, says)
	}
}

func FuzzProfile(f *testing.F) {
	f.Add([]byte(`{"name": "x", "size": 9, "arenas": [{"name": "a 1 2", "part": "a", "kind": "slot", "size": 9, "used": 7, "peak": 9,
		"scopes": [{"name": "\u0000", "bytes": 7}], "labels": [{"name": "", "bytes": 6}]}]}`))
	f.Add([]byte(`{"size": 18446744073709551615, "arenas": [{"name": "frame", "used": 18446744073709551615},
		{"name": "frame", "used": 18446744073709551615, "labels": [{"bytes": 18446744073709551615}]}]}`))
	f.Add([]byte(`{"size": 9, "arenas": [{"name": "a", "part": "a", "kind": "region", "size": 9, "used": 7, "sites": [{"scope": "a", "bytes": 6, "objects": 0,
		"made": ["f x.go:1", " :", "g x.go:-1", "h x.go:99999999999"]}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r budget.Report
		if json.Unmarshal(text, &r) != nil {
			return
		}
		p, err := with.Profile(r)
		if err != nil {
			return
		}
		want := sums(r)
		for kind, total := range totals(p) {
			if total != want[kind] {
				t.Fatalf("%s: %d in the profile, %d in the report", kind, total, want[kind])
			}
		}
	})
}

// TestBare: the profile of a budget without a region, frame or scratch has only its tables, and the
// memory outside.
func TestBare(t *testing.T) {
	r := budgettest.Open(t, budget.Plan{Name: "bare"}).Report()
	r.Outside.Bytes = 5 * budget.MiB
	p, err := with.Profile(r)
	require.NoError(t, err)
	require.NoError(t, p.CheckValid())
	assert.EqualValues(t, r.Size, totals(p)["planned_space"])
	assert.EqualValues(t, 5*budget.MiB, stacks(p, "outside_space")["budget bare > outside"])
	assert.Len(t, p.Sample, 2)
	r.Outside = budget.Outside{}
	p, err = with.Profile(r)
	require.NoError(t, err)
	assert.Len(t, p.Sample, 1)
	assert.NotContains(t, totals(p), "outside_space")
}
