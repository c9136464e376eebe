//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"github.com/upfront-mem/upfront/tests/step"
)

// column is a build that TestBuilds compares: a release of Go, a C compiler, a processor and flags.
type column struct {
	name  string
	tools []string // besides Go's
	env   []string // of the go command
	flags []string // of the go command
	run   []string // begins the command line of a program
	kinds string   // of the differences from the first build: fused, arm64, checked
	dir   string   // of its programs and files
	end   []byte   // the hashes of a level that is played without an interruption
}

var arm64 = column{name: "arm64", tools: []string{"aarch64-linux-gnu-gcc", "qemu-aarch64-static"},
	env: []string{"GOARCH=arm64", "CC=aarch64-linux-gnu-gcc"},
	run: []string{"qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"}, kinds: "fused arm64"}

// builds returns the columns. The first is the release build for amd64. Make soak has the next
// release of Go too, if it isn't the one that runs.
func builds(t *testing.T) (list []*column) {
	v3 := column{name: "v3", kinds: "fused"}
	v3.env = []string{"CC=gcc", "GOAMD64=v3", "CGO_CFLAGS=-O2 -g -march=x86-64-v3"}
	if x := cpu.X86; !x.HasFMA || !x.HasAVX2 || !x.HasBMI1 || !x.HasBMI2 {
		v3.tools, v3.run = []string{"qemu-x86_64-static"}, []string{"qemu-x86_64-static", "-cpu", "max"}
	}
	arm64Clang := arm64
	arm64Clang.name, arm64Clang.tools = "arm64 clang", append([]string{"clang"}, arm64.tools...)
	arm64Clang.env = []string{"GOARCH=arm64", "CC=clang --target=aarch64-linux-gnu"}
	all := []column{
		{name: "amd64", env: []string{"CC=gcc"}},
		{name: "clang", tools: []string{"clang"}, env: []string{"CC=clang"}},
		v3, arm64, arm64Clang,
		{name: "checked", env: []string{"CC=gcc"}, flags: []string{"-tags=checked"}, kinds: "checked"},
		{name: "asan", env: []string{"CC=gcc"}, flags: []string{"-asan"}},
		{name: "race", env: []string{"CC=gcc"}, flags: []string{"-race"}},
	}
	next := regexp.MustCompile(`GOTOOLCHAIN=(go1\.\d+)\.\d+`).FindStringSubmatch(page(t, "tests/run/soak.go"))
	if step.Now() == step.Soak && !strings.HasPrefix(runtime.Version(), next[1]+".") {
		for _, b := range all[:5] {
			b.name, b.env = b.name+" "+next[1], append([]string{next[0]}, b.env...)
			all = append(all, b)
		}
	}
	for _, b := range all {
		list = append(list, &b)
	}
	return list
}

// compile makes the build's programs in its folder.
func (b *column) compile(t *testing.T) {
	t.Helper()
	version := exec.Command("go", "version") // downloads the release
	if version.Env = append(os.Environ(), b.env...); version.Run() != nil {
		step.Lacks(t, b.env[0], "")
	}
	b.goCommand(t, ".", "build", "-o", b.dir+"/", "./frogpond")
	b.goCommand(t, ".", "test", "-c", "-vet=off", "-o", b.dir+"/", "../budget/save", "./conformance", "./pond")
	b.goCommand(t, "testdata/floats", "build", "-o", b.dir+"/", ".")
}

// goCommand runs the go command for the build.
func (b *column) goCommand(t *testing.T, dir, command string, args ...string) {
	t.Helper()
	args = slices.Concat([]string{command, "-buildvcs=false", "-ldflags=-w"}, b.flags, args)
	output(t, dir, append([]string{"CGO_ENABLED=1", "GOAMD64=v1"}, b.env...), "go", args...)
}

// play runs a program of the build in a folder, and returns its output.
func (b *column) play(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	line := slices.Concat(b.run, []string{filepath.Join(b.dir, program)}, args)
	return output(t, dir, append([]string{step.Variable + "="}, env...), line[0], line[1:]...)
}

// test runs a test of a package of the build in a folder, and returns the hashes that it logs.
func (b *column) test(t *testing.T, dir string, env []string, program, name string, args ...string) (hashes []byte) {
	t.Helper()
	args = append([]string{"-test.v", "-test.run=^" + name + "$"}, args...)
	out := b.play(t, dir, env, program, args...)
	assert.Contains(t, out, "--- PASS: "+name+" ")
	return []byte(regexp.MustCompile(`0x.*`).FindString(out))
}

// rooms plays pond's rooms: from the checkpoints in a file, or from the start if there is no file.
func (b *column) rooms(t *testing.T, file string) (hashes []byte) {
	t.Helper()
	hashes = b.test(t, b.dir, []string{"POND_HASHES=" + file}, "pond.test", "TestHashes")
	require.NotEmpty(t, hashes)
	return hashes
}

