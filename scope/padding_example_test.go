//go:build !386 && !arm && !mips && !mipsle

// There a uint64 is aligned to 4, and the figures are others.

package scope_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/scope"
)

type (
	wide   struct{ Lanes [4]uint64 } // aligned to 8
	number uint32
	flag   uint8
)

var (
	wides   = scope.Plain[wide]()
	numbers = scope.Plain[number]()
	flags   = scope.Plain[flag]()
)

// A scope places each thing behind the last one, at the next address that is aligned for it. What lies between is lost until
// the scope closes. The same things in another order lose less: the largest alignment first.
func ExampleStats_padding() {
	b, _ := openExample()
	defer b.Close()
	scratch := b.Scratch(0, 0)
	show := func(order string, make func(s scope.Scope)) {
		_ = scratch.Do(order, func(s scope.Scope) error {
			make(s)
			used := scratch.Stats().Used
			fmt.Printf("%-13s  %d bytes, %4d of them padding\n", order, used, used-100*(32+4+1+1))
			return nil
		})
	}
	show("as it comes", func(s scope.Scope) {
		for range 100 {
			flags.New(s)
			wides.New(s)
			flags.New(s)
			numbers.New(s)
		}
	})
	show("largest first", func(s scope.Scope) {
		for range 100 {
			wides.New(s)
			numbers.New(s)
			flags.New(s)
			flags.New(s)
		}
	})
	show("kind by kind", func(s scope.Scope) {
		wides.Slice(s, 100)
		numbers.Slice(s, 100)
		flags.Slice(s, 200)
	})
	// Output:
	// as it comes    4800 bytes, 1000 of them padding
	// largest first  3998 bytes,  198 of them padding
	// kind by kind   3800 bytes,    0 of them padding
}
