package budget

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/platform/jsonfile"
	"github.com/upfront-mem/upfront/tests/conformance/bindings"
	"github.com/upfront-mem/upfront/tests/step"
)

const handheldJSON = `{"name":"handheld","regions":[{"name":"init","size":"4MiB"},{"name":"systems","size":"12MiB"},` +
	`{"name":"level","size":"40MiB","note":"largest map + 10 %"}],"frame":{"buffers":2,"size":"1MiB"},` +
	`"scratch":{"workers":2,"size":"1MiB"},"go_heap":"32MiB"}`

func handheld() Plan {
	return Plan{
		Name: "handheld",
		Regions: []RegionPlan{
			{Name: "init", Size: 4 * MiB},
			{Name: "systems", Size: 12 * MiB},
			{Name: "level", Size: 40 * MiB, Note: "largest map + 10 %"},
		},
		Frame:   FramePlan{Buffers: 2, Size: MiB},
		Scratch: ScratchPlan{Workers: 2, Size: MiB},
		GoHeap:  32 * MiB,
	}
}

func TestPlanRead(t *testing.T) {
	plan, err := ParsePlan([]byte(handheldJSON))
	require.NoError(t, err)
	assert.Equal(t, handheld(), plan)

	name := filepath.Join(t.TempDir(), "handheld.json")
	require.NoError(t, os.WriteFile(name, []byte(handheldJSON), 0o600))
	plan, err = ReadPlan(name)
	require.NoError(t, err)
	assert.Equal(t, handheld(), plan)

	all,
		err := ParsePlan([]byte(`{"go_heap":4194304,"limits":{"labels":3,"owned":1,"pools":2,"scopes":65535},"size":"1GiB",
		"pages":{"base":"required","guards":"off","huge":"wished","lock":"required","prefault":"off"},"base":35184372088832,
		"regions":[{"note":"n","slots":7,"size":65536,"name":"a"},{"size":"rest","name":"b"}],"name":"x"}`))
	require.NoError(t, err)
	assert.Equal(t, Plan{Name: "x", Size: GiB, Base: 0x200000000000,
		Regions: []RegionPlan{{Name: "a", Size: 64 * KiB, Slots: 7, Note: "n"},
			{Name: "b", Size: Rest}}, Limits: Limits{65535, 2, 1, 3},
		Pages: Pages{Off, Required, Wished, Off, Required}, GoHeap: 4 * MiB}, all)
}

func TestPlanMarshal(t *testing.T) {
	data, err := json.Marshal(handheld())
	require.NoError(t, err)
	assert.Equal(t, handheldJSON, string(data))

	data, err = json.Marshal(Plan{Name: "server", Size: GiB, Base: 0x20_0000,
		Regions: []RegionPlan{{Name: "match", Size: MiB, Slots: 16},
			{Name: "cache", Size: Rest, Note: "n"}}, Pages: Pages{Off, Wished, Required, Default, Wished}})
	require.NoError(t, err)
	assert.Equal(t,
		`{"name":"server","size":"1GiB","base":"0x200000","regions":[{"name":"match","size":"1MiB","slots":16},`+
			`{"name":"cache","size":"rest","note":"n"}],"pages":{"prefault":"off","lock":"wished","huge":"required","base":"wished"}}`,
		string(data))
	data, err = json.Marshal(Plan{Size: math.MaxUint64, Frame: FramePlan{Size: math.MaxUint64}})
	require.NoError(t, err)
	assert.NotContains(t, string(data), "rest", "only a region has it")

	var inside struct{ Plan Plan }
	require.NoError(t, json.Unmarshal([]byte(`{"Plan":`+handheldJSON+`}`), &inside))
	assert.Equal(t, handheld(), inside.Plan)
	err = json.Unmarshal([]byte(`{"Plan":{"name":"a","regions":[],"size":-1}}`), &inside)
	assert.ErrorContains(t, err, `line 1: size: -1 is not a size`)
	assert.Equal(t, handheld(), inside.Plan, "unchanged")
}

func TestPlanTotal(t *testing.T) {
	assert.EqualValues(t, 62*MiB, handheld().total())
	plan := Plan{Name: "odd", Regions: []RegionPlan{{Name: "a", Size: 1}, {Name: "b", Size: 64*KiB + 1}},
		Frame: FramePlan{3, 1}, Scratch: ScratchPlan{Workers: 2, Size: 1}, Size: 10 * 64 * KiB}
	assert.NoError(t, plan.Check(), "exactly")
	assert.EqualValues(t, 10*64*KiB, plan.total())
	plan.Size--
	assert.EqualError(t, plan.Check(),
		`plan "odd": size: 655359 is less than the parts need: 640KiB (regions 192KiB, frame 192KiB, `+
			`scratch 256KiB; each rounded up to 64KiB)`)
	assert.Equal(t, Limits{64, 64, 256, 32}, Limits{}.orDefault())
	assert.Equal(t, Limits{1, 2, 3, 4}, Limits{1, 2, 3, 4}.orDefault())
}

func manyRegions(n int, size uint64) (list []RegionPlan) {
	for i := range n {
		list = append(list, RegionPlan{Name: fmt.Sprint("r", i), Size: size})
	}
	return list
}

