//go:build checked

package scope_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// requests returns the number of requests of fn in a load. It fails the test unless each request,
// when refused, ends the load, and ends fn unless fn uses Try functions.
func requests(t *testing.T, tries bool, fn func(s scope.Scope)) (count int) {
	b := open(t)
	for n := uint64(1); ; n++ {
		arena_c.FailAt(n)
		_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*point, error) {
			fn(s)
			refused, _ := arena_c.Failed()
			require.True(t, tries || !refused, "request %d was refused, and it went on", n)
			return nil, nil
		})
		arena_c.FailAt(0)
		refused, told := arena_c.Failed()
		if !refused {
			require.NoError(t, err)
			return int(n - 1)
		}
		require.True(t, told)
		var full *scope.FullError
		require.ErrorAs(t, err, &full, "request %d", n)
		require.True(t, full.OnPurpose)
		require.Equal(t, full.Size, full.Need)
	}
}

func TestWhatIsOneRequest(t *testing.T) {
	for name, c := range map[string]struct {
		count int
		fn    func(s scope.Scope)
	}{
		"new":         {1, func(s scope.Scope) { points.New(s) }},
		"object":      {1, func(s scope.Scope) { marks.New(s) }},
		"objects":     {1, func(s scope.Scope) { marks.Slice(s, 3) }},
		"owned":       {2, func(s scope.Scope) { s.Defer(func() {}) }}, // a place and 16 bytes
		"pool":        {1, func(s scope.Scope) { points.Pool(s, 3) }},
		"scope":       {1, func(s scope.Scope) { _ = s.Open("inner").Close() }},
		"temporaries": {1, func(s scope.Scope) { s.Temp(64) }},
		"do":          {1, func(s scope.Scope) { must(s.Do("inner", func(scope.Scope) error { return nil })) }},
		"label":       {2, label}, // a place and 40 bytes
		"label again": {3, func(s scope.Scope) { label(s); label(s) }},
		// its scope
		"builder":  {1, func(s scope.Scope) { b := points.Build(s); b.Push(point{}); b.Done() }},
		"no bytes": {0, func(s scope.Scope) { s.Text() }},
		// the second in place
		"text":   {2, func(s scope.Scope) { text := s.Text(); text.Add("one").Add("two") }},
		"append": {2, func(s scope.Scope) { chars.Append(s, chars.Append(s, nil, 1), 2) }},
		"append moves": {3, func(s scope.Scope) {
			list := chars.Slice(s, 1)
			chars.Slice(s, 1)
			chars.Append(s, list, 2)
		}},
		"append in capacity": {1, func(s scope.Scope) {
			chars.Append(s, chars.SliceCap(s, 0, 2), 2)
		}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.count, requests(t, name == "text", c.fn)) })
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func label(s scope.Scope) { must(scope.Label(s, "sound", func() error { return nil })) }

func TestARefusalOnPurposeSaysSo(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	s := scratch.Open("query")
	s.AllocUnzeroed(64, 8)
	for want, c := range map[string]struct {
		n  uint64
		fn func()
	}{
		`"query" asked for 8 bytes, 65472 of 65536 are free; held by "query" (64 bytes)`: {1, func() { points.New(s) }},
		`"query" asked for 3 bytes, 65472 of 65536 are free; held by "query" (64 bytes)`: {1, func() { s.Bytes(3) }},
		`"inner" asked for one more of 8 scopes`: {1, func() {
			s.Open("inner")
		}},
		`"query" asked for one more of 8 owned values`: {1, func() { s.Keep(t) }},
		`"query" asked for one more of 32 labels`:      {1, func() { label(s) }},
	} {
		arena_c.FailAt(c.n)
		refused := func() (v any) {
			defer func() { v = recover() }()
			c.fn()
			return nil
		}()
		err, _ := refused.(error)
		require.Error(t, err, want)
		assert.EqualError(t, err, `budget "test": scratch 0.0 refused on purpose (budgettest.FailEach): scope `+want)
		require.ErrorIs(t, err, scope.ErrFull)
	}
	require.NoError(t, b.Region("level").Rewind(context.Background()))
	var full *scope.FullError
	require.ErrorAs(t, s.Close(), &full, "New and Bytes were never told")
	assert.True(t, full.OnPurpose)
	assert.EqualValues(t, 3, min(full.Asked, 3))
}

