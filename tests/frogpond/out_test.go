package main

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

const (
	full = "/dev/full"
	// More than ten maps: the systems are rewound once, which closes their log.
	eleven = "MAP01,MAP02,MAP03,MAP04,MAP05,MAP06,MAP07,MAP01,MAP02,MAP03,MAP04"
)

func needFull(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs " + full + ": on Linux, go test ./tests/frogpond runs it")
	}
}

// With each flag, a file that can't be written is an error that names the file.
func TestFullDisk(t *testing.T) {
	needFull(t)
	stdout, err := os.OpenFile(full, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer stdout.Close()
	for _, c := range []struct {
		name string
		out  io.Writer
		args []string
	}{
		{"text", stdout, nil}, {"list", stdout, []string{"-v"}}, {"JSON", stdout, []string{"-json"}},
		{"log", io.Discard, []string{"-log", full}},
		{"log of eleven maps", io.Discard, []string{"-log", full, "-maps", eleven}},
		{"log of a graph", io.Discard, []string{"-log", full, "-flow", "MAP01"}},
		{"report", io.Discard, []string{"-report", full}},
		{"durations", io.Discard, []string{"-durations", full}},
		{"timeline", io.Discard, []string{"-timeline", full}},
		{"recording", io.Discard, []string{"-record", full}},
		{"report, after another failure", io.Discard, []string{"-report", full, "-wad", "none"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stderr bytes.Buffer
			args := append([]string{"-wad", doom.Builtin, "-maps", "MAP01", "-ticks", "2"}, c.args...)
			assert.Equal(t, 1, run(t.Context(), args, c.out, &stderr))
			assert.Contains(t, stderr.String(), full+": no space left on device")
		})
	}
}

// A log that can't be written doesn't end the game. The result is whole, and counts the failed
// finalizer.
func TestFullLogPlaysOn(t *testing.T) {
	needFull(t)
	r, _ := play(t, 1, "-wad", doom.Builtin, "-maps", eleven, "-ticks", "2", "-log", full)
	assert.Len(t, r.Levels, 11)
	assert.Equal(t, 1+10, r.Report.Leaks.Finalizers,
		"of the systems, which were rewound once, and of ten maps")
}
