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

// tick is one step of a game.
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

// TestNoAllocation: once all names are known, recording makes no Go allocation in play.
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
	// some 300 KB, so it writes, too
	assert.Equal(t, want, testing.AllocsPerRun(5000, func() { tick(t, b, r) }))
	assert.True(t, want == 0 || arena_c.Asan)
	require.NoError(t, b.Close())
	require.NoError(t, r.Close())
}

// allocating is a writer that makes Go allocations, like one that compresses.
type allocating struct{ last []byte }

func (a *allocating) Write(p []byte) (int, error) {
	a.last = append([]byte(nil), p...)
	return len(p), nil
}

// TestStrict: a strict budget of a checked build doesn't count a new name or a write as an
// allocation of play, and still finds play's own.
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

// TestEventsInFinalizers: a recorded worker waits for others' events, not for the budget. A scope
// in the finalizer of another is recorded, too.
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
