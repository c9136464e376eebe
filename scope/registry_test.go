package scope

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Ids are used again, so the list of arenas is as long as the most that were open at once.
func TestIDsAreUsedAgain(t *testing.T) {
	registry.Lock()
	defer registry.Unlock()
	first, second := takeID(), takeID()
	require.NotEqual(t, first, second)
	registry.free = append(registry.free, first)
	assert.Equal(t, first, takeID())
	registry.free = append(registry.free, second, first)
}
