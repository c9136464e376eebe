//go:build linux && cgo && !asan

package main

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestProfileIsRight: the sums of the profile are those of the heap, as far as so many samples can
// tell: with 100 MB held and 512 KiB between samples, one in fourteen is the standard deviation.
// Nothing is left when all blocks are free. The sequence of sample points is that of the seeds.
func TestProfileIsRight(t *testing.T) {
	t.Parallel()
	assert.InDelta(t, 1, isRight(t, "-size 192MiB -profile 512KiB profile", 0.25), 0.05)
	isRight(t, "-size 192MiB -profile 32KiB profile", 0.06)
}

// isRight runs a program that holds 100 MB and frees them, with ten seeds. It expects each profile
// to be right within a share, and returns the mean of their shares of the bytes.
func isRight(t *testing.T, program string, each float64) (mean float64) {
	const seeds = 10
	out := ends(t, fmt.Sprintf("%s 100000000 3000 %d", program, seeds))
	n := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "left ") {
			assert.Equal(t, "left 0 0 0\n", line, program)
		}
		if !strings.HasPrefix(line, "held ") {
			continue
		}
		v := numbers(t, line, "held")
		share := float64(v[1]) / float64(v[0])
		assert.InDelta(t, 1, share, each, "%s: %s", program, line)
		assert.InDelta(t, 1, float64(v[3])/float64(v[2]), 2*each, "%s, objects: %s", program, line)
		assert.Zero(t, v[4], "lost: %s", line)
		mean += share / seeds
		n++
	}
	require.Equal(t, seeds, n, out)
	return mean
}

// TestNoProfile: without one nothing is sampled, and WriteProfile says so.
func TestNoProfile(t *testing.T) {
	t.Parallel()
	out := ends(t, "-size 64MiB -profile 1 profile 10000000 3000 1")
	assert.Contains(t, out, "\nleft 0 0 0\n")
	out, err := start("-size 64MiB -profile 1 users " + t.TempDir() + "/none")
	assert.Error(t, err)
	assert.Contains(t, out, "no profile of C's malloc: there is no open budget with a c_heap, or c_heap.profile "+
		"is off")
}

// TestProfileInAChild: a fork's child has the profile, and goes on with it.
func TestProfileInAChild(t *testing.T) {
	t.Parallel()
	ends(t, "-size 64MiB -profile 16KiB child")
}

// TestProfileStress runs the programs with a sample in every few blocks.
func TestProfileStress(t *testing.T) {
	t.Parallel()
	steps := few(step.Pick(20_000, 100_000, 3_000_000))
	for _, line := range []string{"stress 16 %d 1048576", "-fronts 1 stress 4 %d 1000"} {
		assertFree(t, ends(t, fmt.Sprintf("-profile 16KiB -size 64MiB "+line, steps)))
	}
	for _, line := range []string{
		fmt.Sprintf("-size 32MiB model %d 100000 1", steps), fmt.Sprintf("-size 300KiB model %d 9000 2", steps),
		"-size 8MiB edges", "-size 8MiB libc", fmt.Sprintf("-size 8MiB fork %d", step.Pick(10, 50, 1000)),
		"-size 4MiB fill 1000", "-size 4MiB requests 10 50 20", "-size 4MiB calls 200",
	} {
		assertWhole(t, ends(t, "-profile 16KiB "+line))
	}
}

// assertWhole: no damage and no misuse were found.
func assertWhole(t *testing.T, out string) {
	t.Helper()
	assert.NotContains(t, out, "BUG")
}

// TestProfileStorm: a walk of the stack ends, with any code on it: libraries that come and go, code
// without frame pointers, exceptions, recursion, signals, forks, and a stack near its guard. Blocks
// that another thread frees, or the child of a fork, are whole. Meanwhile a goroutine and OnWarn
// write the profile, trim and read the figures.
func TestProfileStorm(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	storms(t, os.Args[0], "c++", few(step.Pick(0, 300, 20_000)))
}

// TestProfileStormForArm64 is TestProfileStorm of a program for arm64, under an emulator.
func TestProfileStormForArm64(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Gate)
	if arena_c.Race || arena_c.Checked || runtime.GOARCH == "arm64" {
		t.Skip("one build is enough, and on arm64 the other test")
	}
	for tool, debian := range map[string]string{"aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
		"aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu", "qemu-aarch64-static": "qemu-user-static"} {
		if _, err := exec.LookPath(tool); err != nil {
			step.Lacks(t, tool, debian)
		}
	}
	path := t.TempDir() + "/malloc"
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=1", "CC=aarch64-linux-gnu-gcc")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	script := fmt.Sprintf("#!/bin/sh\nexec qemu-aarch64-static -L /usr/aarch64-linux-gnu %s \"$@\"\n", path)
	require.NoError(t, os.WriteFile(path+".sh", []byte(script), 0o700))
	storms(t, path+".sh", "aarch64-linux-gnu-g++", step.Pick(0, 100, 2000))
}

