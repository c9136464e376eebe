package save_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// subject is data that a state depends on.
type subject struct {
	name string
	sum  uint64
}

// ringOf returns the ring of a state that depends on subjects. Its bytes are the same for all of
// them.
func ringOf(t *testing.T, of ...subject) (ring *save.Ring) {
	b := open(t, pondPlan())
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		state, m := save.Begin(r, s, roomMaker)
		for _, o := range of {
			state.Of(o.name, o.sum)
		}
		ring = save.NewRing(s, 2, state)
		m.Tick = 7
	})
	require.NoError(t, ring.Take(7))
	return ring
}

// TestOf: files and deltas of another map are refused with both names and checksums, and nothing
// changes.
func TestOf(t *testing.T) {
	plain := ringOf(t)
	one := ringOf(t, subject{"map E1M1", 0x11}, subject{"rules", 2})
	for _, test := range []struct {
		ring *save.Ring
		want string // "" if it fits
	}{
		{ringOf(t, subject{"map E1M1", 0x11}, subject{"rules", 2}), ""},
		{ringOf(t, subject{"map E1M1", 0x12}, subject{"rules", 2}),
			"on map E1M1, sum 0x12 here, and on map E1M1, sum 0x11 in the file"},
		{ringOf(t, subject{"map E1M2", 0x11}, subject{"rules", 2}),
			"on map E1M2, sum 0x11 here, and on map E1M1, sum 0x11 in the file"},
		{ringOf(t, subject{"map E1M1", 0x11}), "on nothing here, and on rules, sum 0x2 in the file"},
		{plain, "on nothing here, and on map E1M1, sum 0x11 in the file"},
	} {
		delta, err := one.Delta(nil, 7, 7)
		require.NoError(t, err)
		file := written(t, one, 7)
		_, err = test.ring.Read(bytes.NewReader(file))
		_, applied := test.ring.Apply(delta)
		if test.want == "" {
			require.NoError(t, err)
			require.NoError(t, applied)
			continue
		}
		assert.ErrorContains(t, err, "it is of another program, plan or data: the state of region "+
			"level depends "+test.want)
		assert.ErrorContains(t, applied, "byte 60: its state depends on other data (State.Of), with the checksum ")
		delta, err = test.ring.Delta(nil, 7, 7)
		require.NoError(t, err)
		_, err = one.Apply(delta)
		assert.ErrorContains(t, err, "here it depends on map E1M1, sum 0x11; rules, sum 0x2, with ")
		_, _, err = save.DiffFiles(bytes.NewReader(file),
			bytes.NewReader(written(t, test.ring, 7)), nil)
		assert.ErrorContains(t, err, "B is of another program, plan or data than A: ")
	}
	var shown strings.Builder
	require.NoError(t, save.Show(&shown, bytes.NewReader(written(t, one, 7))))
	assert.Contains(t, shown.String(), "  of map E1M1, sum 0x11\n  of rules, sum 0x2\n")
	_, err := one.Read(bytes.NewReader(written(t, plain, 7)))
	assert.ErrorContains(t, err, "on map E1M1, sum 0x11 here, and on nothing in the file")
}

// TestOfLate: Of after NewRing panics, since a file may exist. A name that a terminal would obey is
// cleaned.
func TestOfLate(t *testing.T) {
	load(t, open(t, pondPlan()), "level", func(r budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, roomMaker)
		state.Of("a\x1bb", 1)
		ring := save.NewRing(s, 1, state)
		assert.PanicsWithValue(t, `save: BUG: Of("late") after NewRing, in region level`,
			func() { state.Of("late", 1) })
		_ = ring
	})
	ring := ringOf(t, subject{"a\x1bb", 1})
	var shown strings.Builder
	require.NoError(t, save.Show(&shown, bytes.NewReader(written(t, ring, 7))))
	assert.Contains(t, shown.String(), "  of a\ufffdb, sum 0x1\n")
	require.NoError(t, ring.Write(io.Discard, 7))
	require.NoError(t, ring.Restore(context.Background(), 7))
}