func TestTryRemembersARefusalOnPurpose(t *testing.T) {
	b := open(t)
	s := b.Scratch(0, 0).Open("query")
	arena_c.FailAt(1)
	size := s.Free()
	require.Nil(t, s.TryAllocUnzeroed(size, 8))
	_, told := arena_c.Failed()
	require.False(t, told)
	var full *scope.FullError
	require.ErrorAs(t, s.Err(), &full)
	_, told = arena_c.Failed()
	require.True(t, told)
	require.True(t, full.OnPurpose)
	require.NotNil(t, points.TryNew(s))
	require.Nil(t, s.TryAllocUnzeroed(size, 8)) // the same request, and now there is no room
	require.ErrorAs(t, s.Err(), &full)
	require.False(t, full.OnPurpose)
	require.Error(t, s.Close())
}

func TestDoReturnsARefusalOnPurpose(t *testing.T) {
	b := open(t)
	s := b.Scratch(0, 0).Open("query")
	ask := func(s scope.Scope) error { s.Bytes(100); return nil }
	for n, want := range []string{"one more of 8 scopes", "100 bytes, "} {
		arena_c.FailAt(uint64(n + 1))
		err := b.Scratch(0, 0).Do("do", ask)
		require.ErrorIs(t, err, scope.ErrFull)
		assert.Contains(t, err.Error(), "asked for "+want)
	}
	require.NoError(t, b.Scratch(0, 0).Do("do", ask))
	require.NoError(t, s.Close())
}

// TestMisuseIsNoRequest: it is reported as a misuse, and the next request is refused.
func TestMisuseIsNoRequest(t *testing.T) {
	b := open(t)
	s := b.Scratch(0, 0).Open("query")
	inner := s.Open("inner")
	var refused bool
	arena_c.FailAt(1)
	require.Panics(t, func() { s.Open("covered") })
	require.Panics(t, func() { s.Defer(func() {}) })
	require.Nil(t, points.TryNew(s))
	refused, _ = arena_c.Failed()
	require.False(t, refused)
	arena_c.FailAt(0)
	inner.Defer(func() {
		arena_c.FailAt(1)
		assert.PanicsWithError(t, `scope: BUG: Open in scope "inner" of scratch 0.0 while its finalizers run`,
			func() { b.Scratch(0, 0).Open("late") })
	})
	require.NoError(t, inner.Close())
	refused, _ = arena_c.Failed()
	require.False(t, refused)
	arena_c.FailAt(0)
	inner = s.Open("inner")
	arena_c.FailAt(1)
	require.Nil(t, points.TryNew(inner))
	require.ErrorIs(t, inner.Close(), scope.ErrFull)
	err := s.Close()
	require.ErrorContains(t, err, "while scope")
	require.NotErrorIs(t, err, scope.ErrFull)
}

func TestAConstructorThatIsRefusedOnPurpose(t *testing.T) {
	b := open(t)
	for n := uint64(1); n <= 3; n++ {
		err := b.Scratch(0, 0).Do("query", func(s scope.Scope) error {
			arena_c.FailAt(n)
			defer arena_c.FailAt(0)
			_, err := points.Make(s, func(p *point) error {
				// left open when the next request is refused: it alone remembers
				inner := s.Open("inner")
				if points.TryNew(inner) == nil {
					return inner.Err()
				}
				return inner.Close()
			})
			return err
		})
		var full *scope.FullError
		require.ErrorAs(t, err, &full, "request %d", n)
		require.True(t, full.OnPurpose, "request %d", n)
	}
}
