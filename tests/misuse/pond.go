package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// What the programs have in common: a small budget and what lives in it.

type Frog struct{ X, Y, Age uint64 }

var (
	ctx   = context.Background()
	frogs = scope.Plain[Frog]()
)

// pondPlan has nothing between its arenas, and each is used to its last byte.
var pondPlan = budget.Plan{
	Name:    "pond",
	Regions: []budget.RegionPlan{{Name: "systems", Size: 64 * budget.KiB}, {Name: "level", Size: 64 * budget.KiB}},
	Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
	Scratch: budget.ScratchPlan{Workers: 2, Size: 64 * budget.KiB},
}

func open() *budget.Budget { return made(budget.Open(pondPlan)) }

// acquireRoom opens a budget with two rooms, and takes one.
func acquireRoom() (*budget.Budget, budget.Region) {
	plan := pondPlan
	plan.Regions = []budget.RegionPlan{{Name: "room", Size: budget.KiB, Slots: 2}}
	b := made(budget.Open(plan))
	room := made(b.Slots("room").Acquire())
	return b, room
}

// acquireBelow opens a budget with two rooms below a region without slots, and takes one.
func acquireBelow() (*budget.Budget, budget.Region) {
	plan := pondPlan
	plan.Regions = []budget.RegionPlan{{Name: "room", Size: budget.KiB, Slots: 2}, {Name: "net", Size: budget.KiB}}
	b := made(budget.Open(plan))
	return b, made(b.Slots("room").Acquire())
}

// openQuery opens a scope on scratch, too.
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

// load loads a region with what fn makes.
func load[T any](b *budget.Budget, region string, fn func(s scope.Scope) *T) budget.Loaded[T] {
	return loadIn(b.Region(region), fn)
}

// loadIn is load of a region that the program has, perhaps with the proof of being inside a load.
func loadIn[T any](region budget.Region, fn func(s scope.Scope) *T) budget.Loaded[T] {
	loaded, err := budget.Load(ctx, region, func(s scope.Scope) (*T, error) { return fn(s), nil })
	check(err)
	return loaded
}

// oldFrog is a frog in s that is 7 years old.
func oldFrog(s scope.Scope) *Frog {
	frog := frogs.New(s)
	frog.Age = 7
	return frog
}

// write makes a frog 7 years old, in the step where the program should.
func write(now bool, frog *Frog) {
	if now {
		frog.Age = 7
	}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// check ends a program that is told of what it did by an error; where the answer is nil, ask does.
func check(err error) {
	if err != nil {
		fmt.Println("told:", err)
		os.Exit(told)
	}
}

// made is what somebody made without an error.
func made[T any](x T, err error) T {
	check(err)
	return x
}

// when is check of a step that is done only then.
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
