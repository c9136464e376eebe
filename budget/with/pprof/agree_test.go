package pprof_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/with/pprof"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestAgree: a profile has the figures that every reader of one report has. Its stacks are of
// single arenas: their sizes and bytes in use sum up to the part's, and the highest peak is the
// part's.
func TestAgree(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(step.Root(t), "budget/testdata/agree.json"))
	require.NoError(t, err)
	var r budget.Report
	require.NoError(t, json.Unmarshal(data, &r))
	p, err := pprof.Profile(r)
	require.NoError(t, err)
	sums, most := map[string]uint64{}, map[string]uint64{}
	for _, s := range p.Sample {
		part := strings.Join(s.Label["region"], "")
		if label := s.Label["label"]; label != nil {
			part += " " + label[0]
		}
		for i, kind := range p.SampleType {
			sums[part+" "+kind.Type] += uint64(s.Value[i])
			most[part+" "+kind.Type] = max(most[part+" "+kind.Type], uint64(s.Value[i]))
			if strings.Contains(part, " ") { // a label's bytes are its part's
				part, _, _ := strings.Cut(part, " ")
				sums[part+" "+kind.Type] += uint64(s.Value[i])
			}
		}
	}
	table, err := os.ReadFile(filepath.Join(step.Root(t), "budget/testdata/agree.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		got, part := uint64(0), words[0]
		switch words[1] {
		case "size":
			got = sums[part+" planned_space"]
		case "used":
			got = sums[part+" inuse_space"]
		case "arena_peak":
			got = most[part+" peak_space"]
		case "label:frogs:used":
			got = sums[part+" frogs labels_inuse_space"]
		case "label:frogs:peak":
			got = most[part+" frogs labels_peak_space"]
		default:
			continue
		}
		value, err := strconv.ParseUint(words[2], 10, 64)
		require.NoError(t, err)
		assert.Equal(t, value, got, line)
	}
}
