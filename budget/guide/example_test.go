package guide_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type Sound struct{ Rate, Length int32 }
type Frog struct{ X, Y, Age int32 }
type Level struct{ Frogs scope.Pool[Frog] } // a Go value: it may also hold maps and strings

var sounds, frogs = scope.Plain[Sound](), scope.Plain[Frog]()
var plan = budget.Plan{Name: "game",
	Regions: []budget.RegionPlan{ // the region that lives longest comes first
		{Name: "init", Size: 64 * budget.KiB}, {Name: "systems", Size: 64 * budget.KiB},
		{Name: "level", Size: 192 * budget.KiB}},
	Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
	Scratch: budget.ScratchPlan{Workers: 1, Each: 1, Size: 64 * budget.KiB}}

func tick(b *budget.Budget, level *Level) error {
	if frog := level.Frogs.Get(); frog != nil { // nil if no frog is free
		frog.Age++ // the region is frozen, but its pools still work
	}
	return b.Scratch(0, 0).Do("near", func(s scope.Scope) error {
		near := frogs.Slice(s, 1500)             // ends with the function
		copy(frogs.Slice(b.Frame(), 3000), near) // ends with the next frame
		return s.Do("path", func(s scope.Scope) error { s.Bytes(20_000)[0] = 1; return nil })
	})
}

func play(b *budget.Budget, size int) error {
	load := func(s scope.Scope) (*Level, error) {
		s.Defer(func() { fmt.Println("a level of", size, "frogs ends") })
		file := s.Temp(60_000).Bytes(60_000) // a temporary: it ends with the load
		return &Level{frogs.Pool(s, size+int(file[0]))}, nil
	}
	level, err := budget.Load(context.Background(), b.Region("level"), load) // ends the one before
	for frame := 0; frame < 3 && err == nil; frame++ {
		err = errors.Join(tick(b, level.Get()), b.NextFrame())
	}
	return err
}

func game(b *budget.Budget) error {
	for _, name := range []string{"init", "systems"} {
		load := func(s scope.Scope) (*[]Sound, error) {
			s.Defer(func() { fmt.Println(name, "ends") })
			list := sounds.Slice(s, 5000) // if the region is full, the load ends here
			return &list, nil
		}
		if _, err := budget.Load(context.Background(), b.Region(name), load); err != nil {
			return err
		}
	}
	return errors.Join(play(b, 3000), play(b, 6000))
}

func Example() {
	b, err := budget.Open(plan)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(game(b))
	for _, arena := range b.Report().Arenas {
		fmt.Println(arena.Name, "uses", arena.Used, "of", arena.Size, "bytes; peak", arena.Peak)
	}
	fmt.Println(b.Close())
	// Output:
	// a level of 3000 frogs ends
	// <nil>
	// init uses 40016 of 65536 bytes; peak 40016
	// systems uses 40016 of 65536 bytes; peak 40016
	// level uses 126048 of 196608 bytes; peak 186080
	// frame 0 uses 0 of 65536 bytes; peak 36000
	// frame 1 uses 36000 of 65536 bytes; peak 36000
	// scratch 0.0 uses 0 of 65536 bytes; peak 38000
	// a level of 6000 frogs ends
	// systems ends
	// init ends
	// <nil>
}
