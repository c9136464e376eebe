package budget_test

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type spark struct{ X, Y int32 }

var sparks = scope.Plain[spark]()

func mustBe(err error) {
	if err != nil {
		panic(err)
	}
}

// openFrames opens a budget with a frame, where each tick makes sparks.
func openFrames() *budget.Budget {
	b, err := budget.Open(budget.Plan{Name: "small", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Frame: budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB}})
	mustBe(err)
	return b
}

// Set-up is over: play is strict, the change of a level is merely sealed.
func ExampleBudget_Seal() {
	b := openFrames()
	defer b.Close()
	mustBe(b.Seal())
	for range 2 { // levels
		mustBe(b.SealStrict())
		for range 3 { // ticks: a Go allocation between frames is a panic in checked builds
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
