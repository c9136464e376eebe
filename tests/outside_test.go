//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// outside has the tools that build and run a C program: for this machine, and for an arm64 device.
var outside = []struct {
	step                    step.Step
	name, cc, cxx, ar, qemu string
}{
	{step: step.Check, name: "here", cc: "cc", cxx: "c++", ar: "ar"},
	{step: step.Gate, name: "arm64", cc: "aarch64-linux-gnu-gcc", ar: "aarch64-linux-gnu-ar",
		qemu: "qemu-aarch64-static"},
}

// debian has the package of each tool.
var debian = map[string]string{
	"make": "make", "pkg-config": "pkg-config", "cc": "gcc", "c++": "g++", "ar": "binutils", "strace": "strace",
	"aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu", "aarch64-linux-gnu-ar": "binutils-aarch64-linux-gnu",
	"qemu-aarch64-static": "qemu-user-static", "qemu-x86_64-static": "qemu-user-static",
}

// tools skips a test when a tool is missing. The name "" needs no tool.
func tools(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil && name != "" {
			step.Lacks(t, name, debian[name])
		}
	}
}

// output runs a command with additional environment, and returns its output.
func output(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s %q: %s", name, args, out)
	return string(out)
}

// runs returns the output of a program for the target.
func runs(t *testing.T, qemu, program string) string {
	t.Helper()
	if qemu == "" {
		return output(t, ".", nil, program)
	}
	return output(t, ".", nil, qemu, "-L", "/usr/aarch64-linux-gnu", program)
}

// TestOutsideCProgram installs the C library into a folder, and builds a program against that
// folder.
func TestOutsideCProgram(t *testing.T) {
	step.Needs(t, step.Check)
	source, err := filepath.Abs(filepath.Join("testdata", "pond", "pond.c"))
	require.NoError(t, err)
	version := regexp.MustCompile(`UPFRONT_VERSION "(.*)"`).FindStringSubmatch(page(t, "arena_c/upfront.h"))
	require.NotNil(t, version)
	want := version[1] + ": 38 frogs after 200 ticks, at most 38 of 38\nheard 16687, refused 210\n" +
		"names: 0 live, peak 1392 bytes; frame: peak 1024\n"
	for _, o := range outside {
		t.Run(o.name, func(t *testing.T) {
			step.Needs(t, o.step)
			tools(t, "make", "pkg-config", o.cc, o.cxx, o.ar, o.qemu)
			root, dir := t.TempDir(), t.TempDir()
			output(t, "..", []string{"MAKEFLAGS="}, "make", "-s", "install", "CC="+o.cc, "AR="+o.ar, "DESTDIR="+root,
				"LIB="+filepath.Join(dir, "lib"))
			flags := func(args ...string) []string {
				at := []string{"PKG_CONFIG_SYSROOT_DIR=" + root,
					"PKG_CONFIG_LIBDIR=" + filepath.Join(root, "usr/local/lib/pkgconfig")}
				return strings.Fields(output(t, dir, at, "pkg-config", args...))
			}
			build := func(compiler, language, flagsOf, libsOf string) (program string, err error) {
				program = filepath.Join(dir, "pond")
				args := []string{"-x", language, "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", source, "-x",
					"none", "-o", program}
				cmd := exec.Command(compiler, slices.Concat(args, flags("--cflags", flagsOf),
					flags("--libs", libsOf))...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					return string(out), err
				}
				return program, nil
			}
			for _, library := range []string{"upfront", "upfront-checked"} {
				assert.Equal(t, []string{version[1]}, flags("--modversion", library))
				program, err := build(o.cc, "c", library, library)
				require.NoError(t, err, program)
				want := want
				if library == "upfront-checked" { // freed blocks stay unused there
					want = strings.Replace(want, "peak 1392", "peak 1376", 1)
				}
				assert.Equal(t, want, runs(t, o.qemu, program), library)
				if o.cxx != "" {
					program, err = build(o.cxx, "c++", library, library)
					require.NoError(t, err, program)
					assert.Equal(t, want, runs(t, o.qemu, program), "%s, C++", library)
				}
			}
			text, err := build(o.cc, "c", "upfront-checked", "upfront")
			assert.Error(t, err, "two builds in one program")
			assert.Contains(t, text, "upfront_build_checked")
			text, err = build(o.cc, "c", "upfront", "upfront-checked")
			assert.Error(t, err, "two builds in one program")
			assert.Contains(t, text, "upfront_build_release")
		})
	}
}

// TestWithoutCgo: a build without cgo, or for another system without its compiler, prints one line
// that says so. For a package that is all cgo the go command has its own words.
func TestWithoutCgo(t *testing.T) {
	step.Needs(t, step.Check)
	for _, system := range []string{"CGO_ENABLED=0", "GOARCH=riscv64", "GOOS=windows", "GOOS=darwin"} {
		for _, dir := range []string{"..", "bench"} {
			env := []string{"GOFLAGS=", "CGO_ENABLED=", system}
			list := output(t, dir, env, "go", "list", "-e", "-test", "-deps", "-f", "{{with .Error}}{{.}}{{end}}",
				"./...")
			list = regexp.MustCompile(`(?m)^go: downloading .*$`).ReplaceAllString(list, "")
			assert.Empty(t, strings.TrimSpace(list), "%s in %s", system, dir)
		}
	}
	line := regexp.MustCompile(`^# ` + module +
		`/arena_c\n\S*arena_c/cgo_off\.go:\d+:\d+: [^\n]*upfront needs cgo: set CGO_ENABLED=1[^\n]*\n$`)
	// Other packages are left out: their imports would be compiled for this build alone.
	for _, verb := range []string{"build", "vet"} {
		cmd := exec.Command("go", verb, "./arena", "./scope")
		cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		assert.Error(t, err)
		assert.Regexp(t, line, string(out), "go %s", verb)
	}
}
