// Command programs commits a data race inside an arena, chosen by name, for the race detector to
// report. Build it with -race: exit status 66 means that a race was reported, 0 that none was.
//
//	programs use/new        # the race
//	programs use/new told   # the control: the same, with an order that the detector knows
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/race/untold"
)

// programs are all programs, by name. A comment at the end of a line names the program whose report
// must show the line, as the first access, the second, or both.
var programs = map[string]func(*play){}

func add(kind string, list map[string]func(*play)) {
	for name, run := range list {
		programs[kind+"/"+name] = run
	}
}

func main() {
	add("use", uses)
	add("end", ending(ends))
	add("life", lives)
	add("between", between(works))
	add("hidden", between(loud))
	add("clean", clean)
	if len(os.Args) < 2 || programs[os.Args[1]] == nil {
		for _, name := range slices.Sorted(maps.Keys(programs)) {
			fmt.Println(name)
		}
		os.Exit(2)
	}
	programs[os.Args[1]](&play{budget: open(), told: len(os.Args) > 2})
}

// play has the budget and the arenas of a program.
type play struct {
	budget *budget.Budget
	told   bool
}

func open() *budget.Budget {
	b, err := budget.Open(budget.Plan{
		Name: "race",
		Regions: []budget.RegionPlan{{Name: "systems", Size: 256 * budget.KiB},
			{Name: "match", Size: 64 * budget.KiB, Slots: 4}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 4, Size: 128 * budget.KiB},
	})
	must(err)
	return b
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// frog is the object of the races.
type frog struct{ Age, X int32 }

var frogs = scope.Plain[frog]()

// look reads a frog. It isn't inlined, so that the read isn't dropped.
//
//go:noinline
func look(x *frog) int32 { return x.Age }

func (p *play) scope() scope.Scope { return p.budget.Scratch(0, 0).Open("a") }

// pair runs first, then second, on a goroutine each. Only in the control does the detector know of
// the order: without it, the order is a coincidence.
func (p *play) pair(first, second func()) {
	over := make(chan bool)
	var both sync.WaitGroup
	both.Go(func() {
		first()
		p.tell(func() { close(over) })
	})
	both.Go(func() {
		p.tell(func() { <-over })
		second()
	})
	both.Wait()
}

func (p *play) tell(do func()) {
	if p.told {
		do()
	} else {
		untold.Do(do)
	}
}

// both is a pair of the same function.
func (p *play) both(do func()) { p.pair(do, do) }
