package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// frogpond's plan is, to the byte, what this makes of frogpond's recorded reports.
func TestFrogpondsPlan(t *testing.T) {
	recorded := "../frogpond/testdata/recorded/"
	var out bytes.Buffer
	require.NoError(t, suggest(&out, 10, "handheld", []string{recorded + "freedoom.json", recorded + "long.json"}))
	plan, err := os.ReadFile("../frogpond/plan.json")
	require.NoError(t, err)
	assert.Equal(t, string(plan), out.String(), "make plan writes it anew")
}

func TestSuggestErrors(t *testing.T) {
	good := "../frogpond/testdata/recorded/long.json"
	bad := filepath.Join(t.TempDir(), "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte(`{"plan": {"name": "x", "regions": [], "gopher": 1}}`), 0o644))
	var out bytes.Buffer
	for _, test := range []struct {
		headroom int
		name     string
		files    []string
		part     string
	}{
		{0, "", nil, "no reports"},
		{-1, "", []string{good}, "-headroom -1: must not be negative"},
		{0, "", []string{good, "absent.json"}, "open absent.json: "},
		{0, "", []string{good, bad}, bad + ": "},
		{0, "A name", []string{good}, "a name has a-z, 0-9, _ and - only"},
		{math.MaxInt, "", []string{good}, "regions[0].size"},
	} {
		assert.ErrorContains(t, suggest(&out, test.headroom, test.name, test.files), test.part)
	}
	assert.Empty(t, out.String())
}
