//go:build go1.27

package scope_test

import "fmt"

// From Go 1.27 on, a scope makes plain data without a declaration of the type.
func ExampleScope_New() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("pond")
	defer s.Close()

	one, some, pool := s.New[frog](), s.Slice[frog](3), s.Pool[frog](2)
	fmt.Println(one.X, len(some), pool.Cap())

	type named struct{ Name string }
	defer func() { fmt.Println(recover()) }()
	s.New[named]()
	// Output:
	// 0 3 2
	// scope: BUG: named.Name (string) holds a Go pointer; use arena.String, or arena.Inline for a short text
}
