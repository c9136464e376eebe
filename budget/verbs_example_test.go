package budget_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// pondPlan is what the examples here open.
func pondPlan() budget.Plan {
	return budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Frame: budget.FramePlan{Buffers: 2, Size: 4 * budget.KiB}}
}

var ponds = scope.Plain[int64]() // declared once

// pondBlock is memory that the program has anyway.
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

// Every fault has the line of its value.
func ExampleParsePlan() {
	_, err := budget.ParsePlan([]byte(`{"name": "pond",
"regions": [{"name": "level", "size": "40MB"}],
"scratch": {"workers": 4, "each": 1, "size": "5120KiB"},
"frames": 2}`))
	fmt.Println(err)
	// Output:
	// line 2: regions[0].size: "40MB" is not a size (whole bytes, or as "4MiB" with KiB, MiB, GiB or TiB, or "rest")
	// line 4: frames: no such key (there are name, size, base, regions, frame, scratch, limits, pages, go_heap)
}

func ExamplePlan_Check() {
	plan := pondPlan()
	plan.Regions[0].Size, plan.Frame.Buffers = 0, 1
	fmt.Println(plan.Check())
	// Output:
	// plan "pond": regions[0].size: 0 bytes; give a size
	// plan "pond": frame.buffers: 1; 0 or 2 to 8
}

func ExamplePlan_Headroom() {
	plan := pondPlan().Headroom(10)
	fmt.Println(plan.Regions[0].Size, plan.Frame.Size)
	// Output:
	// 72704 5120
}

// What is made in frame n lives until the end of frame n+1.
func ExampleBudget_NextFrame() {
	b, err := budget.Open(pondPlan())
	mustBe(err)
	defer b.Close()
	first := b.Frame()
	first.Bytes(100)
	fmt.Println(b.NextFrame(), b.Report().Beside[0].Used)
	fmt.Println(b.NextFrame(), b.Report().Beside[0].Used)
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

// A worker pins the region while it reads: a load waits for it.
func ExampleReader_Pin() {
	b, err := budget.Open(pondPlan())
	mustBe(err)
	defer b.Close()
	level := b.Region("level")
	load := func() (budget.Loaded[int64], error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		return budget.Load(ctx, level, func(s scope.Scope) (*int64, error) {
			number := ponds.New(s)
			*number = 7
			return number, nil
		})
	}
	loaded, err := load()
	mustBe(err)

	worker := level.Reader("worker")
	if worker.Pin() {
		fmt.Println(*loaded.Get())
		_, err := load()
		fmt.Println(errors.Is(err, context.DeadlineExceeded))
		worker.Unpin()
	}
	_, err = load()
	fmt.Println(err, loaded.Get() == nil) // of another load by now
	// Output:
	// 7
	// true
	// <nil> true
}

// Any goroutine may ask for the figures as they were last published.
func ExampleBudget_Snapshot() {
	b, err := budget.Open(pondPlan())
	mustBe(err)
	defer b.Close()
	b.Frame().Bytes(100)
	fmt.Println(b.Snapshot().Beside[0].Used, b.Report().Beside[0].Used)
	mustBe(b.NextFrame())
	fmt.Println(b.Snapshot().Beside[0].Used)
	// Output:
	// 0 100
	// 100
}