var planChecks = []struct {
	change func(*Plan)
	fault  string // "" for a plan at the limit, which is valid too
}{
	{func(p *Plan) { p.Name = "" }, `name: "" has 0 bytes; a name has 1 to 31`},
	{func(p *Plan) { p.Name = strings.Repeat("a", 31) }, ""},
	{func(p *Plan) { p.Name = strings.Repeat("a", 32) }, "has 32 bytes"},
	{func(p *Plan) { p.Name = "az09_-" }, ""},
	{func(p *Plan) { p.Name = "Big" }, `name: "Big" has "B"; a name has a-z, 0-9, _ and - only`},
	{func(p *Plan) { p.Regions[1].Name = "a b" }, `regions[1].name: "a b" has " "`},
	{func(p *Plan) { p.Regions[1].Name = "é" }, `regions[1].name: "é" has "\xc3"`},
	{func(p *Plan) {
		p.Regions[1].Name = "frame"
	}, `regions[1].name: "frame" is the name of the frame; choose another name`},
	{func(p *Plan) { p.Regions[1].Name = "scratch" },
		`regions[1].name: "scratch" is the name of the scratch; choose another name`},
	{func(p *Plan) { p.Regions[2].Name = "init" }, `regions[2].name: "init" is the name of regions[0] already`},
	{func(p *Plan) { p.Regions[2].Size = 0 }, "regions[2].size: 0 bytes; give a size"},
	{func(p *Plan) { p.Regions[2].Size = math.MaxUint64 - 1 }, "regions[2].size: 18446744073709551614; a budget has " +
		"less than 256GiB, tables included"},
	{func(p *Plan) { p.Regions[0].Note = "\xff" }, "regions[0].note: not UTF-8"},
	{func(p *Plan) { p.Regions = nil }, ""}, // frame and scratch
	{func(p *Plan) { p.Regions, p.Frame, p.Scratch = nil, FramePlan{}, ScratchPlan{} }, ""},
	{func(p *Plan) { *p = Plan{Name: "a"} }, ""},
	{func(p *Plan) { *p = Plan{} }, `name: "" has 0 bytes; a name has 1 to 31`},
	{func(p *Plan) { *p = Plan{Name: "a", GoHeap: Rest, CHeap: CHeapPlan{Size: MiB}} }, ""},
	{func(p *Plan) { *p = Plan{Name: "a", Size: 1<<38 - 128*KiB} }, ""},
	{func(p *Plan) { *p = Plan{Name: "a", Size: 1<<38 - 64*KiB} }, "size: 268435392KiB, and the tables need 64KiB; " +
		"a budget has less than 256GiB"},
	{func(p *Plan) { p.Regions = manyRegions(64, MiB) }, ""},
	{func(p *Plan) { p.Regions = manyRegions(65, MiB) }, "regions: 65 of them"},
	{func(p *Plan) {
		*p = Plan{Name: "max", Regions: manyRegions(64, 4*GiB)}
		p.Regions[0].Size -= MiB
	}, ""},
	{func(p *Plan) { *p = Plan{Name: "max", Regions: manyRegions(64, 4*GiB)} },
		"regions: the parts need 256GiB (regions 256GiB, frame 0, scratch 0; each rounded up to 64KiB), and their " +
			"tables 960KiB; a budget has less than 256GiB"},
	{func(p *Plan) { p.Regions = manyRegions(64, 1<<38) }, "regions: the parts need"},
	{func(p *Plan) { p.Size = 1<<38 + 1 }, "size: 274877906945; a budget has less than 256GiB, tables included"},
	{func(p *Plan) { p.Size = 1 << 38 }, "size: 256GiB, and the tables need 128KiB; a budget has less than 256GiB"},
	{func(p *Plan) { p.Size = 1<<38 - 128*KiB }, "size: 268435328KiB, and the tables need 128KiB; a budget has less " +
		"than 256GiB"},
	{func(p *Plan) { p.Size = 1<<38 - 192*KiB }, ""},
	{func(p *Plan) { p.Size, p.Pages.Guards = 1<<38-192*KiB, Wished }, "size: 268435264KiB, and the tables need " +
		"192KiB; a budget has less"},
	{func(p *Plan) { p.Size = 62 * MiB }, ""},
	{func(p *Plan) { p.Size = 61 * MiB }, "size: 61MiB is less than the parts need: 62MiB (regions 56MiB, frame " +
		"2MiB, scratch 4MiB;"},
	{func(p *Plan) { p.Frame = FramePlan{} }, ""},
	{func(p *Plan) { p.Frame.Buffers = -1 }, "frame.buffers: -1 is out of range: give 0 (none) or 1 to 8"},
	{func(p *Plan) { p.Frame.Buffers = 0 }, "frame.buffers: 0, but frame.size is 1MiB; give both or neither"},
	{func(p *Plan) { p.Frame.Buffers = 1 }, ""},
	{func(p *Plan) { p.Frame.Buffers = 8 }, ""},
	{func(p *Plan) { p.Frame.Buffers = 9 }, "frame.buffers: 9 is out of range: give 0 (none) or 1 to 8"},
	{func(p *Plan) { p.Frame.Size = 0 }, "frame.size: 0 bytes"},
	{func(p *Plan) { p.Frame.Size = math.MaxUint64 }, "frame.size: 18446744073709551615; a budget has less than " +
		"256GiB, tables included"},
	{func(p *Plan) { p.Scratch = ScratchPlan{} }, ""},
	{func(p *Plan) { p.Scratch.Workers = math.MinInt }, "scratch.workers: -"},
	// such a number is in no sum
	{func(p *Plan) { p.Scratch.Workers = -100 }, "scratch.workers: -100"},
	{func(p *Plan) { p.Scratch.Workers = 0 }, "scratch.workers: 0, but scratch.size is 1MiB"},
	{func(p *Plan) { p.Scratch.Workers = 256 }, ""},
	{func(p *Plan) { p.Scratch.Workers = 257 }, "scratch.workers: 257 is out of range: give 0 (none) or 1 to 256"},
	{func(p *Plan) { p.Scratch.Size = 0 }, "scratch.size: 0 bytes"},
	{func(p *Plan) { p.Scratch.Each = 8 }, ""},
	{func(p *Plan) { p.Scratch.Each = 9 }, "scratch.each: 9 is out of range: give 0 (the default) or 1 to 8"},
	{func(p *Plan) { p.Scratch.Each = -1 }, "scratch.each: -1 is out of range: give 0 (the default) or 1 to 8"},
	{func(p *Plan) { p.Scratch = ScratchPlan{Each: 1} }, "scratch.each: 1, but scratch.workers is 0"},
	{func(p *Plan) { p.Scratch.Size = 1 << 38 }, "regions: the parts need"},
	{func(p *Plan) { p.Limits = Limits{1, 65535, 0, 65535} }, ""},
	{func(p *Plan) { p.Limits.Scopes = -1 }, "limits.scopes: -1 is out of range: give 0 (the default) or 1 to 65535"},
	{func(p *Plan) { p.Limits.Pools = 65536 }, "limits.pools: 65536"},
	{func(p *Plan) { p.Limits.Owned = 65536 }, "limits.owned: 65536"},
	{func(p *Plan) { p.Limits.Labels = 65536 }, "limits.labels: 65536"},
	{func(p *Plan) { p.GoHeap = 0 }, ""},
	{func(p *Plan) { p.GoHeap = 4 * MiB }, ""},
	{func(p *Plan) { p.GoHeap = 4*MiB - 1 }, "go_heap: 4194303 is out of range: give 0 (no limit), \"rest\", or " +
		"4MiB to 64TiB"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: 64*KiB - 1} }, "c_heap: 65535 is out of range: give 64KiB to 255GiB"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: 255 * GiB} }, ""},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: 255*GiB + 1} }, "c_heap: 273804165121 is out of range: give 64KiB to " +
		"255GiB"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Fronts: 1} }, "c_heap.size: 0 is out of range: give 64KiB to 255GiB"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: 127 * KiB} },
		"c_heap: 127KiB is too small: 64KiB of it are for Go's runtime; give 128KiB or more, or a c_heap.runtime of " +
			"4KiB to 65024"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: MiB, Runtime: MiB/2 + 1} },
		"c_heap.runtime: 524289 is out of range: give 0 (the default, 64KiB), or 4KiB to half of the size, 512KiB"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: MiB, Runtime: 4*KiB - 1} }, "c_heap.runtime: 4095 is out of range"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: MiB, Reserve: MiB/2 + 1} },
		"c_heap.reserve: 524289; at most half of the size, 512KiB, and less than the 953KiB that c_heap.runtime " +
			"and the profile leave"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: 128 * KiB, Reserve: 64 * KiB} }, "c_heap.reserve: 64KiB; at most " +
		"half of the size, 64KiB, and less than the 57KiB"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: MiB, Fronts: 65} }, "c_heap.fronts: 65 is out of range: give 0 (the " +
		"default) or 1 to 64"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: MiB, Trim: 1} }, "c_heap.trim: 1ns is out of range: give 0 (never) " +
		"or 10ms or more"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: MiB, Profile: 16*KiB - 1} }, "c_heap.profile: 16383 is out of range: " +
		"give 0 (the default, 512KiB), \"off\", or 16KiB to 255GiB"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: MiB, Profile: 1} }, "c_heap.profile: 1 is out of range"},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: MiB, Profile: 16 * KiB} }, ""},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: MiB, Profile: NoProfile} }, ""},
	{func(p *Plan) { p.CHeap = CHeapPlan{Size: MiB, Warn: 100} }, "c_heap.warn: 100% is out of range: give 0 (none) " +
		"or 1% to 99%"},
	{func(p *Plan) { p.CHeap, p.Pages.Lock = CHeapPlan{Size: MiB, Trim: time.Second}, Required },
		`c_heap.trim: 1s, but pages.lock is "required", which keeps every page present; give "off" there, or no trim`},
	{func(p *Plan) { p.Regions[1].Trim, p.Pages.Prefault = TrimEmpty, Required },
		`regions[1].trim: "empty", but pages.prefault is "required", which keeps every page present; give "off" there, or no trim`},
	{func(p *Plan) { p.Regions[1].Warn = -1 }, "regions[1].warn: -1% is out of range: give 0 (none) or 1% to 99%"},
	{func(p *Plan) {
		p.Regions[1].Trim = "often"
	}, `regions[1].trim: "often" is no moment of trimming: give "empty" or none`},
	{func(p *Plan) {
		p.Regions[1].Name = "c_heap"
	}, `regions[1].name: "c_heap" is the name of the c_heap; choose another name`},
	{func(p *Plan) { p.GoHeap = math.MaxUint64 - 1 }, "go_heap: 18446744073709551614"},
	{func(p *Plan) { p.GoHeap, p.GoHeapMax = Rest, 4*MiB }, ""},
	{func(p *Plan) { p.GoHeap, p.GoHeapMax = Rest, 4*MiB-1 }, "go_heap_max: 4194303 is out of range: give 0 (no " +
		"bound), or 4MiB"},
	{func(p *Plan) {
		p.GoHeap, p.GoHeapMax = 0, 4*MiB
	}, `go_heap_max: 4MiB bounds a go_heap of "rest", and there is none`},
	{func(p *Plan) { p.GoHeapMax = p.GoHeap }, ""},
	{func(p *Plan) { p.GoHeap, p.GoHeapMax = 8*MiB, 4*MiB }, "go_heap_max: 4MiB is less than go_heap, 8MiB"},
	{func(p *Plan) {
		p.Regions[1].On = "leve"
	}, `regions[1].on: no region has the name "leve"; those before this one are init`},
	{func(p *Plan) { p.Regions[1].On = "systems" },
		`regions[1].on: "systems" is this region; give the name of a region before it`},
	{func(p *Plan) { p.Regions[1].On = "level" },
		`regions[1].on: "level" is regions[2], after this one; list it before`},
	{func(p *Plan) { p.Regions[1].On = "scratch" },
		`regions[1].on: "scratch" is no region; give the name of a region before this one`},
	{func(p *Plan) { p.Regions[0].Slots, p.Regions[1].On = 2, "init" },
		`regions[1].on: "init" has slots, which on can't name; give the region that "init" stands on, or "/"`},
	{func(p *Plan) { p.Regions[1].On, p.Regions[2].On = Root, "init" },
		`regions[2].on: regions[1] is listed between, and doesn't stand on "init"; list this region before it`},
}

