//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSoakTakesTurns: ten changes in a row, wherever they begin, pass each part of make soak, and each is a target.
func TestSoakTakesTurns(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^SOAKS = (.+)$`).FindStringSubmatch(string(makefile))
	require.NotNil(t, list)
	parts := strings.Fields(list[1])
	require.LessOrEqual(t, len(parts), 10)
	for _, part := range parts {
		assert.Regexp(t, `(?m)^`+part+`:.* ## `, string(makefile), "who reads make help knows it")
	}
	var turns []string
	for commits := 995; commits < 1005; commits++ {
		turns = append(turns, turn(t, fmt.Sprintf("COMMITS=%d", commits)))
	}
	assert.Subset(t, turns, parts)
	assert.Subset(t, parts, turns)
	assert.Contains(t, parts, turn(t), "by the number of commits, or 0 where there is no repository")
}

// turn asks make whose turn it is.
func turn(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("make", append([]string{"-s", "-C", "..", "--no-print-directory", "soak-turn"}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}
