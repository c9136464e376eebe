package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestTargets: each device has a target, arm64 comes first, and the list of Debian packages is
// complete.
func TestTargets(t *testing.T) {
	inRoot(t)
	all, err := readTargets()
	require.NoError(t, err)
	devices := all.forDevices()
	require.Greater(t, len(devices), 2)
	assert.Equal(t, "linux-arm64", devices[0].Name)
	assert.Equal(t, "linux-arm64-static", devices[1].Name)
	for _, name := range []string{"clang", "valgrind", "gcc-arm-linux-gnueabihf", "gcc-mingw-w64-x86-64-win32"} {
		assert.Contains(t, all.packages(), name)
	}
	all.Devices[0].Target = "linux-arm65"
	assert.ErrorContains(t, all.check(), `device cortex-a35: cross/targets.json: no target "linux-arm65"`)
	for _, none := range []string{"tests/run", "tests/runs"} {
		all.Targets[0].Tests = []string{none}
		assert.ErrorContains(t, all.check(), "target linux-arm64: tests of "+none+" don't run under an emulator")
	}
}

func TestTargetsAreStrict(t *testing.T) {
	t.Chdir(t.TempDir())
	_, err := readTargets()
	assert.ErrorContains(t, err, "run it in the root of the repository")
	require.NoError(t, os.Mkdir("cross", 0o755))
	require.NoError(t, os.WriteFile(targetsFile, []byte(`{"targets": [{"name": "a", "flag": []}]}`), 0o644))
	_, err = readTargets()
	assert.ErrorContains(t, err, `cross/targets.json: json: unknown field "flag"`)
}

// TestWithoutCompilers: each target but arm64 may lack its compiler, and is then reported with the
// packages that bring it.
func TestWithoutCompilers(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	bin := filepath.Join(dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "mips-linux-gnu-gcc"), []byte("#!/bin/sh\necho /bin/sh\n"),
		0o755))
	t.Setenv("PATH", bin)
	mips := target{Name: "linux-mips", Machine: "mips", Debian: []string{"gcc-mips"}}
	arm := target{Name: "linux-arm", Machine: "arm", ABI: "gnueabihf", Debian: []string{"gcc-arm", "qemu"}}
	arm64 := target{Name: "linux-arm64", Machine: "aarch64", Debian: []string{"gcc-arm64"}}

	var out bytes.Buffer
	p := newProver(&out, step.Test)
	var built []string
	build := func(x target) error { built = append(built, x.Name); return nil }
	require.NoError(t, p.eachTarget([]target{arm, mips}, nil, build))
	assert.Equal(t, []string{"linux-mips"}, built)
	link, err := os.Readlink("build/linux-mips/gcc")
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(bin, "mips-linux-gnu-gcc"), link)
	p.requireAll = false
	require.NoError(t, p.conclude())
	assert.Contains(t, out.String(), "linux-arm: arm-linux-gnueabihf-gcc, or its C library, is missing; Debian's "+
		"package gcc-arm, qemu brings it")
	p.requireAll = true
	assert.Error(t, p.conclude())

	if runtime.GOARCH != "arm64" {
		assert.ErrorContains(t, p.eachTarget([]target{arm64, mips}, nil, build), "without linux-arm64")
	}
	assert.ErrorContains(t, p.eachTarget([]target{mips}, []string{"linux-mops"}, build), `no target "linux-mops"`)
}

func TestRunLine(t *testing.T) {
	x := target{Env: []string{"GOARCH=mips"}, Machine: "mips", RunEnv: []string{"A=1"}}
	assert.Equal(t, []string{"env", "A=1", "qemu-mips-static", "-L", "/usr/mips-linux-gnu"}, x.run(0))
	assert.Equal(t, []string{"-p", "16384"}, x.run(16384)[5:])
	x = target{Env: []string{"GOARCH=" + runtime.GOARCH}, Machine: "this"}
	assert.Empty(t, x.run(0))
}

