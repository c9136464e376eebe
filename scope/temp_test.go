package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/scope"
)

// A full unwinds through a deferred Close of temporaries: it says what was so when it was asked, not
// what they gave back since.
func TestFullPastADeferredCloseOfTemporaries(t *testing.T) {
	err := open(t).Pad(0, 0).Do("file", func(s scope.Scope) error {
		temp := s.Temp(padSize / 2)
		defer temp.Close()
		s.Bytes(padSize * 3 / 4)
		return nil
	})
	full := new(scope.FullError)
	assert.ErrorAs(t, err, &full)
	assert.Less(t, full.Free, uint64(padSize/2))
	assert.Equal(t, uint64(padSize*5/4+16), full.Need)
}
