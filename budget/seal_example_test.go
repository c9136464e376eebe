package budget_test

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/budget"
)

// Set-up is over: play is Strict, the change of a level is Sealed.
func ExampleBudget_Seal() {
	b, _ := budget.Open(small())
	defer b.Close()
	mustBe := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	mustBe(b.Seal(budget.Sealed))
	for range 2 { // levels
		mustBe(b.Seal(budget.Strict))
		for range 3 { // ticks: a Go allocation between turns is a panic in memdebug builds
			frogs.New(b.Frame())
			mustBe(b.Turn())
		}
		mustBe(b.Seal(budget.Sealed))
		fmt.Println("the next level may print")
	}
	// Output:
	// the next level may print
	// the next level may print
}

// printer stands for a *testing.T.
type printer struct{}

func (printer) Helper() {}

func (printer) Errorf(format string, args ...any) {
	said := strings.Split(fmt.Sprintf(format, args...), "\n")
	what, _, _ := strings.Cut(said[2], " (")
	fmt.Println(said[0][:strings.Index(said[0], ",")], "by", strings.TrimSpace(what))
}

// In a test: b.NoHeap(t, game.tick).
func ExampleBudget_NoHeap() {
	b, _ := budget.Open(small())
	defer b.Close()
	b.NoHeap(printer{}, func() { frogs.New(b.Frame()) })
	b.NoHeap(printer{}, escape)
	// Output:
	// budget "small": NoHeap: 1 Go allocation by github.com/upfront-mem/upfront/budget_test.escape
}
