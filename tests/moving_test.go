//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/tests/step"
)

const moving = "tests/moving/README.md"

// TestMovingPage does the steps of the page in a module of its own: it writes the page's file, runs
// each command, and compares the output. With -update it writes the output into the page.
func TestMovingPage(t *testing.T) {
	step.Needs(t, step.Gate) // go tool pprof is compiled
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir, bin := t.TempDir(), t.TempDir()
	t.Setenv("GOBIN", bin)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -buildvcs=false -ldflags=-w") // it links faster
	source := page(t, "tests/moving/after/history.go") + page(t, "tests/moving/after/main.go")

	parts := strings.Split(page(t, moving), "\n```")
	for i := 1; i < len(parts); i += 2 { // the others are prose
		language, body, _ := strings.Cut(parts[i], "\n")
		switch language {
		case "sh": // it makes the module
			output(t, dir, nil, "sh", "-ec", strings.ReplaceAll(body, "DIR", root))
			dir = filepath.Join(dir, "moving")
		case "go":
			name, found := strings.CutPrefix(body, "// before/")
			if !found {
				assert.Contains(t, source, "\n"+body+"\n")
				continue
			}
			name, _, _ = strings.Cut(name, "\n")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "before", name), []byte(body+"\n"), 0o600))
		case "text":
			parts[i] = language + shows(t, dir, body)
		case "yaml":
			for line := range strings.Lines(body + "\n") {
				assert.Contains(t, strings.Join(parts, ""),
					"\n$ "+strings.TrimSuffix(strings.TrimPrefix(line, "- run: "), "\n"))
			}
		default:
			t.Errorf("a block of %q", language)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join("..", moving), []byte(strings.Join(parts, "\n```")), 0o644))
	}
}

// shows runs the commands of a block, each with the output that it should have. It returns the
// block with the output that they had.
func shows(t *testing.T, dir, block string) (shown string) {
	t.Helper()
	for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
		command := firstLine.FindString(part)
		want := strings.TrimPrefix(strings.TrimPrefix(part, command), "\n")
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput()
		got := strings.TrimSuffix(strings.ReplaceAll(string(out), dir, "/moving"), "\n")
		got = trimmed.ReplaceAllString(got, " /moving/$1")
		got = address.ReplaceAllString(got, "0x…")
		counts := strings.Contains(command, "-bench") || strings.Contains(command, "pprof")
		if counts && alike(want, got) {
			got = want
		}
		assert.Equal(t, want, got, command)
		shown += "\n$ " + strings.TrimSuffix(command+"\n"+got, "\n")
	}
	return shown
}

var (
	// A command goes on in the next line after a |.
	firstLine = regexp.MustCompile(`^(.*\|\n)*.*`)
	trimmed   = regexp.MustCompile(` example.com/moving/(\S+\.go:)`) // with -trimpath
	address   = regexp.MustCompile(`0x[0-9a-f]+`)
	number    = regexp.MustCompile(`^([0-9.]+)(%|MB|)$`)
)

// alike reports whether two texts differ only in numbers, and these by a tenth or by 4 at most.
func alike(want, got string) bool {
	a, b := strings.Fields(want), strings.Fields(got)
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := number.FindStringSubmatch(a[i]), number.FindStringSubmatch(b[i])
		if x == nil || y == nil || x[2] != y[2] {
			if a[i] != b[i] {
				return false
			}
			continue
		}
		m, err := strconv.ParseFloat(x[1], 64)
		n, err2 := strconv.ParseFloat(y[1], 64)
		if err != nil || err2 != nil || math.Abs(m-n) > max(4, m/10) {
			return false
		}
	}
	return true
}

// TestAlike is a control of alike.
func TestAlike(t *testing.T) {
	const want = "Bench 1 7159 scan-KB 6.000 collections 99.69%"
	for got, same := range map[string]bool{
		want: true,
		"Bench 1 7300 scan-KB 8.000 collections 99.7%":   true,
		"Bench 1 7159 scan-KB 11.00 collections 99.69%":  false,
		"Bench 1 9000 scan-KB 6.000 collections 99.69%":  false,
		"Bench 1 7159 scan-MB 6.000 collections 99.69%":  false,
		"Bench 1 7159 scan-KB 6.000 collections 99.69MB": false,
		"Bench 1 7159 scan-KB 6.000 collections":         false,
	} {
		assert.Equal(t, same, alike(want, got), got)
	}
}

// TestMovingTypes holds the page's table: a row's types may be in a budget, or are refused.
func TestMovingTypes(t *testing.T) {
	type mixed struct {
		X  [4]float64
		On bool
	}
	type link struct {
		Parent int32
		Next   arena.Handle[int64]
	}
	type types []reflect.Type
	of := map[string]struct{ goes, stays types }{
		"numbers, bools, and arrays and structs of them": {types{reflect.TypeFor[mixed]()}, nil},
		"a column, an index of numbers": {types{reflect.TypeFor[float64](), reflect.TypeFor[int32]()},
			nil},
		"a history, the last n samples, a ring": {types{reflect.TypeFor[struct{ At [240]int64 }]()}, nil},
		"a page, a packet, a buffer":            {types{reflect.TypeFor[byte]()}, nil},
		"a tree, a graph, a list":               {types{reflect.TypeFor[link]()}, nil},
		"a cache of plain values":               {types{reflect.TypeFor[mixed]()}, nil},
		"a `time.Time`":                         {types{reflect.TypeFor[int64]()}, types{reflect.TypeFor[time.Time]()}},
		"a short string: a unit, a code, a name": {types{reflect.TypeFor[arena.Inline[[8]byte]]()},
			types{reflect.TypeFor[string]()}},
		"a `map[string]*T`": {types{reflect.TypeFor[mixed]()}, types{reflect.TypeFor[map[string]*mixed]()}},
		"a long string, a map, a slice of strings": {nil,
			types{reflect.TypeFor[string](), reflect.TypeFor[map[int]int](), reflect.TypeFor[[]string]()}},
		"an interface, an error, a func, a channel, a context": {nil, types{reflect.TypeFor[any](),
			reflect.TypeFor[error](), reflect.TypeFor[func()](), reflect.TypeFor[chan int](),
			reflect.TypeFor[context.Context]()}},
	}
	rows := cells(t, page(t, moving), "| part of a Go program |")
	assert.Len(t, rows, len(of))
	for _, row := range rows {
		assert.Contains(t, of, row[0])
		assert.Equal(t, of[row[0]].goes != nil, strings.HasSuffix(row[1], "goes"), row[0])
		for _, typ := range of[row[0]].goes {
			assert.NoError(t, arena.CheckPlain(typ), row[0])
		}
		for _, typ := range of[row[0]].stays {
			assert.Error(t, arena.CheckPlain(typ), row[0])
		}
	}
}
