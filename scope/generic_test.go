//go:build go1.27

package scope_test

import (
	"fmt"
	"reflect"
	"runtime/cgo"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// way makes values of a type in one of the ways that must be equal.
type way[T any] struct {
	one  func(s scope.Scope) *T
	list func(s scope.Scope, n int) []T
	pool func(s scope.Scope, n int) scope.Pool[T]
}

// generic is the way by the methods of a Scope, compiled for any T.
func generic[T any]() way[T] {
	return way[T]{
		func(s scope.Scope) *T { return s.New[T]() },
		func(s scope.Scope, n int) []T { return s.Slice[T](n) },
		func(s scope.Scope, n int) scope.Pool[T] { return s.Pool[T](n) },
	}
}

// trace returns the offsets, contents and refusals of a program that uses all of a way.
func (w way[T]) trace(t *testing.T) (lines []string) {
	scratch := dirty(t)
	say := func(what string, x any) {
		lines = append(lines, fmt.Sprintf("%s: %+v; %+v", what, x, scratch.Stats()))
	}
	header, _ := scratch.Open("first").C()
	at := func(p *T) uint64 { return arena_c.Place(unsafe.Pointer(p), header) }
	for _, before := range []int{0, 1, 3, 13} {
		say("one", scratch.Do("one", func(s scope.Scope) error {
			s.Bytes(before)
			x := w.one(s)
			say("x", fmt.Sprint(at(x), *x))
			list := w.list(s, 5)
			say("list", fmt.Sprint(at(unsafe.SliceData(list)), list, cap(list), w.list(s, 0) == nil))
			inner := s.Open("inner")
			defer inner.Close()
			say("covered", recovered(func() { w.one(s) }))
			say("covered list", recovered(func() { w.list(s, 1) }))
			say("covered pool", recovered(func() { w.pool(s, 1) }))
			return nil
		}))
		say("pool", scratch.Do("pool", func(s scope.Scope) error {
			s.Bytes(before)
			pool := w.pool(s, 3)
			x := pool.Get()
			say("x", fmt.Sprint(at(x), *x, pool.Cap(), pool.Live()))
			pool.Put(x)
			return nil
		}))
		say("full", scratch.Do("full", func(s scope.Scope) error {
			for range scratchSize + 1 {
				s.Bytes(before)
				w.one(s)
			}
			return nil
		}))
		say("full list", scratch.Do("full", func(s scope.Scope) error { w.list(s, scratchSize+1); return nil }))
		say("full pool", scratch.Do("full", func(s scope.Scope) error { w.pool(s, scratchSize); return nil }))
	}
	s := scratch.Open("s")
	say("negative list", recovered(func() { w.list(s, -1) }))
	say("negative pool", recovered(func() { w.pool(s, -1) }))
	require.NoError(t, s.Close())
	say("closed", recovered(func() { w.one(s) }))
	say("closed list", recovered(func() { w.list(s, 1) }))
	say("closed pool", recovered(func() { w.pool(s, 1) }))
	say("zero list", recovered(func() { w.list(scope.Scope{}, 1) }))
	say("zero pool", recovered(func() { w.pool(scope.Scope{}, 1) }))
	assert.Panics(t, func() { w.one(scope.Scope{}) })
	return lines
}

func sameAsMaker[T any](t *testing.T, ways ...way[T]) {
	m := scope.Plain[T]()
	want := way[T]{m.New, m.Slice, m.Pool}.trace(t)
	for _, w := range append(ways, generic[T]()) {
		assert.Equal(t, want, w.trace(t), "%v", reflect.TypeFor[T]())
	}
}

// TestMethodsAreMakers: New, Slice and Pool of a Scope allocate the same bytes, and refuse with the
// same words, as those of a Maker.
func TestMethodsAreMakers(t *testing.T) {
	sameAsMaker(t, way[point]{
		func(s scope.Scope) *point { return s.New[point]() },
		func(s scope.Scope, n int) []point { return s.Slice[point](n) },
		func(s scope.Scope, n int) scope.Pool[point] { return s.Pool[point](n) },
	})
	sameAsMaker[byte](t)
	sameAsMaker[[3]uint16](t)
	sameAsMaker[struct {
		A uint32
		B uint64
		C bool
	}](t)
	sameAsMaker[[999]complex128](t)
	sameAsMaker[arena.Slice[point]](t)
	sameAsMaker[struct {
		A uintptr
		B [0]*int
	}](t)
}

// TestMethodsWithoutBytes: a type of no bytes has values, but no pool.
func TestMethodsWithoutBytes(t *testing.T) {
	_, s := opened(t, "s")
	assert.NotNil(t, s.New[struct{}]())
	assert.Len(t, s.Slice[[0]string](7), 7)
	assert.EqualError(t, recovered(func() { s.Pool[struct{}](1) }), recovered(func() { empties.Pool(s, 1) }).Error())
	require.NoError(t, s.Close())
}

func refuses[T any](t *testing.T, s scope.Scope) {
	t.Helper()
	scratch := scope.StackOf(s)
	want := arena.CheckPlain(reflect.TypeFor[T]())
	require.Error(t, want)
	before := scratch.Stats()
	for _, make := range []func(){
		func() { s.New[T]() }, func() { s.Slice[T](1) }, func() { s.Slice[T](0) }, func() { s.Slice[T](-1) },
		func() { s.Pool[T](1) },
	} {
		err := recovered(make)
		require.EqualError(t, err, "scope: BUG: "+want.Error())
		var misuse *scope.Misuse
		require.ErrorAs(t, err, &misuse)
		require.Equal(t, want.Error(), misuse.Text)
	}
	assert.Equal(t, before, scratch.Stats())
}

type (
	named  struct{ Name string }
	linked struct {
		A [64]int64
		B [2]struct {
			C uint16
			D *linked
		}
	}
	incomplete struct{ _ cgo.Incomplete }
	database   struct{ at *incomplete }
)

// TestMethodsRefuseGoPointers: of each kind, at any depth, in a field that can't be used, and on
// each call.
func TestMethodsRefuseGoPointers(t *testing.T) {
	_, s := opened(t, "s")
	assert.EqualError(t, recovered(func() { s.New[named]() }),
		"scope: BUG: named.Name (string) holds a Go pointer; use arena.String, or arena.Inline for a short text")
	for range 2 {
		refuses[named](t, s)
	}
	refuses[linked](t, s)
	refuses[string](t, s)
	refuses[*int](t, s)
	refuses[[]byte](t, s)
	refuses[map[int]int](t, s)
	refuses[chan int](t, s)
	refuses[func()](t, s)
	refuses[any](t, s)
	refuses[error](t, s)
	refuses[unsafe.Pointer](t, s)
	refuses[[3][2]func()](t, s)
	refuses[struct{ _ *int }](t, s)
	refuses[struct {
		A named
		B [7]uint64
	}](t, s)
	refuses[scope.Scope](t, s)
	if arena_c.Checked {
		refuses[database](t, s)
	} else {
		assert.NotNil(t, s.New[database](), "the collector doesn't follow it")
	}
	require.NoError(t, s.Close())
}

func TestMethodsCostNoGoAllocation(t *testing.T) {
	if arena_c.Crossing || arena_c.Race {
		t.Skip("this build allocates for itself: go test ./scope runs it")
	}
	scratch := open(t).Scratch(0, 0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s := scratch.Open("s")
		s.New[point]().X = 1
		s.Slice[point](3)[2].X = 1
		s.Pool[point](3).Get().X = 1
		_ = s.Close()
	}))
}