func TestPlanCheck(t *testing.T) {
	require.NoError(t, handheld().Check())
	for _, c := range slices.Concat(planChecks, planSumChecks, planPagesChecks) {
		plan := handheld()
		c.change(&plan)
		err := plan.check()
		if c.fault == "" {
			assert.NoError(t, err)
			continue
		}
		if assert.Error(t, err, c.fault) {
			assert.Contains(t, err.Error(), fmt.Sprintf("plan %s: ", jsonfile.Quote(plan.Name)))
			assert.Contains(t, err.Error(), c.fault)
			assert.NotContains(t, err.Error(), "\n", "one fault")
		}
	}
}

// TestSlotsBelow: a plan has a warning for each region above slots, and in no other order. Open
// accepts the plan.
func TestSlotsBelow(t *testing.T) {
	plan := Plan{Name: "game", Regions: []RegionPlan{{Name: "systems", Size: KiB}, {Name: "room", Size: KiB, Slots: 2},
		{Name: "net", Size: KiB}, {Name: "chunk", Size: KiB, Slots: 3}, {Name: "effects", Size: KiB}}}
	err := plan.Check()
	assert.ErrorIs(t, err, ErrWarning)
	const text = `each Load, Rewind or Release of a slot of `
	assert.EqualError(t, err, `plan "game": regions[2]: warning: `+text+
		`"room" also empties "net"; list "net" before "room", or set its on
plan "game": regions[4]: warning: `+text+`"chunk" also empties "effects"; list "effects" before "chunk", or set its on`)
	assert.Contains(t, plan.String(), "\n  warning: regions[2]: "+text)
	data, err := json.Marshal(plan)
	require.NoError(t, err)
	_, err = ParsePlan(data)
	require.NoError(t, err)
	b, err := Open(plan)
	require.NoError(t, err)
	require.NoError(t, b.Close())

	plan.Regions[0].Size = 0
	err = plan.Check()
	assert.NotErrorIs(t, err, ErrWarning, "a fault comes first")
	plan.Regions[0].Size = KiB
	plan.Regions[1], plan.Regions[2] = plan.Regions[2], plan.Regions[1]
	plan.Regions = plan.Regions[:4]
	assert.EqualError(t, plan.Check(), `plan "game": regions[3]: warning: `+text+
		`"room" also empties all slots of "chunk"; list "chunk" before "room", or set its on`)
	plan.Regions[3].On = "net"
	assert.NoError(t, plan.Check(), "slots next to slots")
	assert.NotContains(t, plan.String(), "warning")
	plan.Regions[3].On = ""
	plan.Regions[1], plan.Regions[2] = plan.Regions[2], plan.Regions[1]
	plan.Regions[2].On = "systems"
	assert.NoError(t, plan.Check(), "a region next to slots")
	assert.Contains(t, plan.String(), "regions[2]  on systems\n")
}

