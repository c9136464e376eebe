package budget_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// A worker returns its lease when its job is done, and the next job gets the same scratch arenas.
func ExampleLease() {
	b, err := budget.Open(budget.Plan{Name: "server", Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	reply := func(ctx context.Context, players int) error {
		lease, err := b.Lease(ctx)
		if err != nil {
			return err
		}
		defer lease.Release()
		return lease.Scratch(0).Do("reply", func(s scope.Scope) error {
			fmt.Println("reply to", len(borrowed.Slice(s, players)), "players")
			return nil
		})
	}
	for _, players := range []int{2, 30} {
		if err := reply(context.Background(), players); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// reply to 2 players
	// reply to 30 players
}

// A load of systems also ends the level, which is after it. A load of the level doesn't touch
// systems.
func ExampleRegionPlan() {
	b, err := budget.Open(budget.Plan{Name: "game", Regions: []budget.RegionPlan{
		{Name: "systems", Size: 64 * budget.KiB, Note: "until the program ends"},
		{Name: "level", Size: 256 * budget.KiB, Warn: 90},
		{Name: "match", Size: 32 * budget.KiB, Slots: 4}, // 4 times 32 KiB
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	for _, name := range []string{"systems", "level", "systems"} {
		if err := loadWorld(b.Region(name), 10*budget.KiB); err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, "loaded; level holds", b.Region("level").Report().Used, "bytes")
	}
	// Output:
	// systems loaded; level holds 0 bytes
	// level loaded; level holds 10240 bytes
	// systems loaded; level holds 0 bytes
}

// A plan for a program that uses C libraries: C's malloc has 64 MiB, and returns memory that stays
// free for a second to the system.
func ExampleCHeapPlan() {
	plan := budget.Plan{
		Name:    "indexer",
		Scratch: budget.ScratchPlan{Workers: 2, Size: budget.MiB},
		CHeap:   budget.CHeapPlan{Size: 64 * budget.MiB, Trim: time.Second, Warn: 90},
	}
	if err := plan.Check(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(budget.SizeText(plan.CHeap.Size), "for C, trimmed after", plan.CHeap.Trim)
	// Output: 65536KiB for C, trimmed after 1s
}

// A plan says how much a part is expected to use. Band returns the bytes that the tolerance allows.
func ExampleExpected() {
	level := budget.Expected{Part: "level", Load: 40 * budget.KiB, Play: 32 * budget.KiB, Tolerance: 10}
	for _, use := range []uint64{30 * budget.KiB, 36 * budget.KiB} {
		least, most := level.Band(level.Play)
		fmt.Println(use, "bytes in play:", use >= least && use <= most)
	}
	// Output:
	// 30720 bytes in play: true
	// 36864 bytes in play: false
}
