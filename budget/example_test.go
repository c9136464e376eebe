package budget_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type Frog struct{ X, Y, Age int32 }

type Pond struct {
	Frogs scope.Pool[Frog]
	Deep  bool
}

type LogFile struct{ Lines int64 }

// Types are declared once, at package level. A type with a Go pointer inside stops the program here
// and names the field.
var (
	frogKind = scope.Plain[Frog]()
	logKind  = scope.Object[LogFile](func(f *LogFile) error {
		fmt.Println("the log closes after", f.Lines, "lines")
		return nil
	})
)

// Pond can't be declared: a pool is a Go value, which must stay outside the budget.
func loadPond(ctx context.Context, level budget.Region, frogs int) (budget.Loaded[Pond], error) {
	return budget.Load(ctx, level, func(s scope.Scope) (*Pond, error) {
		raw := s.Temp(10_000).Bytes(10_000) // only needed while the level loads
		raw[0] = 1
		log := logKind.New(s)
		log.Lines = 2
		return &Pond{Frogs: frogKind.Pool(s, frogs), Deep: raw[0] == 1}, nil
	})
}

// A small game: a level is loaded, played and rewound.
func Example() {
	b, err := budget.Open(budget.Plan{
		Name: "handheld",
		Regions: []budget.RegionPlan{
			{Name: "systems", Size: 128 * budget.KiB},
			{Name: "level", Size: 256 * budget.KiB},
		},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()

	ctx := context.Background()
	level := b.Region("level")
	pond, err := loadPond(ctx, level, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	for tick := range 3 {
		frog := pond.Get().Frogs.Get() // nil if all 100 are in use
		frog.Age = int32(tick)

		t := b.Scratch(0, 0).Open("who is near") // scratch that follows the call stack
		near := frogKind.TrySlice(t, 8)          // nil if the scratch arena is full
		near[0] = *frog
		t.Close()

		frogKind.New(b.Frame()) // lives until the end of the next frame
		b.NextFrame()
	}
	fmt.Println(pond.Get().Frogs.Live(), "frogs in", level.Report().Used, "bytes")
	fmt.Println("rewind:", level.Rewind(ctx))
	fmt.Println(pond.Get() == nil, level.Report().Used, level.Report().Peak)
	// Output:
	// 3 frogs in 2152 bytes
	// the log closes after 2 lines
	// rewind: <nil>
	// true 0 12200
}

// A level that doesn't fit: the error names the key to raise in the plan, and the region is empty
// as before.
func ExampleLoad_full() {
	b, err := budget.Open(budget.Plan{Name: "tiny",
		Regions: []budget.RegionPlan{{Name: "level", Size: 128 * budget.KiB}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()

	_, err = loadPond(context.Background(), b.Region("level"), 10_000)
	fmt.Println(errors.Is(err, budget.ErrFull))
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", "\n  "))
	fmt.Println(b.Region("level").Report().Used)
	// Output:
	// the log closes after 2 lines
	// true
	// budget "tiny": region level is full: scope "level" asked for 210016 bytes, 120992 of 131072 are free
	//   held by "temp" (10048 bytes), "level" (32 bytes)
	//   raise regions[0].size in the plan to 220096 or more
	// 0
}

func openTwo() *budget.Budget {
	b, err := budget.Open(budget.Plan{Name: "two", Regions: []budget.RegionPlan{
		{Name: "systems", Size: 64 * budget.KiB},
		{Name: "level", Size: 64 * budget.KiB},
	}})
	mustBe(err)
	return b
}

// Inside a load, the load's scope allows a load of a region above. Another caller gets ErrLoading.
func ExampleRegion_In() {
	b := openTwo()
	defer b.Close()
	ctx, level := context.Background(), b.Region("level")
	open := func(s scope.Scope) (*LogFile, error) { return &LogFile{}, nil }
	_, err := budget.Load(ctx, b.Region("systems"), func(s scope.Scope) (*LogFile, error) {
		_, err := budget.Load(ctx, level.In(s), open)
		fmt.Println(err)
		_, err = budget.Load(ctx, level, open)
		fmt.Println(errors.Is(err, budget.ErrLoading))
		return open(s)
	})
	fmt.Println(err)
	// Output:
	// <nil>
	// true
	// <nil>
}

// Rewinding a region first rewinds the regions above it. Finalizers run newest first.
func ExampleRegion_Rewind() {
	b := openTwo()
	defer b.Close()
	ctx := context.Background()
	for _, name := range []string{"systems", "level"} {
		_, err := budget.Load(ctx, b.Region(name), func(s scope.Scope) (*LogFile, error) {
			s.Defer(func() { fmt.Println(name, "dies last") })
			s.Defer(func() { fmt.Println(name, "dies first") })
			return nil, nil
		})
		mustBe(err)
	}
	fmt.Println(b.Region("systems").Rewind(ctx))
	// Output:
	// level dies first
	// level dies last
	// systems dies first
	// systems dies last
	// <nil>
}
