//go:build linux

package serve

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRecordOfAFault: if a map fails while ticks are played again, its record ends before these
// ticks, because an offline replay would fail in them too.
func TestRecordOfAFault(t *testing.T) {
	s := built(t, func(o *Options) { o.Inputs = t.TempDir() })
	defer s.close(t)
	r := s.rooms[0]
	s.seat(0, "unlucky")
	s.ticks(60)
	p := r.play
	require.Less(t, p.logged, p.tick-3)
	r.wrong = p.tick - 3
	r.end()
	assert.Equal(t, p.tick-3, p.logged)
}
