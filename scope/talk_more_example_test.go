package scope_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Spawn is a place where a frog comes from.
type Spawn struct{ X, Y int32 }

// Map lives on the Go heap and points into the level's region.
type Map struct{ Spawns []Spawn }

var spawns = scope.Plain[Spawn]()

// How many there are is known when the last one was read. A builder has all that is free in the level, and gives the rest
// back, to the byte.
func Example_arrayOfUnknownSize() {
	b, _ := openExample()
	defer b.Close()
	file := strings.NewReader("10 20  30 40  50 60")

	level, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*Map, error) {
		list := spawns.Build(s)
		for {
			var at Spawn
			if _, err := fmt.Fscan(file, &at.X, &at.Y); err != nil {
				break
			}
			list.Push(at)
		}
		return &Map{Spawns: list.Done()}, nil
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(level.Get().Spawns, cap(level.Get().Spawns))
	fmt.Println("level:", b.Region("level").Report().Used, "bytes")
	// Output:
	// [{10 20} {30 40} {50 60}] 3
	// level: 24 bytes
}

// Voice is a sound that plays. It begins and ends when the game wants it, not when a scope does.
type Voice struct{ Number int32 }

var voices = scope.Object(func(v *Voice) error {
	fmt.Println("voice", v.Number, "ends")
	return nil
})

// Stage is a level with as many voices as it wants.
type Stage struct{ Voices scope.ObjectPool[Voice] }

// play begins a voice. All voices may be taken: that is an expected answer, not an accident.
func (s *Stage) play(number int32) *Voice {
	v := s.Voices.Get()
	if v == nil {
		fmt.Println("voice", number, "isn't heard")
		return nil
	}
	v.Number = number
	return v
}

// What comes and goes in any order has a pool, which lives as long as its scope. A pool never grows; it is made anew
// with each level, as large as that level needs it.
func Example_objectPool() {
	b, _ := openExample()
	defer b.Close()
	for _, most := range []int{2, 3} {
		level, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*Stage, error) {
			fmt.Println("a level with", most, "voices")
			return &Stage{Voices: voices.Pool(s, most)}, nil
		})
		if err != nil {
			panic(err)
		}
		stage := level.Get()
		first := stage.play(1)
		stage.play(2)
		stage.play(3)
		stage.Voices.Put(first) // any of them, at any time
		stage.play(4)
	}
	fmt.Println("end")
	b.Close()
	// Output:
	// a level with 2 voices
	// voice 3 isn't heard
	// voice 1 ends
	// voice 4 ends
	// voice 2 ends
	// a level with 3 voices
	// voice 1 ends
	// end
	// voice 4 ends
	// voice 2 ends
	// voice 3 ends
}

// Radio is what others see, of a size that stays. What it is made of is hidden behind a Ptr, and may change.
type Radio struct{ hidden arena.Ptr[radioParts] }

type radioParts struct {
	Station int32
	Volume  [8]float32
}

var (
	radios      = scope.Plain[Radio]()
	hiddenParts = scope.Plain[radioParts]()
)

func newRadio(s scope.Scope, base arena.Base) *Radio {
	r := radios.New(s)
	r.hidden = arena.PtrTo(base, hiddenParts.New(s))
	return r
}

func (r *Radio) tune(base arena.Base, station int32) { r.hidden.Get(base).Station = station }
func (r *Radio) station(base arena.Base) int32       { return r.hidden.Get(base).Station }

// A hidden struct is free: it is a bump of the cursor, it lies beside what hides it, and nobody deletes it.
func Example_hiddenStruct() {
	b, _ := openExample()
	defer b.Close()
	scratch, base := b.Scratch(0, 0), b.Base()
	err := scratch.Do("car", func(s scope.Scope) error {
		radio := newRadio(s, base)
		radio.tune(base, 97)
		fmt.Println("station", radio.station(base), "on", scratch.Stats().Used, "bytes")
		return nil
	})
	fmt.Println(err, scratch.Stats().Used)
	// Output:
	// station 97 on 44 bytes
	// <nil> 0
}
