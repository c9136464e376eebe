//go:build linux && cgo && !asan

package malloc

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestKnowCalls: only the whole name of an inlined call leads to the data of functions. Other words
// of the runtime's module lead to texts too, and the right one leads to no other name.
func TestKnowCalls(t *testing.T) {
	for _, name := range []string{"callBegan", "callBegi", "callBegin2", ""} {
		assert.NotEqualValues(t, 2, knowCalls(name), name)
	}
	assert.EqualValues(t, 2, knowCalls("callBegin"))
}
