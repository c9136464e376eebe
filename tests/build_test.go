package tests

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// goCommand runs the go command and returns its standard output.
func goCommand(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go %s: %s", strings.Join(args, " "), stderr.String())
	return out
}

// builtWith returns the flags of this build of the tests that a release build doesn't have.
func builtWith(t *testing.T) map[string]string {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	flags := map[string]string{}
	for _, s := range info.Settings {
		if s.Key == "-race" || s.Key == "-asan" || s.Key == "-tags" {
			flags[s.Key] = s.Value
		}
	}
	return flags
}

// built holds the programs that buildLike has built, by the arguments of go build. TestMain removes
// them.
var built struct {
	sync.Mutex
	dir      string
	programs map[string]string
}

// buildLike builds the program in a folder of this one with the flags of these tests, and with more
// tags. It builds each program once.
func buildLike(t *testing.T, folder string, tags ...string) (path string) {
	t.Helper()
	flags := builtWith(t)
	flags["-tags"] = strings.Trim(strings.Join(append(tags, flags["-tags"]), ","), ",")
	var args []string
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		args = append(args, flag+"="+flags[flag])
	}
	args = append(args, "./"+folder)
	key := strings.Join(args, " ")
	built.Lock()
	defer built.Unlock()
	if path = built.programs[key]; path != "" {
		return path
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "upfront-tests-")
		require.NoError(t, err)
		built.dir, built.programs = dir, map[string]string{}
	}
	dir, err := os.MkdirTemp(built.dir, "")
	require.NoError(t, err)
	path = filepath.Join(dir, filepath.Base(folder))
	goCommand(t, ".", append([]string{"build", "-o", path}, args...)...)
	built.programs[key] = path
	return path
}
