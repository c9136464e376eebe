//go:build go1.27

package lifetime

import "testing"

// TestMethods does as TestPlanted with generic methods. They need Go 1.27, and so does a tool that
// reads them.
func TestMethods(t *testing.T) {
	checkPlants(t, ".", slicesOf("tests/frogpond/internal/", methods))
}

// methodsFile has the methods' plants. Its build constraint selects the language of Go 1.27.
const methodsFile = "game/methods.go"

var methods = []plant{
	{name: "a value of a scope that closes", check: "escape", file: methodsFile,
		also: []edit{{methodsFile, "", `//go:build go1.27

package game

import "github.com/upfront-mem/upfront/scope"

type place struct{ X, Y int32 }

var lastPlace *place
`}},
		wrong: `
func onePlace(in scope.Scratch) *place {
	s := in.Open("place")
	defer s.Close()
	p := s.New[place]()
	return p //!
}
`,
		right: `
func onePlace(in scope.Scratch, to scope.Scope) *place {
	s := in.Open("place")
	defer s.Close()
	p := to.New[place]()
	*p = *s.New[place]()
	return p
}
`,
		want: "s.New[place]() is memory of the scope opened at line "},
	{name: "a list of a scope in a global", check: "escape", file: methodsFile,
		wrong: `
func firstPlace(in scope.Scratch) error {
	return in.Do("places", func(s scope.Scope) error {
		lastPlace = &s.Slice[place](3)[0] //!
		return nil
	})
}
`,
		right: `
func firstPlace(in scope.Scratch) error {
	return in.Do("places", func(s scope.Scope) error {
		lastPlace = new(s.Slice[place](3)[0])
		return nil
	})
}
`,
		want: "s.Slice[place](3) is memory of the scope of the Do at line "},
	{name: "a value of a pool of a scope", check: "escape", file: methodsFile,
		wrong: `
func pooledPlace(in scope.Scratch) *place {
	s := in.Open("places")
	defer s.Close()
	pool := s.Pool[place](3)
	return pool.Get() //!
}
`,
		right: `
func pooledPlace(in scope.Scratch) scope.Pool[place] {
	s := in.Open("places")
	defer s.Close()
	return s.Pool[place](3)
}
`,
		want: "pool.Get() is memory of the scope opened at line "},
	{name: "a value by a generic function", check: "escape", file: methodsFile,
		wrong: `
func oneOf[T any](s scope.Scope) *T { return s.New[T]() }

func someOf[T any](in scope.Scratch) *T {
	s := in.Open("some")
	defer s.Close()
	return oneOf[T](s) //!
}
`,
		right: `
func oneOf[T any](s scope.Scope) *T { return s.New[T]() }

func someOf[T any](to scope.Scope) *T {
	s := to.Open("some")
	defer s.Close()
	return oneOf[T](to)
}
`,
		want: "oneOf[T](s) is memory of the scope opened at line "},
	{name: "a value after its scope", check: "afterclose", file: methodsFile,
		wrong: `
func latePlace(in scope.Scratch) int32 {
	s := in.Open("place")
	p := s.New[place]()
	s.Close()
	return p.X //!
}
`,
		right: `
func latePlace(in scope.Scratch) int32 {
	s := in.Open("place")
	p := *s.New[place]()
	s.Close()
	return p.X
}
`,
		want: "s.New[place]() is memory of the scope opened at line "},
	{name: "append to a list of a scope", check: "append", file: methodsFile,
		wrong: `
func morePlaces(s scope.Scope) []place {
	list := s.Slice[place](3)
	return append(list, place{}) //!
}
`,
		right: `
func morePlaces(s scope.Scope) []place {
	list := s.Slice[place](3)
	return append(list[:2], place{})
}
`,
		want: "append goes to the Go heap: the result of s.Slice[place](3) has no spare capacity"},
	{name: "a text in a value", check: "plain", file: methodsFile,
		wrong: `
func named(s scope.Scope) *struct{ Name string } {
	return s.New[struct{ Name string }]() //!
}
`,
		right: `
func named(s scope.Scope) *struct{ Name [8]byte } {
	return s.New[struct{ Name [8]byte }]()
}
`,
		want: "scope.Scope.New[struct{Name string}]: struct{Name string}.Name (string) holds a Go pointer"},
	{name: "pointers in a list", check: "plain", file: methodsFile,
		wrong: "\nfunc pointed(s scope.Scope) []*place { return s.Slice[*place](3) } //!\n",
		right: "\nfunc pointed(s scope.Scope) []place { return s.Slice[place](3) }\n",
		want:  "scope.Scope.Slice[*place]: *game.place holds a Go pointer; use arena.Ptr"},
	{name: "a pool of functions", check: "plain", file: methodsFile,
		wrong: "\nfunc called(s scope.Scope) scope.Pool[func()] { return s.Pool[func()](3) } //!\n",
		right: "\nfunc called(s scope.Scope) scope.Pool[uint8] { return s.Pool[uint8](3) }\n",
		want:  "scope.Scope.Pool[func()]: func() holds a Go pointer"},
	{name: "a text through generic methods", check: "plain", file: methodsFile,
		also: []edit{{methodsFile, "", `
type pair[A any] struct{ scope scope.Scope }

type twins struct{ pair[string] }

func (p pair[A]) make[B any]() *B { return &p.scope.New[struct { N int8; Of B }]().Of }

func (p pair[A]) through[B, C any](B) *C { return p.make[C]() }
`}},
		wrong: `
func made(t twins) *string {
	t.through[[]byte, int8](nil)
	return t.through[int8, string](1) //!
}
`,
		right: `
func made(t twins) *int8 {
	t.through[[]byte, int8](nil)
	return t.through[string, int8]("")
}
`,
		want: "scope.Scope.New[string] by through: string holds a Go pointer"},
}