// game plays frogpond's built-in maps in a folder, and returns its result.
func (b *column) game(t *testing.T, dir string, args ...string) (result map[string]any) {
	t.Helper()
	args = append([]string{"-json", "-wad", "builtin"}, args...)
	require.NoError(t, json.Unmarshal([]byte(b.play(t, dir, nil, "frogpond", args...)), &result))
	return result
}

// level plays a map, and returns its hashes.
func (b *column) level(t *testing.T, dir string, args ...string) (hashes []byte) {
	t.Helper()
	args = append([]string{"-maps", "MAP03"}, args...)
	return only(t, b.game(t, dir, args...)["levels"], "hash", "state_hash")
}

// only returns the fields with these keys of each object of a list.
func only(t *testing.T, list any, keys ...string) (fields []byte) {
	t.Helper()
	require.NotEmpty(t, list)
	for _, object := range list.([]any) {
		for _, key := range keys {
			require.Contains(t, object, key)
			fields = fmt.Append(fields, object.(map[string]any)[key], " ")
		}
	}
	return fields
}

// writes plays, writes files into the build's folder, and adds the rows of both.
func (b *column) writes(t *testing.T, rows *table) {
	add := func(name, kind string, value []byte) { rows.add(name, kind, b, value) }
	file := func(name, kind string, path ...string) (text []byte) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(append([]string{b.dir}, path...)...))
		require.NoError(t, err)
		add(name, kind, text)
		return text
	}
	r := b.game(t, b.dir, "-ticks", "70", "-record", "recording", "-timeline", "timeline")
	want := "release"
	if b.flags != nil {
		want = b.name
	}
	assert.Equal(t, want, r["build"])
	_, next, _ := strings.Cut(b.name, " go")
	assert.Contains(t, r["go"], next)
	report := r["report"].(map[string]any)
	add("frogpond: states of 12 maps", "", only(t, r["levels"], "name", "ticks", "hash", "state_hash"))
	add("frogpond: counts of 12 maps", "", only(t, r["levels"], "used", "peak", "state_bytes", "snapshot_bytes",
		"finalizers_run", "pool_capacity", "pool_peak"))
	add("frogpond: counts of arenas", "", only(t, report["arenas"], "name", "size", "used", "peak", "load_peak", "free",
		"finalizers", "pool_cap", "pool_peak", "most_open"))
	add("frogpond: plan", "", fmt.Append(nil, report["plan"]))
	file("frogpond: timeline", "", "timeline")
	file("frogpond: recorded allocations", "checked", "recording")
	add("frogpond: graph", "", []byte(b.play(t, b.dir, nil, "frogpond", "-wad", "builtin", "-flow", "MAP03")))
	add("frogpond: vocabulary", "", []byte(b.play(t, b.dir, nil, "frogpond", "-vocabulary")))
	b.end = b.level(t, b.dir, "-ticks", "140", "-demo", "inputs")
	b.level(t, b.dir, "-playdemo", "inputs", "-ticks", "70", "-save", "save")
	file("frogpond: inputs", "", "inputs")
	file("frogpond: save", "checked", "save")

	for _, dir := range []string{"form2", "deltas"} {
		require.NoError(t, os.MkdirAll(filepath.Join(b.dir, "testdata", dir), 0o755))
	}
	b.test(t, b.dir, nil, "save.test", "TestGoldenFiles", "-update")
	goldens, err := filepath.Glob("../budget/save/testdata/*/*")
	require.NoError(t, err)
	for _, golden := range goldens {
		dir, kind := "form2", "checked"
		if filepath.Ext(golden) == ".delta" {
			dir, kind = "deltas", ""
		}
		name := filepath.Base(golden)
		text := file("save: "+name, kind, "testdata", dir, name)
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, kind == "" || b.kinds != kind, bytes.Equal(want, text), golden)
	}
	b.test(t, b.dir, []string{"UPFRONT_PIN=1"}, "conformance.test", "TestPinned")
	text := file("conformance: places", "", "testdata", "pinned.txt")
	assert.Equal(t, page(t, "tests/conformance/testdata/pinned.txt"), string(text))
	add("pond: states of 3 rooms", "", b.rooms(t, filepath.Join(b.dir, "rooms")))

	floats := map[string]string{}
	for line := range strings.Lines(b.play(t, b.dir, nil, "floats")) {
		word, _, _ := strings.Cut(line, " ")
		floats[word] += line
	}
	add("floats: converted, equal", "", []byte(floats["converted"]+floats["equal"]))
	add("floats: fused", "fused", []byte(floats["fused"]))
	add("floats: nan, integer", "arm64", []byte(floats["nan"]+floats["integer"]))
}

