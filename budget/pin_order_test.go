package budget

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pin and a load meet in two words, and it is the order that keeps them apart: who pins says that
// he is inside, and then looks whether it is shut; who loads shuts, and then looks who is inside.
// The other order lets both in, but so seldom that no crowd shows it. Here each is stopped between
// the two.

// TestPinIsInsideBeforeItLooks: it is stopped by a region that isn't there.
func TestPinIsInsideBeforeItLooks(t *testing.T) {
	d := new(Reader)
	assert.Panics(t, func() { d.Pin() })
	assert.True(t, d.inside.Load())
}

// TestLoadShutsBeforeItLooks: it is stopped by the lock under which it looks.
func TestLoadShutsBeforeItLooks(t *testing.T) {
	b, err := Open(Plan{Name: "order", Regions: []RegionPlan{{Name: "level", Size: 64 * KiB}}, Pages: Pages{Prefault: Off}})
	require.NoError(t, err)
	r := b.Region("level")
	d := r.Reader("worker")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.mu.Lock()
	still := make(chan []string)
	go func() { still <- b.keepOut(ctx, new(load), reach{from: []*region{r.region}}) }()
	for end := time.Now().Add(5 * time.Minute); r.region.owner.Load()&ownerShut == 0 && time.Now().Before(end); {
		runtime.Gosched()
	}
	shut := r.region.owner.Load()&ownerShut != 0
	d.inside.Store(true) // as one that looked before it was shut
	b.mu.Unlock()
	assert.Equal(t, []string{`"worker" has pinned region level`}, <-still)
	assert.True(t, shut, "nobody has looked yet")
	d.inside.Store(false)
	r.region.owner.And(^ownerShut)
	require.NoError(t, b.Close())
}
