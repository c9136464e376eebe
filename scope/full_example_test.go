package scope_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// A server whose match doesn't fit reports the key of the plan to raise, and goes on.
func ExampleFullError() {
	b, err := budget.Open(budget.Plan{Name: "server",
		Regions: []budget.RegionPlan{{Name: "match", Size: 64 * budget.KiB}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	for _, players := range []int{4_000, 400} {
		_, err = budget.Load(context.Background(), b.Region("match"), func(s scope.Scope) (*Player, error) {
			return &playerKind.Slice(s, players)[0], nil
		})
		var full *scope.FullError
		if errors.As(err, &full) {
			fmt.Printf("%d players: %s asked for %d bytes; set %s to %d\n", players, full.Arena, full.Asked,
				full.Key, full.Need)
			continue
		}
		fmt.Printf("%d players: %v\n", players, err)
	}
	// Output:
	// 4000 players: region match asked for 128000 bytes; set regions[0].size to 128000
	// 400 players: <nil>
}

// ExampleMisuse: a bug of the caller panics, and a Close that is refused returns it.
func ExampleMisuse() {
	b, err := budget.Open(budget.Plan{Name: "example", Scratch: budget.ScratchPlan{Workers: 1, Size: 4 * budget.KiB}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	outer := b.Scratch(0, 0).Open("outer")
	inner := outer.Open("inner")
	var misuse *scope.Misuse
	if err := outer.Close(); errors.As(err, &misuse) {
		fmt.Println(misuse.Text)
	}
	fmt.Println(inner.Close(), outer.Close())
	fmt.Println(errors.Is(inner.Close(), scope.ErrClosed))
	// Output:
	// Close of scope "outer" of scratch 0.0 while scope "inner", opened in it, is open; close "inner" first
	// <nil> <nil>
	// true
}

// ExampleUsage: a report has the memory of each label.
func ExampleUsage() {
	b, err := budget.Open(budget.Plan{Name: "example",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*Player, error) {
		return nil, scope.Label(s, "sound", func() error { s.Bytes(2048); return nil })
	})
	fmt.Println(errors.Is(err, scope.ErrFull), err)
	var sound scope.Usage = b.Region("level").Report().Labels[0]
	fmt.Println(sound.Name, sound.Bytes, sound.Peak)
	// Output:
	// false <nil>
	// sound 2048 2048
}