func TestSizeText(t *testing.T) {
	for size, text := range map[uint64]string{0: "0KiB", 1: "0.1KiB", 102: "0.1KiB", 103: "0.2KiB", 1023: "1KiB",
		KiB: "1KiB", KiB + 1: "1.1KiB",
		3808: "3.8KiB", 100*KiB - 1: "100KiB", 100*KiB + 1: "101KiB", 13674760: "13355KiB", 128 * MiB: "131072KiB",
		math.MaxUint64: "18014398509481984KiB"} {
		assert.Equal(t, text, SizeText(size), size)
	}
	var last uint64
	// a rounded size is never less, and at most a tenth more
	for size := range step.Pick[uint64](12, 200, 200) * KiB {
		text := SizeText(size)
		value, err := strconv.ParseFloat(strings.TrimSuffix(text, "KiB"), 64)
		require.NoError(t, err)
		back := uint64(math.Round(value * KiB * 10))
		require.GreaterOrEqual(t, back, 10*size, text)
		require.LessOrEqual(t, back, 10*size+10*KiB, text)
		require.GreaterOrEqual(t, back, last)
		last = back
		if size%KiB == 0 {
			copied, err := ParseSize(text)
			require.NoError(t, err, "what is whole can be copied into a plan")
			require.Equal(t, size, copied)
		}
	}
}

func TestPlanSize(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1": 1, "65536": 65536, "512KiB": 512 * KiB, "4MiB": 4 * MiB, "1GiB": GiB, "64TiB": 1 << 46,
		"18446744073709551615": math.MaxUint64,
	} {
		size, err := ParseSize(text)
		assert.NoError(t, err)
		assert.Equal(t, want, size)
	}
	for _, text := range []string{"", "MiB", "-4MiB", "-4", "-0", "+4", "4 MiB", " 4", "4MB", "4B", "4M",
		"4mib", "4MiBMiB", "1.5MiB", "1e3", "0x10", "4_096", "٤"} {
		_, err := ParseSize(text)
		assert.ErrorContains(t, err, "is not a size", text)
	}
	for _, text := range []string{"18446744073709551616", "17179869184GiB", "16777216TiB",
		"99999999999999999999999KiB"} {
		_, err := ParseSize(text)
		assert.ErrorContains(t, err, "is too large for a size", text)
	}
	for range 10_000 {
		want := rand.Uint64() >> rand.IntN(64) << rand.IntN(64)
		size, err := ParseSize(sizeInPlan(want))
		require.NoError(t, err)
		require.Equal(t, want, size)
	}
}

