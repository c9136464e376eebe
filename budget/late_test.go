package budget_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// bugs are misuses and fulls whose text is made when it is read: an arena_c.Refusal, the panic of a
// pool's Put, and those of containers. stale is in a region that is now empty.
type bugs struct {
	level, inner, closed scope.Scope
	first                scope.Scope // of a scratch arena, covered
	temp                 scope.Scope // covered by a newer scope
	pool                 scope.Pool[frog]
	put, again           *frog
	stale                struct {
		s    scope.Scope
		pool scope.Pool[frog]
		x    *frog
		list container.List[frog]
		dict container.StringMap[frog]
	}
}

func plant(t *testing.T, b *budget.Budget) *bugs {
	x := new(bugs)
	mustLoad(t, b, "level", func(s scope.Scope) {
		x.stale.s, x.stale.pool = s, frogs.Pool(s, 2)
		x.stale.x = x.stale.pool.Get()
		x.stale.list, x.stale.dict = container.NewList(s, frogs, 2), container.NewStringMap(s, frogs, 2, 4)
	})
	require.NoError(t, b.Region("level").Rewind(background))
	mustLoad(t, b, "level", func(s scope.Scope) {
		x.level, x.pool = s, frogs.Pool(s, 2)
		x.put, x.again = x.pool.Get(), x.pool.Get()
		x.pool.Put(x.put)
	})
	x.closed = b.Scratch(0, 0).Open("closed")
	require.NoError(t, x.closed.Close())
	x.first = b.Scratch(0, 0).Open("first")
	x.inner = x.first.Open("inner")
	x.temp = b.Frame().Temp(256)
	x.temp.Temp(64)
	return x
}

var late = map[string]func(x *bugs){
	"frozen":              func(x *bugs) { frogs.New(x.level) },
	"frozen, a slice":     func(x *bugs) { frogs.Slice(x.level, 2) },
	"covered":             func(x *bugs) { frogs.New(x.first) },
	"covered temporaries": func(x *bugs) { frogs.New(x.temp) },
	"closed":              func(x *bugs) { frogs.New(x.closed) },
	"closed, a slice":     func(x *bugs) { frogs.Slice(x.closed, 2) },
	"rewound":             func(x *bugs) { frogs.New(x.stale.s) },
	"rewound, Open":       func(x *bugs) { x.stale.s.Open("x") },
	"full":                func(x *bugs) { frogs.Slice(x.inner, 1<<20) },
	"full of one": func(x *bugs) {
		x.inner.AllocUnzeroed(60*budget.KiB, 8)
		x.inner.AllocUnzeroed(8*budget.KiB, 8)
	},
	"a bad align":         func(x *bugs) { x.inner.AllocUnzeroed(8, 3) },
	"no maker":            func(x *bugs) { new(scope.Maker[frog]).New(x.inner) },
	"put twice":           func(x *bugs) { x.pool.Put(x.put) },
	"put of another":      func(x *bugs) { x.pool.Put(new(frog)) },
	"put of nil":          func(x *bugs) { x.pool.Put(nil) },
	"put to a closed one": func(x *bugs) { x.stale.pool.Put(x.stale.x) },
	"a list":              func(x *bugs) { x.stale.list.Push(frog{}) },
	"a map":               func(x *bugs) { _ = x.stale.dict.Set("a", frog{}) },
}

// TestLateTexts: an unrecovered panic is printed after the deferred calls, among them the Close of
// its budget. Its first line is the same as when the panic was made.
func TestLateTexts(t *testing.T) {
	ago := regexp.MustCompile(`[0-9.]+[mµ]?s ago`)
	text := func(v any) string {
		require.Implements(t, new(error), v)
		line, _, _ := strings.Cut(v.(error).Error(), "\n")
		return ago.ReplaceAllString(line, "a while ago")
	}
	for what, misuse := range late {
		made := func() (*budget.Budget, any) {
			b := open(t, small())
			x := plant(t, b)
			defer func() { _ = recover() }()
			return b, thrown(func() { misuse(x) })
		}
		b, v := made()
		want := text(v)
		assert.Equal(t, want, text(v), "%s: asked twice", what)
		_ = b.Close()
		assert.Equal(t, want, text(v), "%s: asked, and the budget closed", what)

		for then, follow := range map[string]func(b *budget.Budget){
			"Close": func(b *budget.Budget) { _ = b.Close() },
			"Close and another budget": func(b *budget.Budget) {
				_ = b.Close()
				other := open(t, small())
				x := plant(t, other)
				_ = thrown(func() { frogs.New(x.level) })
				_ = thrown(func() { frogs.Slice(x.inner, 1<<20) })
			},
			"Close and Close": func(b *budget.Budget) {
				other := open(t, small())
				_ = b.Close()
				_ = other.Close()
			},
			"a rewind, and Close": func(b *budget.Budget) {
				_ = b.Region("level").Rewind(background)
				_ = b.Close()
			},
		} {
			if strings.Contains(want, "last emptied") && strings.HasPrefix(then, "a rewind") {
				continue // the text names the last one
			}
			b, v := made()
			follow(b)
			assert.Equal(t, want, text(v), "%s, then %s", what, then)
			var misuse *scope.Misuse
			assert.True(t, errors.Is(v.(error), scope.ErrFull) || errors.As(v.(error), &misuse), what)
		}
	}
}

func thrown(fn func()) (v any) {
	defer func() { v = recover() }()
	fn()
	return nil
}

// TestUsedAfterClose: the use of an object after Close reports the Close.
func TestUsedAfterClose(t *testing.T) {
	b := open(t, small())
	x := plant(t, b)
	_ = b.Close()
	for _, what := range []string{"frozen", "covered", "closed", "rewound", "full", "frozen, a slice"} {
		assert.EqualError(t, thrown(func() { late[what](x) }).(error),
			"scope: BUG: use of a scope whose budget is closed", what)
	}
}