// storms runs the program with a library by that compiler.
func storms(t *testing.T, path, compiler string, rounds int) {
	t.Helper()
	dir := t.TempDir()
	library := dir + "/libstorm.so"
	for _, name := range []string{library, library + ".copy"} {
		cmd := exec.Command(compiler, "-std=c++17", "-O2", "-fPIC", "-shared", "-fomit-frame-pointer", "-Wall",
			"-Wextra", "-Werror", "testdata/storm.cpp", "-o", name)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	for _, size := range []string{"-size 64MiB -warn 2 -profile 16KiB", "-size 64MiB -warn 2"} {
		out := endsFile(t, path, fmt.Sprintf("%s storm %s %d", size, library, rounds))
		assertWhole(t, out)
		n := numbers(t, out, "looks")
		assert.True(t, n[0] != 0 && n[1] != 0, out)
	}
}

// TestProfileIsBounded: a full table loses samples, and the profile says how many. A new stack
// replaces one without live blocks, whose sums stay.
func TestProfileIsBounded(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/table.pb.gz"
	ends(t, "-size 64MiB -profile 1 table "+file)
	if step.Now() >= step.Check {
		out, err := exec.Command("go", "tool", "pprof", "-symbolize=none", "-comments", file).Output()
		require.NoError(t, err)
		assert.Contains(t, string(out), "5 samples are missing: their table was full; raise c_heap.profile\n")
		out, err = exec.Command("go", "tool", "pprof", "-symbolize=none", "-sample_index=alloc_space", "-top",
			file).Output()
		require.NoError(t, err)
		assert.Regexp(t, `(?m)^ +640MB .*\(stacks that were replaced\)$`, string(out))
	}
}

// TestProfileByTheLinker: in a program that was started as an argument of the dynamic linker, the
// profile has the program's file, not the linker's.
func TestProfileByTheLinker(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	program, err := elf.Open(os.Args[0])
	require.NoError(t, err)
	interp, err := program.Section(".interp").Data()
	require.NoError(t, err)
	require.NoError(t, program.Close())
	linker := strings.TrimRight(string(interp), "\x00")
	file := t.TempDir() + "/linker.pb.gz"
	endsFile(t, linker, os.Args[0]+" -size 64MiB -profile 16KiB users "+file)
	out, err := exec.Command("go", "tool", "pprof", "-symbolize=none", "-raw", file).Output()
	require.NoError(t, err)
	_, mappings, found := strings.Cut(string(out), "\nMappings\n")
	require.True(t, found, "%s", out)
	assert.NotContains(t, mappings, filepath.Base(linker))
	assert.Equal(t, 2, strings.Count(mappings, " "+os.Args[0]+" "), "Go's code, and C's: %s", mappings)
	assert.Regexp(t, `: 0x\w+/0x\w+/0x[1-9a-f]\w* `+regexp.QuoteMeta(os.Args[0])+" ", mappings,
		"C's code isn't at the front of the file")
}

// TestProfileOfThreads: a thread of C has no lines of Go.
func TestProfileOfThreads(t *testing.T) {
	t.Parallel()
	ends(t, "-size 64MiB -profile 16KiB thread")
}

// TestProfileOfCallbacks: where C calls back to Go, the stack has the lines of Go on both sides.
func TestProfileOfCallbacks(t *testing.T) {
	t.Parallel()
	ends(t, fmt.Sprintf("-size 64MiB -profile 16KiB callbacks %d", few(step.Pick(200, 1000, 50_000))))
}

// TestProfileOfClosedLibrary: the blocks of a library that was closed keep its name, though another
// library has its addresses.
func TestProfileOfClosedLibrary(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	dir := t.TempDir()
	for _, name := range []string{"alpha", "other"} {
		cmd := exec.Command("cc", "-std=c11", "-O1", "-fPIC", "-shared", "-DNAME="+name+"_keep", "testdata/keeps.c",
			"-o", dir+"/lib"+name+".so")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	file := dir + "/closed.pb.gz"
	out := ends(t, fmt.Sprintf("-size 64MiB -profile 16KiB closes %s/libalpha.so %s/libother.so %s", dir, dir, file))
	assert.Contains(t, out, "other address false\n", "the control: the second library has the first one's addresses")
	traces, err := exec.Command("go", "tool", "pprof", "-symbolize=none", "-traces", file).Output()
	require.NoError(t, err)
	assert.Regexp(t, `(?m)KB +other_keep$|MB +other_keep$`, string(traces))
	assert.Regexp(t, `(?m)KB +\[libalpha\.so\]$|MB +\[libalpha\.so\]$`, string(traces))
	assert.Equal(t, 1, strings.Count(string(traces), "other_keep\n"), "%s", traces)
}

// TestProfileNamesLines: go tool pprof shows the lines of Go, the innermost first, also of calls
// that are inlined, and the names of C's functions.
func TestProfileNamesLines(t *testing.T) {
	t.Parallel()
	step.Needs(t, step.Check)
	traces := usersOf(t, os.Args[0])
	if !arena_c.Race {
		assert.Contains(t, traces, "storm_hold\n")
	}
}
