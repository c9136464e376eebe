//go:build !memdebug && !memtrace

package budget_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/scope"
)

// TestSitesCostNothing but in memdebug and memtrace builds.
func TestSitesCostNothing(t *testing.T) {
	var site scope.Site
	assert.Zero(t, unsafe.Sizeof(site))
	site.Note()
	assert.Empty(t, site.Tell("opened"))
}
