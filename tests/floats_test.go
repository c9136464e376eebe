//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestFloats compares the states and results of one program on several targets. The program has
// products that a compiler may fuse, the same products with conversions, and computed NaNs. Lines
// that begin with the same word are equal, or differ, together. TestBuilds has more targets.
func TestFloats(t *testing.T) {
	step.Needs(t, step.Check)
	if runtime.GOARCH != "amd64" {
		t.Skip("amd64 is the target that others are compared with: there, UPFRONT_STEP=check go test ./tests runs it")
	}
	dir := t.TempDir()
	lines := func(t *testing.T, name string, env []string, run ...string) []string {
		t.Helper()
		program := filepath.Join(dir, name)
		output(t, "testdata/floats", append([]string{"CGO_ENABLED=1"}, env...), "go", "build", "-o",
			program, ".")
		run = append(run, program)
		out := output(t, ".", nil, run[0], run[1:]...)
		return strings.Split(strings.TrimSpace(out), "\n")
	}
	here := lines(t, "amd64", []string{"GOAMD64=v1"})
	require.Greater(t, len(here), 60)
	check := func(t *testing.T, there []string, differing string) {
		t.Helper()
		require.Len(t, there, len(here))
		for i, line := range here {
			switch word, _, _ := strings.Cut(line, " "); {
			case strings.Contains(differing, word):
				assert.NotEqual(t, line, there[i])
			case word != "differing": // some of these functions differ on each target
				assert.Equal(t, line, there[i])
			}
		}
	}
	t.Run("arm64", func(t *testing.T) {
		tools(t, "aarch64-linux-gnu-gcc", "qemu-aarch64-static")
		there := lines(t, "arm64", []string{"GOARCH=arm64", "CC=aarch64-linux-gnu-gcc"}, "qemu-aarch64-static", "-L",
			"/usr/aarch64-linux-gnu")
		check(t, there, "fused nan integer differing")
	})
	// The assembly of math.Exp asks the processor for FMA.
	t.Run("no FMA", func(t *testing.T) {
		if !cpu.X86.HasFMA {
			t.Skip("on a processor with FMA, UPFRONT_STEP=check go test ./tests runs it")
		}
		tools(t, "qemu-x86_64-static")
		there := lines(t, "amd64", []string{"GOAMD64=v1"}, "qemu-x86_64-static", "-cpu", "qemu64")
		check(t, there, "none")
		i := slices.IndexFunc(here, func(line string) bool { return strings.HasSuffix(line, " Exp") })
		assert.NotEqual(t, here[i], there[i])
	})
}
