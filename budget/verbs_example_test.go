package budget_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// pondPlan is the plan of several examples here.
func pondPlan() budget.Plan {
	return budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Frame: budget.FramePlan{Buffers: 2, Size: 4 * budget.KiB}}
}

var ponds = scope.Plain[int64]() // declared once

// pondBlock is a block of static memory.
var pondBlock [1 << 20]byte

func ExampleOpenIn() {
	need, err := pondPlan().Need()
	mustBe(err)
	fmt.Println(need <= uint64(len(pondBlock)))
	b, err := budget.OpenIn(pondBlock[:], pondPlan())
	mustBe(err)
	fmt.Println(b.Size() < need, b.Close())
	// Output:
	// true
	// true <nil>
}

func ExampleReadPlan() {
	dir, err := os.MkdirTemp("", "plan")
	mustBe(err)
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "pond.json")
	mustBe(os.WriteFile(name, []byte(`{"name": "pond", "regions": [{"name": "level", "size": "40MiB"}]}`), 0o600))
	plan, err := budget.ReadPlan(name)
	fmt.Println(plan.Regions[0].Size, err)
	// Output:
	// 41943040 <nil>
}

// Every error of the plan has the line of its value.
func ExampleParsePlan() {
	_, err := budget.ParsePlan([]byte(`{"name": "pond",
"regions": [{"name": "level", "size": "40MB"}],
"scratch": {"workers": 4, "each": 1, "size": "5120KiB"},
"frames": 2}`))
	fmt.Println(err)
	// Output:
	// line 2: regions[0].size: "40MB" is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB, or "rest")
	// line 4: frames: no such key (there are name, size, base, regions, frame, scratch, limits, pages, go_heap, go_heap_max, c_heap, quotas, expected)
}

func ExamplePlan_Check() {
	plan := pondPlan()
	plan.Regions[0].Size, plan.Frame.Buffers = 0, 9
	fmt.Println(plan.Check())

	plan = budget.Plan{Name: "game", Regions: []budget.RegionPlan{{Name: "room", Size: budget.MiB, Slots: 8},
		{Name: "net", Size: budget.MiB}}}
	// Open takes it, and each room's load would empty net
	fmt.Println(errors.Is(plan.Check(), budget.ErrWarning))
	// Output:
	// plan "pond": regions[0].size: 0 bytes; give a size
	// plan "pond": frame.buffers: 9 is out of range: give 0 (none) or 1 to 8
	// true
}

func ExamplePlan_Headroom() {
	plan := pondPlan().Headroom(10)
	fmt.Println(plan.Regions[0].Size, plan.Frame.Size)
	// Output:
	// 72704 5120
}

// An object of frame n lives until the end of frame n+1.
func ExampleBudget_NextFrame() {
	b, err := budget.Open(pondPlan())
	mustBe(err)
	defer b.Close()
	first := b.Frame()
	first.Bytes(100)
	fmt.Println(b.NextFrame(), b.Report().Arena("frame 0").Used)
	fmt.Println(b.NextFrame(), b.Report().Arena("frame 0").Used)
	// Output:
	// <nil> 100
	// <nil> 0
}

func ExampleBudget_Walk() {
	b, err := budget.Open(pondPlan())
	mustBe(err)
	defer b.Close()
	ranges, err := b.Walk()
	for _, r := range ranges {
		if r.Arena != "" {
			fmt.Println(r.Arena, r.What, r.Size)
		}
	}
	fmt.Println(err)
	// Output:
	// level free 65536
	// frame 0 free 4096
	// frame 0 slack: edge 61440
	// frame 1 free 4096
	// frame 1 slack: edge 61440
	// <nil>
}

// A worker pins the region while it reads. A load waits until the worker unpins the region.
func ExampleReader_Pin() {
	b, err := budget.Open(pondPlan())
	mustBe(err)
	defer b.Close()
	level := b.Region("level")
	load := func(ctx context.Context) (budget.Loaded[int64], error) {
		return budget.Load(ctx, level, func(s scope.Scope) (*int64, error) {
			number := ponds.New(s)
			*number = 7
			return number, nil
		})
	}
	ctx := context.Background()
	loaded, err := load(ctx)
	mustBe(err)

	worker := level.Reader("worker")
	if worker.Pin() {
		fmt.Println(*loaded.Get())
		soon, cancel := context.WithTimeout(ctx, time.Millisecond)
		_, err := load(soon)
		fmt.Println(errors.Is(err, context.DeadlineExceeded))
		cancel()
		worker.Unpin()
	}
	_, err = load(ctx)
	fmt.Println(err, loaded.Get() == nil) // dead after the next load
	// Output:
	// 7
	// true
	// <nil> true
}

