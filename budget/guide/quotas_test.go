package guide_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuotasPage: the page shows the handler of the example.
func TestQuotasPage(t *testing.T) {
	_, handler, found := strings.Cut(read(t, "../quota_example_test.go"), "func inTurn(")
	require.True(t, found)
	handler, _, found = strings.Cut(handler, "\n}\n")
	require.True(t, found)
	golden(t, "quotas.md", replaced(t, read(t, "quotas.md"), "\n```go\n", "func inTurn("+handler+"\n}\n"))
}
