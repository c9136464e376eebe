//go:build go1.27

package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestGenericMethodsInline: the method is just within the inliner's budget.
func TestGenericMethodsInline(t *testing.T) {
	assert.Regexp(t, said("generic", `inlining call to scope\.Scope\.New\[.*\]`), compile(t, "-m"))
	assert.NotRegexp(t, said("generic", "write barrier"), compile(t, "-d=wb"))
}
