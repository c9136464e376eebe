//go:build !checked

package budget_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/arena_c"
)

// TestSitesCostNothing but in checked builds.
func TestSitesCostNothing(t *testing.T) {
	var site arena_c.Site
	assert.Zero(t, unsafe.Sizeof(site))
	site.Note()
	assert.Empty(t, site.Tell("opened"))
}
