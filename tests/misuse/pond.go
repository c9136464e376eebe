package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// The common parts of the programs: a small budget and its objects.

type Frog struct{ X, Y, Age uint64 }

var (
	ctx   = context.Background()
	frogs = scope.Plain[Frog]()
)

// pondPlan has no gaps between its arenas, and each is used to its last byte.
var pondPlan = budget.Plan{
	Name:    "pond",
	Regions: []budget.RegionPlan{{Name: "systems", Size: 64 * budget.KiB}, {Name: "level", Size: 64 * budget.KiB}},
	Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
	Scratch: budget.ScratchPlan{Workers: 2, Size: 64 * budget.KiB},
}

func open() *budget.Budget { return made(budget.Open(pondPlan)) }

// acquireRoom opens a budget with two rooms, and acquires one.
func acquireRoom() (*budget.Budget, budget.Region) {
	plan := pondPlan
	plan.Regions = []budget.RegionPlan{{Name: "room", Size: budget.KiB, Slots: 2}}
	b := made(budget.Open(plan))
	room := made(b.Slots("room").Acquire())
	return b, room
}

// acquireBelow opens a budget with two rooms below a region without slots, and acquires one.
func acquireBelow() (*budget.Budget, budget.Region) {
	plan := pondPlan
	plan.Regions = []budget.RegionPlan{{Name: "room", Size: budget.KiB, Slots: 2}, {Name: "net", Size: budget.KiB}}
	b := made(budget.Open(plan))
	return b, made(b.Slots("room").Acquire())
}

// openQuery opens a budget with a scope on scratch.
func openQuery() (*budget.Budget, scope.Scope) {
	b := open()
	return b, b.Scratch(0, 0).Open("query")
}

// closeAll ends scopes and their budget, in this order.
func closeAll(list ...io.Closer) {
	for _, c := range list {
		check(c.Close())
	}
}

// load loads a region with the result of fn.
func load[T any](b *budget.Budget, region string, fn func(s scope.Scope) *T) budget.Loaded[T] {
	return loadIn(b.Region(region), fn)
}

// loadIn is load of a region value, perhaps one of In.
func loadIn[T any](region budget.Region, fn func(s scope.Scope) *T) budget.Loaded[T] {
	loaded, err := budget.Load(ctx, region, func(s scope.Scope) (*T, error) { return fn(s), nil })
	check(err)
	return loaded
}

// oldFrog returns a frog in s that is 7 years old.
func oldFrog(s scope.Scope) *Frog {
	frog := frogs.New(s)
	frog.Age = 7
	return frog
}

// write makes a frog 7 years old, if the program should do it in this step.
func write(now bool, frog *Frog) {
	if now {
		frog.Age = 7
	}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// check ends a program whose misuse is answered by an error. For a nil answer, ask does.
func check(err error) {
	if err != nil {
		fmt.Println("told:", err)
		os.Exit(told)
	}
}

// made returns x, and checks err.
func made[T any](x T, err error) T {
	check(err)
	return x
}

// when checks a step that is done only if now is set.
func when(now bool, step func() error) {
	if now {
		check(step())
	}
}

func ask(ok bool, refusal string) {
	if !ok {
		fmt.Println("told:", refusal)
		os.Exit(told)
	}
}
