package record_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/model/clib"
)

// TestC: C's allocations are in the next event of the arena.
func TestC(t *testing.T) {
	far := func(p uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }
	for name, program := range map[string]func(t testing.TB, s scope.Scope){
		"bytes": func(t testing.TB, s scope.Scope) {
			h, gen := s.C()
			assert.True(t, clib.Alloc(h, gen, 100))
			octets.Slice(s, 100)
			assert.True(t, clib.Alloc(h, gen, 100))
		},
		"a scope that is over": func(t testing.TB, s scope.Scope) {
			h, _ := s.C()
			gen := clib.Open(h)
			assert.True(t, clib.Alloc(h, gen, 500))
			assert.Equal(t, arena_c.OK, clib.Close(h, gen))
			octets.Slice(s, 100)
		},
		"a scope that is open, and covered": func(t testing.TB, s scope.Scope) {
			h, _ := s.C()
			gen := clib.Open(h)
			assert.True(t, clib.Alloc(h, gen, 500))
		},
		"a scope of Go that C closes": func(t testing.TB, s scope.Scope) {
			inner := s.Open("inner")
			octets.Slice(inner, 500)
			_ = inner.Do("innermost", func(scope.Scope) error { return nil })
			assert.Equal(t, arena_c.OK, clib.Close(inner.C()))
			octets.Slice(s, 100)
			octets.Slice(s.Open("other"), 200)
		},
		"temporaries": func(t testing.TB, s scope.Scope) {
			h, gen := s.C()
			_, temp := clib.Temp(h, gen, 1000)
			assert.NotZero(t, temp)
			octets.Slice(s, 100)
			s.Temp(300)
			octets.Slice(s, 100)
		},
		"temporaries that are over": func(t testing.TB, s scope.Scope) {
			h, gen := s.C()
			p, temp := clib.Temp(h, gen, 1000)
			octets.Slice(s, 100)
			assert.Equal(t, arena_c.OK, clib.Close(far(p), temp))
			octets.Slice(s, 100)
		},
		"temporaries of Go that C closes": func(t testing.TB, s scope.Scope) {
			outer := s.Temp(400)
			inner := s.Temp(1000)
			octets.Slice(s, 100)
			assert.Equal(t, arena_c.OK, clib.Close(inner.C()))
			octets.Slice(s, 500)
			s.Temp(200)
			octets.Slice(s, 300)
			_ = outer
		},
		"temporaries of temporaries": func(t testing.TB, s scope.Scope) {
			outer := s.Temp(500)
			h, gen := outer.C()
			p, temp := clib.Temp(h, gen, 700)
			octets.Slice(s, 100)
			assert.Equal(t, arena_c.OK, clib.Close(far(p), temp))
			outer.Temp(50)
			octets.Slice(s, 100)
		},
	} {
		t.Run(name, func(t *testing.T) {
			holds(t, func(b *budget.Budget, _ *record.Recording) {
				load(t, b.Region("init"), func(s scope.Scope) { octets.Slice(s, 10) })
				_, _ = budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*int, error) {
					program(t, s)
					return nil, nil
				})
				scratch := b.Scratch(0, 0).Open("work")
				program(t, scratch)
				_ = b.Scratch(0, 1).Do("work", func(s scope.Scope) error { program(t, s); return nil })
				_ = b.Frame().Do("work", func(s scope.Scope) error { program(t, s); return nil })
				_ = b.NextFrame()
			})
		})
	}
	t.Run("an arena that is empty", func(t *testing.T) {
		holds(t, func(b *budget.Budget, _ *record.Recording) {
			s := b.Scratch(0, 0).Open("work")
			h, _ := s.C()
			require.NoError(t, s.Close())
			gen := clib.Open(h)
			assert.True(t, clib.Alloc(h, gen, 500))
			assert.Equal(t, arena_c.OK, clib.Close(h, gen))
			require.NoError(t, b.Scratch(0, 0).Open("work").Close())
		})
	})
}
