package record_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

// lines is a buffer that counts its writes.
type lines struct {
	bytes.Buffer
	writes int
}

func (l *lines) Write(p []byte) (int, error) { l.writes++; return l.Buffer.Write(p) }

var errDisk = errors.New("disk is full")

// disk has room for that many bytes.
type disk struct {
	mu sync.Mutex
	lines
	room, failed int
}

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Len()+len(p) > d.room {
		d.failed++
		return 0, errDisk
	}
	return d.lines.Write(p)
}

// TestWriterFails: after a failed write play goes on, no more is written, and Start or Close
// returns the error.
func TestWriterFails(t *testing.T) {
	whole := disk{room: 1 << 30}
	for room := -1; room < whole.Len(); room += 1 << 14 {
		to := &disk{room: room}
		if room < 0 {
			to = &whole
		}
		b := open(t, game())
		r, err := record.Start(b, to)
		if err != nil {
			assert.ErrorIs(t, err, errDisk)
			assert.Nil(t, r)
			r, err = record.Start(b, &bytes.Buffer{}) // the failed Start recorded nothing
			require.NoError(t, err)
			to.failed--
		}
		for range 20000 {
			s := b.Scratch(0, 0).Open("work")
			frogs.New(s)
			require.NoError(t, s.Close())
		}
		r.Mark("E1M1")
		require.NoError(t, b.Close())
		if to == &whole {
			require.NoError(t, r.Close())
			same(t, to.Bytes(), b.Report())
			continue
		}
		if to.Len() > 0 {
			require.ErrorIs(t, r.Close(), errDisk)
			require.ErrorIs(t, r.Close(), errDisk)
			assert.Equal(t, 1, to.failed)
			_, played, err := record.Replay(game(), &to.Buffer)
			assert.False(t, played.Whole)
			if err != nil { // a write may end anywhere
				require.ErrorIs(t, err, record.ErrMalformed)
			}
		}
	}
	assert.Greater(t, whole.writes, 2)
}

// TestNilAndOver: a recording that is nil or closed does nothing.
func TestNilAndOver(t *testing.T) {
	var off *record.Recording
	off.Mark("x")
	require.NoError(t, off.Close())

	var to lines
	b := open(t, game())
	r, err := record.Start(b, &to)
	require.NoError(t, err)
	s := b.Scratch(0, 0).Open("work")
	octets.Slice(s, 100)
	_ = s.Do("inner", func(scope.Scope) error { return nil })
	require.NoError(t, r.Close()) // while the budget is used
	size := to.Len()
	octets.Slice(s, 1000)
	require.NoError(t, s.Close())
	r.Mark("late")
	require.NoError(t, r.Close())
	require.NoError(t, b.Close())
	assert.Equal(t, size, to.Len())
	report, played, err := record.Replay(game(), &to.Buffer)
	require.NoError(t, err)
	assert.True(t, played.Whole)
	assert.EqualValues(t, 100, beside(report)[3].Peak)
}

// TestStartFailsWithItsWriter: a recording whose first write fails hasn't begun.
func TestStartFailsWithItsWriter(t *testing.T) {
	b := open(t, game())
	r, err := record.Start(b, &disk{})
	assert.ErrorIs(t, err, errDisk)
	assert.Nil(t, r)
	require.NoError(t, b.Close())
}