func randomPlan(random *rand.Rand) Plan {
	size := func() uint64 { return 1 + random.Uint64N(1<<random.IntN(31)) }
	some := func() bool { return random.IntN(2) == 0 }
	demand := func() Demand { return []Demand{Default, Off, Wished, Required}[random.IntN(4)] }
	plan := Plan{Name: fmt.Sprintf("p-%d", random.IntN(1000))}
	for i := range 1 + random.IntN(planRegionsMax) {
		note := []string{"", "50 % <&>", "\"\\\n\t\x00", "größte Karte\u2028", "\ufffd"}[random.IntN(5)]
		plan.Regions = append(plan.Regions, RegionPlan{Name: fmt.Sprint("r_", i), Size: size(), Note: note})
	}
	if some() {
		slots := &plan.Regions[random.IntN(len(plan.Regions))]
		slots.Size, slots.Slots = 1+slots.Size%(128*KiB), 1+random.IntN(1<<random.IntN(13))
	}
	for i := range plan.Regions {
		on := i - 1
		for on >= 0 && (some() || plan.Regions[on].Slots != 0) {
			on = plan.below(on)
		}
		switch {
		case random.IntN(4) != 0:
		case on < 0:
			plan.Regions[i].On = Root
		default:
			plan.Regions[i].On = plan.Regions[on].Name
		}
	}
	if some() {
		plan.Frame = FramePlan{2 + random.IntN(7), size()}
	}
	if some() {
		plan.Scratch = ScratchPlan{1 + random.IntN(32), random.IntN(9), 1 + size()%GiB/16}
	}
	if some() {
		plan.Limits = Limits{random.IntN(65536), random.IntN(65536), random.IntN(65536), random.IntN(65536)}
	}
	if some() {
		plan.GoHeap = 4*MiB + size()
	}
	if some() {
		plan.Pages = Pages{demand(), demand(), demand(), demand(), Default}
	}
	if some() {
		plan.Size = plan.total() + random.Uint64N(planSizeMax-GiB-plan.total())
		if rest := &plan.Regions[random.IntN(len(plan.Regions))]; some() && rest.Slots == 0 {
			rest.Size = Rest
		}
	}
	if some() {
		plan.Base = random.Uint64N((planBaseEnd-planSizeMax)/planEdge) * planEdge
		if plan.Base != 0 {
			plan.Pages.Base = demand()
		}
	}
	for i := range random.IntN(3) * random.IntN(len(plan.Regions)) {
		e := Expected{Part: plan.Regions[i/2].Name, Label: []string{"", "fröhlich \"a\""}[i%2],
			Tolerance: Percent(random.IntN(100))}
		*e.points()[random.IntN(3)].value = size()
		*e.points()[random.IntN(3)].value = size()
		plan.Expected = append(plan.Expected, e)
	}
	return plan
}

// sameInEachBuild leaves a test of plans to the release build, and to make gate: its code is the
// same in each build.
func sameInEachBuild(t *testing.T) {
	t.Helper()
	if arena_c.Race || arena_c.Asan || arena_c.Checked {
		step.Needs(t, step.Gate)
	}
}

func TestPlanRoundTrip(t *testing.T) {
	sameInEachBuild(t)
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		plan := randomPlan(random)
		require.NoError(t, plan.check())
		data, err := json.Marshal(plan)
		require.NoError(t, err)
		read, err := ParsePlan(data)
		require.NoError(t, err, "%s", data)
		require.Equal(t, plan, read)
	}
}

func manySlots(n, slots int) []RegionPlan {
	list := manyRegions(n, 1)
	for i := range list {
		list[i].Slots = slots
	}
	return list
}

