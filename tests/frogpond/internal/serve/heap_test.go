package serve

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestOfPage: an allocation of a packet counts against the ticks, also within package net.
func TestOfPage(t *testing.T) {
	none, full := [32]uintptr{}, [32]uintptr{31: 1}
	for want, lists := range map[bool][][]string{
		true: {{"net.parseIP", "net.(*Resolver).lookupIPAddr.func1"}, {"net/http.(*conn).serve"},
			{"net.Dial", modulePath + "budget/with/agones.(*Client).call"}},
		false: {{"net.(*rawConn).Control", modulePath + "tests/frogpond/internal/udp.(*Socket).Send",
			modulePath + "tests/frogpond/internal/serve.(*worker).flush"},
			{modulePath + "scope.Open"}, {}},
	} {
		for _, frames := range lists {
			assert.Equal(t, want, ofPage(none, frames), frames)
			assert.True(t, ofPage(full, frames))
		}
	}
}
