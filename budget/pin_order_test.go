package budget

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pin and a load use two words, and only the order of their steps keeps them apart. A pin first
// writes that it is inside, and then reads whether the region is shut. A load first shuts the
// region, and then reads the pins. The other order lets both in, but too seldom for TestCrowd to
// show it. So these tests stop each of them between its two steps.

// TestPinIsInsideBeforeItLooks: a nil region stops the pin after its first step.
func TestPinIsInsideBeforeItLooks(t *testing.T) {
	d := new(Reader)
	assert.Panics(t, func() { d.Pin() })
	assert.True(t, d.inside.Load())
}

// TestLoadShutsBeforeItLooks: the lock for reading the pins stops the load after its first step.
func TestLoadShutsBeforeItLooks(t *testing.T) {
	b, err := Open(Plan{Name: "order", Regions: []RegionPlan{{Name: "level", Size: 64 * KiB}},
		Pages: Pages{Prefault: Off}})
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
	d.inside.Store(true) // like a reader that looked before the load shut
	b.mu.Unlock()
	assert.Equal(t, []string{`worker "worker" has pinned region level`}, <-still)
	assert.True(t, shut, "nobody has looked yet")
	d.inside.Store(false)
	r.region.owner.And(^ownerShut)
	require.NoError(t, b.Close())
}
