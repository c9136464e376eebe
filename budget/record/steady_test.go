package record_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

// tick is what a game does again and again.
func tick(t testing.TB, b *budget.Budget, r *record.Recording) {
	s := b.Scratch(0, 0).Open("think")
	octets.Slice(s, 100)
	inner := s.Open("path")
	objects.New(inner)
	frogs.Pool(inner, 3).Get()
	_ = inner.Close()
	s.Temp(64)
	_ = s.Close()
	frogs.New(b.Frame())
	r.Mark("tick")
	if err := b.NextFrame(); err != nil {
		t.Fatal(err)
	}
}

// Who is recorded makes no Go allocation in play that he wouldn't make else, which is none but in instrumented builds, when all
// names were there once.
func TestNoAllocation(t *testing.T) {
	plain := open(t, game())
	want := testing.AllocsPerRun(5000, func() { tick(t, plain, nil) })
	b := open(t, game())
	r, err := record.Start(b, io.Discard)
	require.NoError(t, err)
	require.NoError(t, b.Seal())
	for range 10 {
		tick(t, b, r)
	}
	assert.Equal(t, want, testing.AllocsPerRun(5000, func() { tick(t, b, r) })) // some 300 KB: it writes, too
	assert.True(t, want == 0 || arena_c.Asan)
	require.NoError(t, b.Close())
	require.NoError(t, r.Close())
}

// allocating is a writer that makes Go allocations, as one that compresses does.
type allocating struct{ last []byte }

func (a *allocating) Write(p []byte) (int, error) {
	a.last = append([]byte(nil), p...)
	return len(p), nil
}

// A strict budget of a checked build takes neither a new name nor a write for play's allocation, and play's own it finds.
func TestStrict(t *testing.T) {
	if !arena_c.Checked {
		t.Skip("only a checked build is strict: go test -tags checked ./budget/record does")
	}
	b := open(t, game())
	to := &allocating{}
	r, err := record.Start(b, to)
	require.NoError(t, err)
	names := make([]string, 100)
	for i := range names {
		names[i] = string(make([]byte, i*40))
	}
	require.NoError(t, b.SealStrict())
	for range 3 {
		tick(t, b, r)
	}
	for _, name := range names {
		s := b.Scratch(0, 0).Open(name)
		require.NoError(t, s.Close())
		if len(name)%800 == 0 {
			tick(t, b, r)
		}
	}
	tick(t, b, r)
	leak = make([]byte, 100)
	func() {
		defer func() { assert.Contains(t, recover(), "Strict: 1 Go allocation, 112 bytes") }()
		tick(t, b, r)
	}()
	assert.NotEmpty(t, to.last)
}

var leak []byte

// What a worker that is recorded waits for is others' events, not the budget: a scope in the finalizer of another is told, too.
func TestEventsInFinalizers(t *testing.T) {
	holds(t, func(b *budget.Budget, r *record.Recording) {
		load(t, b.Region("level"), func(s scope.Scope) {
			s.Defer(func() {
				r.Mark("in a finalizer")
				_ = b.Scratch(1, 1).Do("in a finalizer", func(s scope.Scope) error { octets.Slice(s, 50); return nil })
				octets.Slice(b.Frame(), 60)
			})
		})
		require.NoError(t, b.Region("level").Rewind(ctx))
	})
}
