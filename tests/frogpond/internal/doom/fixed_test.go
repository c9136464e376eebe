package doom

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPoints(t *testing.T) {
	p := Point{3 << UnitBits, 4 << UnitBits}
	assert.True(t, p.Near(Point{}, 5))
	assert.False(t, p.Near(Point{}, 4))
	assert.True(t, Point{-1 << 31, -1 << 31}.Near(Point{1<<31 - 1, 1<<31 - 1}, 92682))
	assert.False(t, Point{-1 << 31, -1 << 31}.Near(Point{1<<31 - 1, 1<<31 - 1}, 92680))
	for i := range uint32(16) {
		assert.Equal(t, i, p.Toward(p.Step(i, 100)), "direction %d", i)
	}
	assert.Equal(t, Point{1<<31 - 1, 4 << UnitBits}, Point{1<<31 - 5, 4 << UnitBits}.Step(0, 10),
		"the edge of numbers")
}
