package scope_test

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var letters = scope.Plain[rune]()

// reversed gives the text backwards. The result lives where the caller says, in out; the scratch lives on the other scratch arena
// and is gone when reversed returns.
func reversed(scratches scope.Scratches, out scope.Scope, text string) string {
	scratch := scratches.Pick(out).Open("reversed") // doesn't cover out
	defer scratch.Close()
	list := letters.Slice(scratch, utf8.RuneCountInString(text))
	i := len(list)
	for _, letter := range text {
		i--
		list[i] = letter
	}
	result := out.Bytes(len(text))[:0]
	for _, letter := range list {
		result = utf8.AppendRune(result, letter)
	}
	return string(result) // a copy on the Go heap, for the example
}

// ExampleScratches_Pick shows why a worker has two scratch arenas: on the caller's, the scope of the scratch would cover the scope of the
// result.
func ExampleScratches_Pick() {
	b := openScratch()
	defer b.Close()
	scratches := b.Scratches(0)

	out := scratches.Pick().Open("result")
	defer out.Close()
	fmt.Println(reversed(scratches, out, "frösche"))

	other := scratches.Pick(out).Open("on the other scratch") // and the other way round
	defer other.Close()
	fmt.Println(reversed(scratches, other, "pond"))

	defer func() { fmt.Println(recover()) }()
	scratches.Pick(out, other) // NOT OKAY: there are two
	// Output:
	// ehcsörf
	// dnop
	// scope: BUG: Pick: each of scratch 0.0 to scratch 0.1 holds a scope that it should avoid
}

// ExampleScratch_With uses bytes for the time of a call: the alloca of a scratch arena.
func ExampleScratch_With() {
	b := openScratch()
	defer b.Close()
	scratch := b.Scratch(0, 0)

	sum := 0
	err := scratch.With(4, func(b []byte) {
		copy(b, "pond")
		for _, letter := range b {
			sum += int(letter)
		}
	})
	fmt.Println(err, sum, "used", scratch.Stats().Used)

	err = scratch.With(1<<20, func([]byte) { fmt.Println("never called") })
	fmt.Println(errors.Is(err, scope.ErrFull))
	// Output:
	// <nil> 433 used 0
	// true
}

// openScratch opens a budget for the examples of this file.
func openScratch() *budget.Budget {
	b, err := budget.Open(budget.Plan{
		Name:    "demo",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB},
	})
	if err != nil {
		panic(err)
	}
	return b
}
