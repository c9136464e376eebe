package budget

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSampleBesideAPublication: a sample has what was held when it began, also where the arena is published meanwhile.
func TestSampleBesideAPublication(t *testing.T) {
	var g gauge
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for v := uint64(1); !over.Load(); v++ {
			g.saw(v, v)
		}
	}()
	defer func() { over.Store(true); <-ended }()
	for begin := time.Now(); time.Since(begin) < 200*time.Millisecond; {
		var most uint64
		var marks Mark
		held := g.now.Load() // it only grows
		g.take(&most, &marks)
		require.GreaterOrEqual(t, most, held)
	}
}
