package record_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/record"
)

// TestTruncated: a recording may end anywhere, as when the program is killed; the replay covers the
// events that it has.
func TestTruncated(t *testing.T) {
	trace, _ := recorded(t, game(), everything(t))
	all, whole, err := record.Replay(game(), bytes.NewReader(trace))
	require.NoError(t, err)
	b, err := record.Dry(game())
	require.NoError(t, err)
	before, ends := record.Played{}, 0
	for size := range trace {
		played, err := record.Play(b, bytes.NewReader(trace[:size]))
		assert.False(t, played.Whole)
		if err != nil {
			require.ErrorIs(t, err, record.ErrMalformed, "%d bytes", size)
		} else {
			ends++
		}
		require.GreaterOrEqual(t, played.Events, before.Events)
		require.GreaterOrEqual(t, played.Marks, before.Marks)
		before = played
	}
	// between two events, and at the first
	assert.EqualValues(t, whole.Events+uint64(whole.Marks)+1, ends)
	assert.Equal(t, whole.Events, before.Events)
	report := record.DryReport(b)
	for i, a := range all.Arenas {
		assert.Equal(t, a.Peak, report.Arenas[i].Peak)
	}

	played, err := record.Play(b, bytes.NewReader(append(slices.Clone(trace), 0)))
	require.ErrorIs(t, err, record.ErrMalformed)
	require.ErrorContains(t, err, "more after its end")
	assert.True(t, played.Whole)
	_, err = record.Play(b, iotest.OneByteReader(bytes.NewReader(trace)))
	require.NoError(t, err)
	lost := errors.New("cable is cut")
	for room := range trace {
		_, err = record.Play(b, &broken{bytes.NewReader(trace), room, lost})
		require.ErrorIs(t, err, lost, "%d bytes", room)
	}
}

// broken is a reader that fails after that many bytes.
type broken struct {
	r    *bytes.Reader
	left int
	err  error
}

func (b *broken) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, b.err
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
