package serve

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRecordOfAFault: the record of a map that fails ends before the ticks that were being played
// again, because an offline replay would fail in them too.
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
