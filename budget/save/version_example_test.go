package save_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// yesterday returns the file of a program from before Version 1.
func yesterday() (file []byte) {
	type Mood uint8
	const calm, hungry Mood = 0, 1
	type Frog struct {
		Age, Speed uint8
		Mood       Mood
		Dry        bool
	}
	type Pond struct{ Frogs [2]Frog }
	loaded(func(s scope.Scope, r budget.Region) *save.Ring {
		state, pond := save.Begin(r, s, scope.Plain[Pond]())
		save.Enum(state, map[string]Mood{"Calm": calm, "Hungry": hungry})
		state.Name("lines")
		scope.Plain[uint32]().Pool(s, 4)
		pond.Frogs[1] = Frog{Age: 3, Speed: 24, Mood: hungry}
		return save.NewRing(s, 1, state)
	}, func(ring *save.Ring) (err error) {
		if err = ring.Take(1); err == nil {
			file, err = ring.AppendFile(nil, 1)
		}
		return err
	})
	return file
}

// loaded loads a region, and plays.
func loaded(makes func(s scope.Scope, r budget.Region) *save.Ring, play func(*save.Ring) error) {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{
		{Name: "level", Size: 64 * budget.KiB, State: true}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	ring, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*save.Ring, error) {
		return makes(s, b.Region("level")), nil
	})
	if err == nil {
		err = play(ring.Get())
	}
	if err != nil {
		fmt.Println(err)
	}
}

// The frog of yesterday's file has a Dry, an Age and a Speed in sixteenths. Today Dry is gone, the
// Age is Ticks, the Speed is a float32, and Health is new.
func ExampleState_Version() {
	type Mood uint8
	const asleep, calm, hungry Mood = 0, 1, 2
	type Frog struct {
		Health int32
		Speed  float32
		Ticks  uint32
		Mood   Mood
		_      [3]byte
	}
	type Pond struct{ Frogs [3]Frog }
	type frog0 struct{ Speed uint8 } // Frog until version 0, as far as a function reads it

	var pond *Pond
	loaded(func(s scope.Scope, r budget.Region) *save.Ring {
		state, root := save.Begin(r, s, scope.Plain[Pond]())
		state.Version(1,
			save.Dropped("save_test.Frog.Dry"), save.Renamed("save_test.Frog.Age", "Ticks"),
			save.Renumbered("save_test.Mood"), save.Renamed("lines", "reeds"),
			save.Converted(func(old frog0, f *Frog) { f.Speed, f.Health = float32(old.Speed)/16, 100 }))
		save.Enum(state, map[string]Mood{"Asleep": asleep, "Calm": calm, "Hungry": hungry})
		state.Name("reeds")
		scope.Plain[uint32]().Pool(s, 6)
		pond = root
		return save.NewRing(s, 1, state)
	}, func(ring *save.Ring) error {
		number, err := ring.Read(bytes.NewReader(yesterday()))
		if err != nil {
			return err
		}
		err = ring.Restore(context.Background(), number)
		fmt.Printf("%+v\n", pond.Frogs[1])
		return err
	})
	// Output:
	// {Health:100 Speed:1.5 Ticks:3 Mood:2 _:[0 0 0]}
}
