package scope_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/model/clib"
)

// TestCFinalizerThatPanics: a finalizer of C calls Go, which panics or ends the goroutine. The older ones
// run all the same, the error says which it was, and the region is loaded again.
func TestCFinalizerThatPanics(t *testing.T) {
	if arena_c.Asan {
		t.Skip("AddressSanitizer doesn't bear that frames of C are left by a panic")
	}
	b := open(t)
	clib.Finalize = func(id int64) {
		closed = append(closed, id)
		switch id % 4 {
		case 1:
			panic("called from C")
		case 2:
			runtime.Goexit()
		}
	}
	fill := func(s scope.Scope, ids ...int64) {
		header, generation := s.C()
		for _, id := range ids {
			require.Equal(t, arena_c.OK, clib.Defer(header, generation, id))
		}
		newMark(s, 100, 0)
	}
	load := func(ids ...int64) error {
		_, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*point, error) {
			fill(s, ids...)
			return points.New(s), nil
		})
		return err
	}
	require.NoError(t, load(0, 1, 4, 5, 8))
	err := b.Region("level").Rewind(t.Context())
	assert.Equal(t, []int64{100, 8, 5, 4, 1, 0}, closed)
	assert.EqualError(t, err, "region level, scope \"level\": a finalizer of C panicked: called from C\n"+
		"region level, scope \"level\": a finalizer of C panicked: called from C")
	require.NoError(t, load(0), "the region is good")

	closed = nil
	s := b.Scratch(0, 0).Open("leaves")
	fill(s, 0, 2, 4, 6, 8)
	done := make(chan bool)
	go func() {
		defer close(done)
		_ = s.Close()
		done <- true
	}()
	assert.False(t, <-done, "the goroutine ends")
	assert.Equal(t, []int64{100, 8, 6, 4, 2, 0}, closed)
	assert.Zero(t, b.Scratch(0, 0).Depth())
}
