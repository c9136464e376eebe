package budget_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/trace"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// parsed returns a trace as the go command reads it: a line for each event.
func parsed(t testing.TB, file string) string {
	t.Helper()
	step.Needs(t, step.Gate) // the go command compiles its tool
	if _, err := exec.LookPath("go"); err != nil {
		step.Lacks(t, "go", "")
	}
	out, err := exec.Command("go", "tool", "trace", "-d=parsed", file).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// TestTraceShowsWhatABudgetDoes: a trace has a task with a trace region for each Load, Rewind and
// Release, with the name of the budget's region, and a trace region for each frame.
func TestTraceShowsWhatABudgetDoes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace")
	out, err := os.Create(file)
	require.NoError(t, err)
	if err := trace.Start(out); err != nil {
		t.Skip("without a trace of its own (-trace), go test ./budget runs it:", err)
	}
	b := open(t, small())
	mustLoad(t, b, "systems", nil)
	_, err = load(b, "level", func(scope.Scope) error { return errLoader })
	require.ErrorIs(t, err, errLoader)
	require.NoError(t, b.Region("systems").Rewind(background))
	frames := 0
	turn := func() { frames++; _ = b.NextFrame() }
	allocs := testing.AllocsPerRun(10, turn)
	if !instrumented {
		assert.Zero(t, allocs, "also while somebody traces")
	}
	trace.Stop()
	require.NoError(t, out.Close())

	events := parsed(t, file)
	for what, times := range map[string]int{
		`TaskBegin .*Type="upfront.Load"`: 2, `TaskEnd .*Type="upfront.Load"`: 2,
		`RegionBegin .*Type="upfront.Load"`: 2, `RegionEnd .*Type="upfront.Load"`: 2,
		`Log .*Category="upfront.region" Message="level"`:   1,
		`Log .*Category="upfront.region" Message="systems"`: 2,
		`TaskBegin .*Type="upfront.Rewind"`:                 1, `RegionEnd .*Type="upfront.Rewind"`: 1,
		`RegionBegin .*Type="upfront.NextFrame"`: frames, `RegionEnd .*Type="upfront.NextFrame"`: frames,
	} {
		assert.Len(t, regexp.MustCompile(what).FindAllString(events, -1), times, what)
	}
}