var planSumChecks = []struct {
	change func(*Plan)
	fault  string
}{
	{func(p *Plan) { p.Regions[1].Slots = 1 }, ""},
	{func(p *Plan) { p.Regions[1].Slots = 4096 }, ""},
	{func(p *Plan) { p.Regions[1].Slots = 4097 }, "regions[1].slots: 4097 is out of range: give 0 (no slots) or 1 " +
		"to 4096"},
	{func(p *Plan) { p.Regions[1].Slots = -1 }, "regions[1].slots: -1 is out of range: give 0 (no slots) or 1 to 4096"},
	{func(p *Plan) { p.Regions[1].Slots = math.MinInt }, "regions[1].slots: -"},
	// such a number is in no sum
	{func(p *Plan) { p.Regions[1].Slots = math.MaxInt }, "regions[1].slots: "},
	{func(p *Plan) { *p = Plan{Name: "max", Regions: manySlots(16, 4096)} }, "regions[0].slots: 4096; the plan has " +
		"65536 arenas (slots, buffers, scratch), at most 65535; lower the slots"},
	{func(p *Plan) { p.Regions[2].Size, p.Regions[2].Slots = 1<<38, 2 }, "regions: the parts need 524310MiB ("},
	{func(p *Plan) { p.Regions[2].Size, p.Regions[2].Slots = 1<<38, 4096 }, "regions: the parts need "},
	{func(p *Plan) {
		*p = Plan{Name: "max", Regions: append(manySlots(15, 4096), RegionPlan{Name: "a", Size: 1, Slots: 4095})}
	}, ""},
	{func(p *Plan) {
		*p = Plan{Name: "max", Regions: append(manySlots(15, 4095), RegionPlan{Name: "a", Size: 1, Slots: 4096}),
			Scratch: ScratchPlan{Workers: 8, Size: 1}}
	},
		`plan "max": regions[15].slots: 4096; the plan has 65537 arenas (slots, buffers, scratch), ` +
			"at most 65535; lower the slots"},
	{func(p *Plan) {
		*p = Plan{Name: "max", Regions: append(manySlots(15, 4096), manyRegions(64, 1)[15:]...), Frame: FramePlan{8, 1},
			Scratch: ScratchPlan{Workers: 256, Size: 1}}
	},
		""},

	{func(p *Plan) { p.Regions[1].Size = Rest }, `size: 0, but regions[1].size is "rest"; give the total size`},
	{func(p *Plan) { p.Size, p.Regions[1].Size = 50*MiB+64*KiB, Rest }, ""},
	{func(p *Plan) { p.Size, p.Regions[1].Size = 50*MiB+1, Rest }, ""},
	{func(p *Plan) { p.Size, p.Regions[1].Size = 50*MiB, Rest }, "size: 50MiB leaves no rest: the parts need 50MiB (" +
		"regions 44MiB, frame 2MiB, scratch 4MiB; each rounded up to 64KiB), and regions[1], which has the rest, " +
		"64KiB or more; 64KiB more would do"},
	{func(p *Plan) { p.Size, p.Regions[1].Size = MiB, Rest }, "; 50240KiB more would do"},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Pages.Guards = 50*MiB+64*KiB, Rest, Wished },
		"regions 44MiB, frame 2MiB, scratch 4MiB, " +
			"guards 576KiB; each rounded up to 64KiB), and regions[1], which has the rest, 64KiB or more; 576KiB " +
			"more would do"},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Pages.Guards = 50*MiB+640*KiB, Rest, Required }, ""},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Pages.Guards = 50*MiB+64*KiB, Rest, Off }, ""},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Regions[2].Size = GiB, Rest, Rest },
		`regions[2].size: "rest", like regions[1].size; only one region may be "rest"`},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Regions[1].Slots = GiB, Rest, 1 },
		`regions[1].size: "rest", but slots is 1; slots have a size of their own`},
	{func(p *Plan) { p.Size, p.Regions[1].Size = 1<<38+1, Rest }, "size: 274877906945; a budget has less than " +
		"256GiB, tables included"},
	{func(p *Plan) { p.Size, p.Regions[1].Size = 1<<37, Rest }, ""},
	{func(p *Plan) { p.Size, p.Regions[1].Size, p.Regions[2].Size = 1<<37, Rest, 1<<38 }, "regions: the parts need " +
		"262154MiB ("},
	{func(p *Plan) {
		*p = Plan{Name: "max", Size: 1<<38 - MiB,
			Regions: append(manyRegions(63, 4*GiB), RegionPlan{Name: "r", Size: Rest})}
	}, ""},
	{func(p *Plan) {
		*p = Plan{Name: "max", Size: 1<<38 - MiB,
			Regions: append(manyRegions(32, 8*GiB), RegionPlan{Name: "r", Size: Rest})}
	}, "regions: the parts need 256GiB (regions 256GiB, frame 0, scratch 0; each rounded up to 64KiB), and " +
		"regions[32], which has the rest, 64KiB or more, and their tables 512KiB; a budget has less than 256GiB"},

	{func(p *Plan) { p.Size, p.Pages.Guards = 62*MiB+576*KiB, Wished }, ""},
	{func(p *Plan) { p.Size, p.Pages.Guards = 62*MiB+576*KiB-1, Wished },
		"size: 65601535 is less than the parts need: 64064KiB (regions 56MiB, frame 2MiB, scratch 4MiB, guards " +
			"576KiB; each"},
	{func(p *Plan) { p.Size, p.Pages.Guards, p.Regions[1].Slots = 62*MiB, Wished, 5 },
		"size: 62MiB is less than the parts need: 113472KiB (regions 104MiB, frame 2MiB, scratch 4MiB, guards " +
			"832KiB; each"},
	{func(p *Plan) { *p = Plan{Name: "max", Regions: manyRegions(64, 4*GiB), Pages: Pages{Guards: Wished}} },
		"regions: the parts need 262148MiB (regions 256GiB, frame 0, scratch 0, guards 4MiB; each rounded up to " +
			"64KiB), and their tables 1MiB; a budget has"},
}

// requireSound checks the invariants of every valid plan.
func requireSound(t *testing.T, plan Plan) {
	t.Helper()
	require.NoError(t, plan.check())
	before := slices.Clone(plan.Regions)
	resolved := plan.resolved()
	require.Equal(t, before, plan.Regions, "the plan itself is unchanged")
	require.NoError(t, resolved.check())
	require.Equal(t, -1, resolved.rest())
	require.Equal(t, resolved, resolved.resolved())
	rest := plan.rest()
	if rest < 0 {
		require.Equal(t, plan.withLimits().Regions, resolved.Regions)
		require.Equal(t, plan.Size, resolved.Size)
		if plan.Size != 0 {
			require.LessOrEqual(t, resolved.total(), plan.Size)
		}
	} else {
		require.Equal(t, resolved.Size, resolved.total(), "the parts are the whole")
		require.Less(t, resolved.Size-plan.Size, uint64(planEdge), "rounded up, no more")
		require.GreaterOrEqual(t, resolved.Regions[rest].Size, uint64(planEdge))
	}
	for _, page := range resolved.Pages.byKey() {
		require.NotEqual(t, Default, *page.value)
	}
	require.NotZero(t, resolved.Limits.Scopes*resolved.Limits.Pools*resolved.Limits.Owned*resolved.Limits.Labels)
	require.LessOrEqual(t, plan.arenaCount(), uint64(planArenasMax))
	requireDrawn(t, plan)
}