// reads plays on from the files of each build, and adds a row of states for each of them.
func (b *column) reads(t *testing.T, from []*column, rows *table) {
	for _, w := range from {
		end := b.level(t, w.dir, "-playdemo", "inputs", "-load", "save", "-ticks", "140")
		assert.Equal(t, string(b.end), string(end), w.name)
		b.test(t, w.dir, nil, "save.test", "TestGoldenFiles", "-other")
		rooms, err := os.ReadFile(filepath.Join(w.dir, "rooms"))
		require.NoError(t, err)
		name := filepath.Join(t.TempDir(), "rooms")
		require.NoError(t, os.WriteFile(name, rooms, 0o600))
		rows.add("on from files of "+w.name, "", b, append(end, b.rooms(t, name)...))
	}
}

// row is a value that all builds have in common, but for the builds of the kind. These must differ,
// so that a row with a kind is a control.
type row struct {
	name, kind string
	values     map[string]uint32 // a checksum for each build
}

// table is the rows of TestBuilds.
type table []*row

// add adds the value of a build to a row.
func (x *table) add(name, kind string, b *column, value []byte) {
	i := slices.IndexFunc(*x, func(r *row) bool { return r.name == name })
	if i < 0 {
		i = len(*x)
		*x = append(*x, &row{name, kind, map[string]uint32{}})
	}
	(*x)[i].values[b.name] = crc32.ChecksumIEEE(value)
}

// faults returns the rows and builds that differ from the first build, or that are equal though
// they should differ.
func (x table) faults(all []*column) (list []string) {
	for _, r := range x {
		want, found := r.values[all[0].name]
		if !found {
			list = append(list, r.name+": "+all[0].name+" has none")
		}
		for _, b := range all[1:] {
			value, found := r.values[b.name]
			if differs := r.kind != "" && strings.Contains(b.kinds, r.kind); !found || differs != (value != want) {
				list = append(list, fmt.Sprintf("%s: %s has %08x (%v), and %s %08x", r.name, b.name, value, found,
					all[0].name, want))
			}
		}
	}
	return list
}

// text returns the first build's checksums, = for those of a build that are equal, and the
// checksums that differ.
func (x table) text(all []*column) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, b := range all {
		fmt.Fprint(w, "\t", b.name)
	}
	for _, r := range x {
		fmt.Fprint(w, "\n", r.name)
		for i, b := range all {
			if i > 0 && r.values[b.name] == r.values[all[0].name] {
				fmt.Fprint(w, "\t=")
			} else {
				fmt.Fprintf(w, "\t%08x", r.values[b.name])
			}
		}
	}
	w.Flush()
	return out.String()
}

// TestBuilds compares compilers, processors and builds: hashes of played states, files and counts.
// Each build reads the files of the others and plays on, to the same state.
func TestBuilds(t *testing.T) {
	step.Needs(t, step.Gate)
	step.Machine(t, step.Loopback())
	if runtime.GOARCH != "amd64" {
		t.Skip("amd64 is the target that others are compared with: there, UPFRONT_STEP=gate go test ./tests runs it")
	}
	var all []*column
	var rows table
	for _, b := range builds(t) {
		t.Run(b.name, func(sub *testing.T) {
			tools(sub, b.tools...)
			b.dir = t.TempDir() // the other builds read its files
			b.compile(sub)
			b.writes(sub, &rows)
			all = append(all, b)
		})
	}
	require.NotEmpty(t, all)
	for _, b := range all {
		t.Run("files for "+b.name, func(t *testing.T) { b.reads(t, all, &rows) })
	}
	t.Log("\n" + rows.text(all))
	assert.Empty(t, rows.faults(all))
}

// TestBuildsDiffer is a control of the table's judgment.
func TestBuildsDiffer(t *testing.T) {
	all := []*column{{name: "amd64"}, {name: "clang"}, {name: "arm64", kinds: "fused arm64"}}
	for _, c := range []struct{ state, fused, want string }{ // a letter for each build
		{"aaa", "aab", ""},
		{"aba", "aab", "state: clang has "},
		{"aab", "aab", "state: arm64 has "},
		{"aaa", "abb", "fused: clang has "},
		{"aaa", "aaa", "fused: arm64 has "},
		{"aa", "aab", "state: arm64 has 00000000 (false), "},
	} {
		var rows table
		for i, b := range all {
			if i < len(c.state) {
				rows.add("state", "", b, []byte{c.state[i]})
			}
			rows.add("fused", "fused", b, []byte{c.fused[i]})
		}
		faults := strings.Join(rows.faults(all), "\n")
		assert.True(t, strings.HasPrefix(faults, c.want) && (faults == "") == (c.want == ""), faults)
		assert.Equal(t, strings.Count(c.want, "has"), len(rows.faults(all)))
	}
}
