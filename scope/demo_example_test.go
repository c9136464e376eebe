package scope_test

import (
	"fmt"

	"github.com/upfront-mem/upfront/scope"
)

// Foo says when it is made and when it is dropped.
type Foo struct{ Number int32 }

func (f *Foo) drop() error {
	fmt.Println("drop", f.Number)
	return nil
}

var foos = scope.Object((*Foo).drop)

func makeFoo(s scope.Scope, number int32) {
	foo := foos.New(s)
	foo.Number = number
	fmt.Println("make", number)
}

// An object in each of two nested scopes: the inner one dies first.
func Example_demoAsMeant() {
	b, _ := openExample()
	defer b.Close()
	err := b.Scratch(0, 0).Do("outer", func(outer scope.Scope) error {
		makeFoo(outer, 1)
		return outer.Do("inner", func(inner scope.Scope) error {
			makeFoo(inner, 2)
			return nil
		})
	})
	fmt.Println(err)
	// Output:
	// make 1
	// make 2
	// drop 2
	// drop 1
	// <nil>
}

// As it was published, the demo makes the second object in the outer scope while the inner one is open. It would lie
// where the inner scope rewinds, linked to the outer one's chain: with one more object that chain ends in itself. Here
// the covered scope refuses, by name; what was made before is dropped once.
func Example_demoAsPublished() {
	b, _ := openExample()
	defer b.Close()
	defer func() { fmt.Println(recover()) }()
	err := b.Scratch(0, 0).Do("outer", func(outer scope.Scope) error {
		makeFoo(outer, 1)
		return outer.Do("inner", func(inner scope.Scope) error {
			makeFoo(outer, 2) // NOT OKAY: inner covers outer
			return nil
		})
	})
	fmt.Println("not reached:", err)
	// Output:
	// make 1
	// drop 1
	// scope: BUG: allocation in scope "outer" of scratch 0.0 while scope "inner", opened in it, is open
}
