package budget_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/platform"
)

// TestGuardsMoveWithFaults has the system refuse each change of access in turn: what it refuses changes nothing.
func TestGuardsMoveWithFaults(t *testing.T) {
	if platform.GoBacked {
		t.Skip("the pages of a race build are Go's")
	}
	for n, struck := 1, true; struck; n++ {
		b := open(t, guarded(256, 64, 512))
		restore := platform.InjectFault("protect", n)
		err := b.Reconfigure(background, guarded(64, 64, 704))
		struck = restore()
		if struck {
			assert.ErrorContains(t, err, "injected fault", n)
		} else {
			require.NoError(t, err)
		}
		fillRegions(t, b)
		require.NoError(t, b.Region("init").Rewind(background))
		require.NoError(t, b.Reconfigure(background, guarded(320, 64, 448)))
		requireGuards(t, b)
		require.NoError(t, b.Close())
	}
}
