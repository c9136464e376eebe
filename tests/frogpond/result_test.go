package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

func TestTickTimes(t *testing.T) {
	assert.Equal(t, TickTimes{}, tickTimes(nil))
	d := make([]uint32, 10000)
	for i := range d {
		d[i] = uint32(len(d) - i)
	}
	few := tickTimes(slices.Clone(d[:100]))
	assert.EqualValues(t, 9901+49, *few.P50)
	all := tickTimes(d)
	assert.EqualValues(t, []uint32{5000, 9900, 10000}, []uint32{*all.P50, *all.P99, *all.Max})
}

// A figure that was not measured is null, never 0. A map that was not run has a name and an error.
func TestNotMeasuredIsNull(t *testing.T) {
	r, _ := play(t, 0, "-wad", doom.Builtin, "-maps", "MAP01", "-ticks", "1")
	assert.Nil(t, r.Levels[0].GoAllocs, "no tick after the warm-up")
	assert.NotNil(t, r.Levels[0].TickTime.Max)
	r, _ = play(t, 0, "-wad", doom.Builtin, "-maps", "MAP01", "-ticks", "0")
	assert.Equal(t, TickTimes{}, r.Levels[0].TickTime)
}
