package seam

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestSampleBesideAPublication: a tick's sample includes the use at the tick's beginning, even if
// the arena is published meanwhile.
func TestSampleBesideAPublication(t *testing.T) {
	var g Gauge
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for v := uint64(1); !over.Load(); v++ {
			g.Saw(v, v)
			if v%1024 == 0 {
				// a loop of atomic operations alone isn't always interrupted: the collector would
				// wait for it
				runtime.Gosched()
			}
		}
	}()
	defer func() { over.Store(true); <-ended }()
	for taken := range step.Pick(3_000_000, 20_000_000, 20_000_000) {
		if taken%1024 == 0 {
			runtime.Gosched()
		}
		var most uint64
		var events uint16
		held := g.now.Load() // it only grows
		g.Take(&most, &events)
		if most < held { // no allocation in between
			t.Fatalf("%d were held, and a sample says %d", held, most)
		}
	}
}

// TestSampleOfWhatIsHeld: a publication between the two words of a sample leaves the most below the
// use.
func TestSampleOfWhatIsHeld(t *testing.T) {
	var g Gauge
	var most uint64
	var events uint16
	g.now.Store(5)
	g.most.Store(3)
	if g.Take(&most, &events); most != 5 {
		t.Errorf("5 are held, and a sample says %d", most)
	}
}