func TestPlanResolved(t *testing.T) {
	sameInEachBuild(t)
	random := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		requireSound(t, randomPlan(random))
	}
	plan := handheld()
	plan.Size = 100_000_000
	plan.Regions[1].Size = Rest
	plan.Limits.Pools = 5
	plan.Pages.Lock = Required
	want := plan
	want.Size = 1526 * 64 * KiB
	want.Regions = slices.Clone(plan.Regions)
	want.Regions[1].Size = 1526*64*KiB - 50*MiB
	want.Limits = Limits{64, 5, 256, 32}
	want.Pages = Pages{Wished, Required, Off, Off, Off}
	want.Scratch.Each = 2
	assert.Equal(t, want, plan.resolved())

	plan.Base, want.Base, want.Pages.Base = 64*KiB, 64*KiB, Wished
	assert.Equal(t, want, plan.resolved())
	plan.Pages.Base, want.Pages.Base = Off, Off
	assert.Equal(t, want, plan.resolved())
}

// The plan is added up in Go. The C core must need the same bytes and lay out the same counts, and
// both must agree on the bytes that become memory.
func TestPlanSumIsTheCores(t *testing.T) {
	sameInEachBuild(t)
	random := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		plan := randomPlan(random).resolved()
		l, err := plan.layout()
		if plan.Size >= sizeEnd { // of 32 bits
			plan.Size = 0
			l, err = plan.layout()
		}
		if l.size >= sizeEnd {
			require.ErrorContains(t, err, "the plan and its tables need 2097088KiB or more")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, plan.total()-l.sum.guards,
			plan.ofKind(arena_c.KindRegion)+plan.ofKind(arena_c.KindFrame)+plan.ofKind(arena_c.KindScratch))
		require.Equal(t, l.sum.arenas*plan.guard(), l.sum.guards, "one behind each arena")
		plan.Size = 0
		exact, err := plan.layout()
		require.NoError(t, err)
		require.LessOrEqual(t, exact.size, l.size)
		limits := plan.Limits
		require.Equal(t, bindings.MapSize(plan.arenas(), uint64(limits.Scopes), uint64(limits.Pools), plan.guard()),
			exact.size)
	}
	block := make([]byte, 8*MiB)
	for range 100 {
		plan := smallPlan(random)
		b, err := OpenIn(block, plan)
		require.NoError(t, err)
		l, err := b.plan.layout()
		require.NoError(t, err)
		m := b.table
		require.Equal(t, []uint64{m.Rows, m.Slots, m.Pools, m.Tables}, []uint64{l.sum.arenas, l.sum.slots, l.sum.pools,
			l.tables.Size})
		require.Equal(t, l.size-l.bottom-plan.guard(), l.sum.whole)
		require.Equal(t, m.Start(0), l.bottom+plan.guard())
		held := heldBytes(m)
		for page := uint64(64); page <= planEdge; page *= 4 {
			requireHeld(t, held, l.pages(page), page)
		}
		require.NoError(t, b.Close())
	}
}

// smallPlan returns a plan whose arenas end anywhere, with limits so large that the head of its
// tables has room to spare.
func smallPlan(random *rand.Rand) Plan {
	size := func() uint64 { return 1 + random.Uint64N(1<<random.IntN(18)) }
	plan := Plan{Name: "small", Regions: manyRegions(1+random.IntN(3), 1), Limits: Limits{Scopes: 1 + random.IntN(100),
		Pools: 1 + random.IntN(200)}, Pages: Pages{Prefault: Off}, Frame: FramePlan{2, size()}}
	for i := range plan.Regions {
		plan.Regions[i].Size, plan.Regions[i].Slots = size(), random.IntN(5)
		plan.Regions[i].Limits.Scopes, plan.Regions[i].Limits.Pools = random.IntN(9), random.IntN(9)
	}
	if random.IntN(2) == 0 {
		plan.Pages.Guards = Wished
	}
	return plan
}

// heldBytes returns for each byte of the map whether a control word or an arena covers it.
func heldBytes(m *arena_c.Map) []bool {
	held := make([]bool, m.Size)
	from := func(p unsafe.Pointer) uint64 { return uint64(uintptr(p) - uintptr(unsafe.Pointer(m))) }
	hold := func(at, size uint64) {
		for i := range size {
			held[at+i] = true
		}
	}
	hold(0, uint64(unsafe.Sizeof(*m)))
	for i := range m.Rows {
		r := m.Row(i)
		at := from(unsafe.Pointer(r))
		hold(at, uint64(unsafe.Sizeof(*r)))
		hold(at+r.Arena.Records, 2*(r.Arena.Slots+1)*uint64(unsafe.Sizeof(arena_c.Record{})))
		hold(at+r.Headers, r.Pools*uint64(unsafe.Sizeof(arena_c.Pool{})))
		hold(m.Start(i), m.End(i)-m.Start(i))
	}
	return held
}

// requireHeld checks that the runs are the pages in use, in order and merged.
func requireHeld(t *testing.T, held []bool, runs []platform.PageRun, page uint64) {
	t.Helper()
	at := uint64(0)
	for i, run := range runs {
		require.True(t, i == 0 && run.Offset == 0 || run.Offset > at, "%v", runs)
		for ; at < run.Offset; at += page {
			require.False(t, slices.Contains(held[at:at+page], true), "%d of %v", at, runs)
		}
		for ; at < run.Offset+run.Size; at += page {
			require.True(t, slices.Contains(held[at:at+page], true), "%d of %v", at, runs)
		}
	}
	require.False(t, slices.Contains(held[at:], true), "behind %v", runs)
}

// TestLimitsOfSlots: slots have lower limits by default, and a limit of the plan is also theirs.
func TestLimitsOfSlots(t *testing.T) {
	plan := Plan{Name: "rooms", Limits: Limits{Pools: 5}, Regions: []RegionPlan{
		{Name: "level", Size: KiB}, {Name: "room", Size: KiB, Slots: 3, Limits: Limits{Owned: 300}}}}
	resolved := plan.resolved()
	assert.Equal(t, Limits{64, 5, 256, 32}, resolved.Limits)
	assert.Equal(t, Limits{}, resolved.Regions[0].Limits)
	assert.Equal(t, Limits{16, 0, 300, 8}, resolved.Regions[1].Limits)
	assert.Equal(t, Limits{Owned: 300}, plan.Regions[1].Limits, "the plan itself is unchanged")
}