// Any goroutine may read the report as last published.
func ExampleBudget_Published() {
	b, err := budget.Open(pondPlan())
	mustBe(err)
	defer b.Close()
	b.Frame().Bytes(100)
	fmt.Println(b.Published().Arena("frame 0").Used, b.Report().Arena("frame 0").Used)
	mustBe(b.NextFrame())
	fmt.Println(b.Published().Arena("frame 0").Used)
	// Output:
	// 0 100
	// 100
}

func ExampleSizeText() {
	fmt.Println(budget.SizeText(4*budget.MiB), budget.SizeText(13_674_760), budget.SizeText(3_808))
	// Output: 4096KiB 13355KiB 3.8KiB
}

// The drawing of a plan for a server of sixteen rooms shows the place of each part.
func ExamplePlan_String() {
	plan, err := budget.ParsePlan([]byte(`{
		"name": "server",
		"size": "96MiB",
		"regions": [
			{"name": "systems", "size": "12MiB"},
			{"name": "cache", "size": "rest"},
			{"name": "room", "size": "2MiB", "slots": 16, "note": "largest room + 10 %"}
		],
		"frame": {"buffers": 2, "size": "1MiB"},
		"scratch": {"workers": 4, "size": "512KiB"},
		"pages": {"prefault": "required", "lock": "wished"},
		"go_heap": "32MiB"
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)
	// Output:
	// plan server: 98624KiB
	//   tables     320KiB  [#...................]
	//   systems  12288KiB  [###.................]  regions[0]
	//   cache    47104KiB  [...#########........]  regions[1]  the rest
	//   room     32768KiB  [............#######.]  regions[2]  16 slots of 2048KiB
	//     16 scopes, 16 pools, 32 owned values, 8 labels  largest room + 10 %
	//   frame     2048KiB  [...................#]  2 buffers of 1024KiB
	//   scratch   4096KiB  [...................#]  4 workers x 2 arenas of 512KiB
	//   Go heap  32768KiB  outside it
	//   limits of each arena: 64 scopes, 64 pools, 256 owned values, 32 labels
	//   pages: prefault required, lock wished, huge off, guards off, base off
	//   cost: 98624KiB of addresses,
	//     98516KiB resident at most (pages of 64 KiB: 98624KiB), Go heap 32768KiB
	//   resident from Open on
}

// Two libraries share a heap. The report has the use of each library.
func ExampleReport_proxies() {
	b, err := budget.Open(budget.Plan{Name: "pond",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	heap, err := arena.NewHeap(arena.NewBlock(8192, 64), 0)
	if err != nil {
		panic(err)
	}
	sound, physics := arena.NewProxy("sound", heap), arena.NewProxy("physics", heap)
	sound.Alloc(96, 16)
	physics.Alloc(1<<20, 16)

	r := b.Report()
	r.Proxies = append(r.Proxies, sound.Stats(), physics.Stats())
	for line := range strings.Lines(r.String()) {
		if strings.HasPrefix(line, "  proxy") {
			fmt.Print(line)
		}
	}
	text, err := json.Marshal(r)
	fmt.Println(strings.Contains(string(text),
		`"proxies":[{"name":"sound","live":1,"asked":96,"peak":96,"total":1,"failed":0},{"name":"physics","live":0,"asked":0,"peak":0,"total":0,"failed":1}]`),
		err)
	// Output:
	//   proxy "sound": 1 live in 0.1KiB, peak 0.1KiB; allocated 1, refused 0
	//   proxy "physics": 0 live in 0KiB, peak 0KiB; allocated 0, refused 1
	// true <nil>
}

// The level warns before it is full, while the next map or two still fit.
func ExampleWarning() {
	plan := pondPlan()
	plan.Regions[0].Warn = 80
	plan.OnWarn = func(w budget.Warning) {
		fmt.Println("warning:", w)
		fmt.Println(w.Used*100/w.Size, "%, warned at", w.Share, "%; raise", w.Key)
	}
	b, err := budget.Open(plan)
	mustBe(err)
	defer b.Close()
	for _, size := range []int{20_000, 40_000, 30_000, 45_000} { // the maps
		_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*byte, error) {
			mustBe(scope.Label(s, "sound", func() error { s.Bytes(15_000); return nil }))
			return &s.Bytes(size)[0], nil
		})
		fmt.Println(size, err)
	}
	fmt.Println(b.Published().Arena("level").Warnings, "warnings")
	// Output:
	// 20000 <nil>
	// warning: level holds 55040 of 65536 bytes, and warns at 80%; held by "level" (40040 bytes), "sound" (15000 bytes); its size is regions[0].size in the plan
	// 83 %, warned at 80 %; raise regions[0].size
	// 40000 <nil>
	// 30000 <nil>
	// warning: level holds 60040 of 65536 bytes, and warns at 80%; held by "level" (45040 bytes), "sound" (15000 bytes); its size is regions[0].size in the plan
	// 91 %, warned at 80 %; raise regions[0].size
	// 45000 <nil>
	// 2 warnings
}

type newt struct{ X, Y, Age, Friends, Hunger, ID int32 }

var newts = scope.Plain[newt]()

// The sizes in the plan are guesses. Measure returns the bytes that a run of the largest map needs.
func ExampleMeasure() {
	guess := budget.Plan{Name: "handheld", Regions: []budget.RegionPlan{{Name: "systems", Size: 12 * budget.MiB},
		{Name: "level", Size: 40 * budget.MiB}}, Frame: budget.FramePlan{Buffers: 2, Size: budget.MiB}}
	report, err := budget.Measure(guess, func(b *budget.Budget) error {
		_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*newt, error) {
			pond := newts.Slice(s, 1000)
			return &pond[0], nil
		})
		if err != nil {
			return err
		}
		b.Frame().Bytes(100)
		return b.NextFrame()
	})
	fmt.Println(err)
	for _, region := range report.Plan.Regions {
		fmt.Println(region.Name, region.Size)
	}
	fmt.Println("frame", report.Plan.Frame.Size)
	// Output:
	// <nil>
	// systems 1
	// level 24000
	// frame 100
}

// Suggest makes a plan from the peaks of programs in the field, and Headroom adds a tenth.
func ExampleSuggest() {
	var reports []budget.Report
	for _, size := range []int{20000, 50000} { // each a run in the field, its report kept as JSON
		b, err := budget.Open(budget.Plan{Name: "field",
			Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}})
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*byte, error) {
			return &s.Bytes(size)[0], nil
		})
		fmt.Println(err, b.Close())
		reports = append(reports, b.Report())
	}
	plan, err := budget.Suggest(reports...)
	fmt.Println(plan.Regions[0].Size, plan.Regions[0].Note, err)
	fmt.Println(plan.Headroom(10).Regions[0].Size)
	// Output:
	// <nil> <nil>
	// <nil> <nil>
	// 50000 50000 bytes in report 2, "field" <nil>
	// 55296
}

type spark struct{ X, Y int32 }

var sparks = scope.Plain[spark]()

func mustBe(err error) {
	if err != nil {
		panic(err)
	}
}

// openFrames opens a budget with a frame.
func openFrames() *budget.Budget {
	b, err := budget.Open(budget.Plan{Name: "small",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB}})
	mustBe(err)
	return b
}

// After set-up, SealStrict checks the frames, and Seal allows Go allocations while the level
// changes.
func ExampleBudget_Seal() {
	b := openFrames()
	defer b.Close()
	mustBe(b.Seal())
	for range 2 { // levels
		mustBe(b.SealStrict())
		// ticks: a Go allocation between frames is a panic in checked builds
		for range 3 {
			sparks.New(b.Frame())
			mustBe(b.NextFrame())
		}
		mustBe(b.Seal())
		fmt.Println("the next level may print")
	}
	// Output:
	// the next level may print
	// the next level may print
}

var garbage *[8]int64

//go:noinline
func makeGarbage() { garbage = new([8]int64) }

// In a test: require.NoError(t, b.NoHeap(game.tick)).
func ExampleBudget_NoHeap() {
	b := openFrames()
	defer b.Close()
	fmt.Println(b.NoHeap(func() { sparks.New(b.Frame()) }))
	said := strings.Split(b.NoHeap(makeGarbage).Error(), "\n")
	what, _, _ := strings.Cut(said[2], " (")
	fmt.Println(said[0][:strings.Index(said[0], ",")], "by", strings.TrimSpace(what))
	// Output:
	// <nil>
	// budget "small": NoHeap: 1 Go allocation by github.com/upfront-mem/upfront/budget_test.makeGarbage
}