// TestExceptions: each package and test that is left out under an emulator exists, and is in the
// page's table.
func TestExceptions(t *testing.T) {
	inRoot(t)
	m, err := newMatrix()
	require.NoError(t, err)
	for _, e := range exceptions {
		files, err := filepath.Glob(e.pack + "/*_test.go")
		require.NoError(t, err)
		require.NotEmpty(t, files, e.pack)
		found := e.test == ""
		for _, file := range files {
			found = found || strings.Contains(read(t, file), "func "+e.test+"(t *testing.T)")
		}
		assert.True(t, found, "%s has no %s", e.pack, e.test)
		if e.test == "" {
			continue
		}
		on := target{Machine: "aarch64"}
		if e.only32 {
			on.Machine = "arm"
		}
		for _, pack := range m.packages { // the flag -skip holds for every package of a command
			if pack == e.pack || on.leftOut(pack) {
				continue
			}
			files, err := filepath.Glob(pack + "/*_test.go")
			require.NoError(t, err)
			for _, file := range files {
				assert.NotContains(t, read(t, file), "func "+e.test+"(t *testing.T)", "%s would be left out as well",
					file)
			}
		}
	}
	const name, begin, end = "cross/README.md", "<!-- exceptions -->\n", "<!-- end -->\n"
	before, rest, _ := strings.Cut(read(t, name), begin)
	table, after, found := strings.Cut(rest, end)
	require.True(t, found)
	if *update {
		table = exceptionsTable()
		require.NoError(t, os.WriteFile(name, []byte(before+begin+table+end+after), 0o644))
	}
	assert.Equal(t, exceptionsTable(), table, "go test ./tests/run -run Exceptions -update writes it anew")
}

// TestSelf: under a target's emulator a test's program can start itself.
func TestSelf(t *testing.T) {
	inRoot(t)
	script, err := filepath.Abs(emulator)
	require.NoError(t, err)
	dir := t.TempDir()
	// The fake of an emulator runs a shell's script, and passes on the name that -0 gives it.
	fake, program := filepath.Join(dir, "qemu"), filepath.Join(dir, "p.test")
	require.NoError(t, os.WriteFile(fake, []byte("#!/bin/sh\nSELF=$2 LEVEL=$LEVEL+ exec sh \"$3\" \"$4\" \"$5\"\n"),
		0o755))
	require.NoError(t,
		os.WriteFile(program, []byte(`echo "$LEVEL $1 $2"; [ "$LEVEL" = ++ ] || exec "$SELF" "$1" again`), 0o644))
	out, err := exec.Command(script, fake, program, "-test.run=a b", "once").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "+ -test.run=a b once\n++ -test.run=a b again\n", string(out))
	x := target{Env: []string{"GOARCH=mips"}, Machine: "mips"}
	flag, err := x.exec(step.Check, 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"-exec=qemu-mips-static -L /usr/mips-linux-gnu"}, flag)
	flag, err = x.exec(step.Test, 16384)
	require.NoError(t, err)
	assert.Equal(t, []string{"-exec='" + script + "' 'qemu-mips-static -L /usr/mips-linux-gnu -p 16384'"}, flag)
}

func TestNewestGlibc(t *testing.T) {
	assert.Equal(t, "GLIBC_2.34", newestGlibc("Name: GLIBC_2.4  Name: GLIBC_2.34 Name: GLIBC_2.17"))
	assert.Equal(t, "nothing, it is static", newestGlibc(""))
}

// TestPack: the same files make the same bytes at any time.
func TestPack(t *testing.T) {
	var packed [2][]byte
	for i := range packed {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "p/bin"), 0o755))
		for name, mode := range map[string]os.FileMode{"p/bin/frogpond": 0o700, "p/README": 0o600} {
			file := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(file, []byte(name), mode))
			require.NoError(t, os.Chtimes(file, time.Time{}, time.Unix(int64(1000*i), 0)))
		}
		require.NoError(t, pack(filepath.Join(dir, "p.tar.gz"), dir, "p", time.Unix(1e9, 0)))
		packed[i] = []byte(read(t, filepath.Join(dir, "p.tar.gz")))
	}
	assert.Equal(t, packed[0], packed[1])
}

// TestWithoutWine: the part of make gate names the package of the missing compiler, and runs
// nothing.
func TestWithoutWine(t *testing.T) {
	inRoot(t)
	all, err := readTargets()
	require.NoError(t, err)
	x := all.windows()
	assert.Equal(t, "windows-amd64", x.Name)
	t.Setenv("PATH", t.TempDir())
	var out bytes.Buffer
	p := newProver(&out, step.Gate)
	p.requireAll = false
	require.NoError(t, windows(x, wineGate)(p))
	require.NoError(t, p.conclude())
	assert.Contains(t, out.String(),
		"windows: x86_64-w64-mingw32-gcc is missing; Debian's package gcc-mingw-w64-x86-64-win32 brings it")
}