// TestTablesOfASlot: the tables of a slot are as large as in the doc of Limits.
func TestTablesOfASlot(t *testing.T) {
	for limit, want := range map[int]float64{0: 3.6, 4: 1.3} {
		var costs [2]Cost
		for i := range costs {
			var err error
			costs[i],
				err = Plan{Name: "rooms", Regions: []RegionPlan{{Name: "room", Size: 64 * KiB, Slots: 1000 + 3000*i,
				Limits: Limits{limit, limit, limit, limit}}}}.Cost()
			require.NoError(t, err)
		}
		assert.InDelta(t, want, float64(costs[1].Resident4K-costs[0].Resident4K)/3000/KiB-64, 0.05)
	}
}

// TestPlanCrossings: Go calls the core for the size of the tables, to check a plan and to lay it
// out, and for no other sum.
func TestPlanCrossings(t *testing.T) {
	crossings := func(do func()) int64 {
		before := runtime.NumCgoCall()
		do()
		return runtime.NumCgoCall() - before
	}
	plan := handheld()
	plan.Size, plan.Regions[2].Size, plan.Pages.Prefault = 100_000_000, Rest, Off
	var errs [6]error
	var b *Budget
	assert.EqualValues(t, 1, crossings(func() { errs[0] = plan.Check() }))
	assert.EqualValues(t, 2, crossings(func() { _, errs[1] = plan.Cost() }))
	assert.EqualValues(t, 2, crossings(func() { _, errs[2] = plan.Need() }))
	assert.EqualValues(t, 1, crossings(func() { _, errs[3] = plan.allTables() }))
	assert.EqualValues(t, 2, crossings(func() { assert.Contains(t, plan.String(), "resident") }))
	opening := crossings(func() { b, errs[4] = Open(plan) })
	require.Equal(t, [6]error{}, errs)
	moved := b.Plan()
	moved.Regions[0].Size, moved.Regions[1].Size = moved.Regions[1].Size, moved.Regions[0].Size
	moving := crossings(func() { errs[5] = b.Reconfigure(context.Background(), moved) })
	require.NoError(t, errs[5])
	require.NoError(t, b.Close())
	// Those builds call C for more than sizes, and on Windows each system call is a call of C.
	if !arena_c.Crossing && !arena_c.Race && runtime.GOOS != "windows" {
		assert.EqualValues(t, 3, opening, "the tables twice, and MapInit")
		assert.EqualValues(t, 3, moving, "the tables twice, and Map.Reconfigure")
	}
}

var planPagesChecks = []struct {
	change func(*Plan)
	fault  string
}{
	{func(p *Plan) { p.Pages = Pages{Required, Required, Required, Required, Off} }, ""},
	{func(p *Plan) {
		p.Pages.Prefault = "on"
	}, `pages.prefault: "on" is no demand: give "off", "wished" or "required"`},
	{func(p *Plan) { p.Pages.Lock = "on" }, `pages.lock: "on" is no demand: give`},
	{func(p *Plan) { p.Pages.Huge = "on" }, `pages.huge: "on" is no demand: give`},
	{func(p *Plan) { p.Pages.Guards = "on" }, `pages.guards: "on" is no demand: give`},
	{func(p *Plan) { p.Pages.Base = "on" }, `pages.base: "on" is no demand: give`},
	{func(p *Plan) { p.Pages.Base = Wished }, "base: 0, but pages.base is wished; give both or neither"},
	{func(p *Plan) { p.Pages.Base = Required }, "base: 0, but pages.base is required; give both or neither"},
	{func(p *Plan) { p.Base, p.Pages.Base = 64*KiB, Required }, ""},
	{func(p *Plan) { p.Base, p.Pages.Base = 64*KiB, Off }, ""},
	{func(p *Plan) { p.Base = 64*KiB + 4096 }, "base: 0x11000 isn't a multiple of 64KiB (0x10000)"},
	{func(p *Plan) { p.Base = 1 }, "base: 0x1 isn't a multiple of 64KiB (0x10000)"},
	{func(p *Plan) { p.Base = 1 << 47 }, "base: 0x800000000000; addresses end at 0x800000000000"},
	{func(p *Plan) { p.Base = 0xffff_ffff_ffff_0000 }, "base: 0xffffffffffff0000; addresses end at 0x800000000000"},
	{func(p *Plan) { p.Base = 1<<47 - 62*MiB }, ""},
	{func(p *Plan) { p.Base = 1<<47 - 62*MiB + 64*KiB },
		"base: 0x7ffffc210000; the parts need 62MiB from there, and addresses end at 0x800000000000"},
	{func(p *Plan) { p.Base, p.Size = 1<<47-63*MiB, 63*MiB+1 }, "base: 0x7ffffc100000; the parts need 64576KiB from " +
		"there, and"},
	{func(p *Plan) { p.Base, p.Size = 1<<47-63*MiB, 63*MiB }, ""},
	{func(p *Plan) { p.Base, p.Pages.Guards = 1<<47-62*MiB, Wished }, "base: 0x7ffffc200000; the parts need " +
		"64064KiB from there, and"},
}

// TestPlanProfileOff: "off" in JSON is NoProfile, and is written as "off".
func TestPlanProfileOff(t *testing.T) {
	text := `{"name":"a","c_heap":{"size":"4MiB","profile":"off"}}`
	var p Plan
	require.NoError(t, json.Unmarshal([]byte(text), &p))
	assert.Equal(t, NoProfile, p.CHeap.Profile)
	again, err := json.Marshal(p)
	require.NoError(t, err)
	assert.Equal(t, text, string(again))
	assert.Contains(t, p.String(), "no profile")
}
