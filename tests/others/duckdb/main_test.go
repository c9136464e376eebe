package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

// TestMain runs the program if the test runs itself as the command.
func TestMain(m *testing.M) {
	if os.Getenv("DUCKDB_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestOutside: nearly all of DuckDB's memory is outside, and its malloc has a line.
func TestOutside(t *testing.T) {
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		t.Skip("DuckDB's builds for other targets have no malloc of their own: on linux/amd64, go test . runs it")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(self)
	c.Env, c.Stderr = append(os.Environ(), "DUCKDB_MAIN=1"), os.Stderr
	out, err := c.Output()
	require.NoError(t, err)
	var r budget.Report
	require.NoError(t, json.Unmarshal(out, &r))
	t.Logf("outside %.1f MiB, c_heap %.1f MiB", float64(r.Outside.Bytes)/budget.MiB, float64(r.CHeap.Used)/budget.MiB)
	require.Empty(t, r.Outside.Unknown)
	assert.Greater(t, r.Outside.Bytes, uint64(100*budget.MiB), "control: the table is in memory")
	library := float64(r.Outside.Bytes - r.Outside.Error)
	assert.GreaterOrEqual(t, library/(library+float64(r.CHeap.Used)), 0.95)
	assert.Contains(t, strings.Join(r.NotGranted, "\n"), "c_heap: jemalloc is linked (duckdb_je_")
	assert.Contains(t, r.String(), "\n  outside: ")
}
