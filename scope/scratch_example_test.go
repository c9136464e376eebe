package scope_test

import (
	"fmt"
	"unicode/utf8"

	"github.com/upfront-mem/upfront/scope"
)

var letters = scope.Plain[rune]()

// reversed returns the text backwards. The result is in out, the caller's scope; the scratch is on
// the other arena and freed when reversed returns.
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

// ExampleScratches_Pick shows why a worker has two scratch arenas: on the caller's, the scope of
// the scratch would cover the scope of the result.
func ExampleScratches_Pick() {
	b, _ := openExample()
	defer b.Close()
	scratches := b.Scratches(0)

	out := scratches.Pick().Open("result")
	defer out.Close()
	fmt.Println(reversed(scratches, out, "frösche"))

	other := scratches.Pick(out).Open("on the other scratch") // and the other way round
	defer other.Close()
	fmt.Println(reversed(scratches, other, "pond"))

	defer func() { fmt.Println(recover()) }()
	scratches.Pick(out, other) // NOT OKAY: there are only two
	// Output:
	// ehcsörf
	// dnop
	// scope: BUG: Pick: each of scratch 0.0 to scratch 0.1 holds a conflicting scope; raise scratch.each in the plan
}

// A worker's temporary data is in a scope of its scratch arena, which closes when the function
// returns.
func ExampleScratch() {
	b, scratch := openExample()
	defer b.Close()
	err := scratch.Do("count letters", func(s scope.Scope) error {
		counts := letters.Slice(s, 128)
		for _, letter := range "ribbit" {
			counts[letter]++
		}
		fmt.Println(counts['b'], "times b,", scratch.Stats().Used, "bytes used")
		return nil
	})
	fmt.Println(err, scratch.Stats().Used, "bytes used")
	// Output:
	// 2 times b, 512 bytes used
	// <nil> 0 bytes used
}
