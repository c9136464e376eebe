package scope_test

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var letters = scope.Plain[rune]()

// reversed gives the text backwards. The result lives where the caller says, in out; the scratch lives on the other pad
// and is gone when reversed returns.
func reversed(pads scope.Pads, out scope.Scope, text string) string {
	scratch := pads.Pick(out).Open("reversed") // doesn't cover out
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

// ExamplePads_Pick shows why a worker has two pads: on the caller's, the scope of the scratch would cover the scope of the
// result.
func ExamplePads_Pick() {
	b := openPads()
	defer b.Close()
	pads := b.Pads.Of(0)

	out := pads.Pick().Open("result")
	defer out.Close()
	fmt.Println(reversed(pads, out, "frösche"))

	other := pads.Pick(out).Open("on the other pad") // and the other way round
	defer other.Close()
	fmt.Println(reversed(pads, other, "pond"))

	defer func() { fmt.Println(recover()) }()
	pads.Pick(out, other) // NOT OKAY: there are two
	// Output:
	// ehcsörf
	// dnop
	// scope: BUG: Pick: pad 0.0 and pad 0.1 both hold a scope that it should avoid; a function can leave at most one pad alone
}

// ExamplePad_With uses bytes for the time of a call: the alloca of a pad.
func ExamplePad_With() {
	b := openPads()
	defer b.Close()
	pad := b.Pad(0, 0)

	sum := 0
	err := pad.With(4, func(b []byte) {
		copy(b, "pond")
		for _, letter := range b {
			sum += int(letter)
		}
	})
	fmt.Println(err, sum, "used", pad.Stats().Used)

	err = pad.With(1<<20, func([]byte) { fmt.Println("never called") })
	fmt.Println(errors.Is(err, scope.ErrFull))
	// Output:
	// <nil> 433 used 0
	// true
}

// openPads opens a budget for the examples of this file.
func openPads() *budget.Budget {
	b, err := budget.Open(budget.Plan{
		Name:    "demo",
		Regions: []budget.Region{{Name: "level", Size: 64 * budget.KiB}},
		Pads:    budget.Pads{Workers: 1, Size: 64 * budget.KiB},
	})
	if err != nil {
		panic(err)
	}
	return b
}
