package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/scope/flow/source"
	"github.com/upfront-mem/upfront/scope/flow/view"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// TestFlowPage checks the page of package flow: the picture of E1M1's graph, the effect of its
// first doors, and that its JSON compiles.
func TestFlowPage(t *testing.T) {
	needsFreedoom(t)
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-flow", "E1M1"}, &stdout, &stderr), stderr.String())
	graph, err := source.Read("E1M1", stdout.Bytes())
	require.NoError(t, err)
	var picture bytes.Buffer
	require.NoError(t, view.SVG(&picture, graph))

	folder := filepath.Join("..", "..", "scope", "flow")
	page, file := filepath.Join(folder, "README.md"), filepath.Join(folder, "testdata", "E1M1.svg")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(text), "```text\n")
	shown, after, _ := strings.Cut(rest, "```\n")
	trace := traceDoors(t, graph)
	if *update {
		require.NoError(t, os.WriteFile(file, picture.Bytes(), 0o644))
		require.NoError(t, os.WriteFile(page, []byte(before+"```text\n"+trace+"```\n"+after), 0o644))
		shown = trace
	}
	drawn, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(drawn), picture.String(), "go test ./tests/frogpond -run FlowPage -update")
	assert.Equal(t, trace, shown)

	_, rest, _ = strings.Cut(before, "```json\n")
	door, _, _ := strings.Cut(rest, "```\n")
	read, err := source.Read("README.md", []byte(door))
	require.NoError(t, err)
	_, _, err = flow.Compile(read, source.Guess(read))
	assert.NoError(t, err)
}

// TestStripE1M1 checks that stripping, which removes names and data that the host has, saves more
// than a third of a map's graph.
func TestStripE1M1(t *testing.T) {
	needsFreedoom(t)
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"-flow", "E1M1"}, &stdout, &stderr), stderr.String())
	graph, err := source.Read("E1M1", stdout.Bytes())
	require.NoError(t, err)
	data, report, err := flow.Compile(graph, game.Vocabulary())
	require.NoError(t, err)
	stripped, err := flow.Strip(data, make([]byte, blob.ScratchSize(data)))
	require.NoError(t, err)
	t.Logf("E1M1: %d bytes, stripped %d, of them nodes %d", len(data), len(stripped), report.Static)
	assert.Equal(t, [3]int{12747, 7700, 5428}, [3]int{len(data), len(stripped), report.Static})
	host, err := flow.HostOf(game.Vocabulary())
	require.NoError(t, err)
	b := budgettest.Open(t, budget.Plan{Name: "strip",
		Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}})
	_, err = budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*struct{}, error) {
		_, err := host.Load(s, stripped, make([]byte, blob.ScratchSize(stripped)))
		return new(struct{}), err
	})
	require.NoError(t, err)
}

func traceDoors(t *testing.T, graph flow.Source) string {
	data, _, err := flow.Compile(graph, game.Vocabulary())
	require.NoError(t, err)
	host, err := flow.HostOf(game.Vocabulary()) // actions without an effect
	require.NoError(t, err)
	var text bytes.Buffer
	b := budgettest.Open(t, budget.Plan{Name: "page",
		Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}})
	_, err = budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*struct{}, error) {
		level, err := host.Load(s, data, make([]byte, blob.ScratchSize(data)))
		require.NoError(t, err)
		level.Instances(1)
		instance, runner, trace := level.New(), host.NewRunner(s, new(struct{}), 1000),
			view.NewTrace(&text)
		runner.Trace(trace.Step)
		runner.Begin()
		defer runner.End()
		for _, use := range []struct {
			key  int32
			blue bool
		}{{55, false}, {389, false}, {389, true}} {
			require.NoError(t, runner.FireNamed(level, instance, "line.used", use.key, true, use.blue))
			require.NoError(t, trace.Done())
		}
		return new(struct{}), nil
	})
	require.NoError(t, err)
	return text.String()
}
