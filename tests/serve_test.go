//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"bufio"
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// straced is a program under strace that runs until a signal.
type straced struct {
	t      *testing.T
	cmd    *exec.Cmd
	folder string
	stdout bytes.Buffer
	first  string // the first line of stderr
}

// startStraced waits for the program's first line on stderr.
func startStraced(t *testing.T, name string, args ...string) *straced {
	t.Helper()
	s := &straced{t: t, folder: t.TempDir()}
	s.cmd = straceCommand(t, s.folder, name, args...)
	// With -D the program is this process's child, and strace a child of it: the program ends with
	// this process, and strace with the program.
	s.cmd.Args = slices.Insert(s.cmd.Args, 1, "-D")
	s.cmd.Stdout = &s.stdout
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, step.Start(s.cmd))
	t.Cleanup(func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) })
	said := bufio.NewReader(stderr)
	s.first, err = said.ReadString('\n')
	require.NoError(t, err)
	return s
}

// end sends the program a signal, which strace doesn't report, and returns its output and its
// calls.
func (s *straced) end() (stdout []byte, calls []string) {
	s.t.Helper()
	require.NoError(s.t, syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM))
	require.NoError(s.t, s.cmd.Wait())
	return s.stdout.Bytes(), readCalls(s.t, s.folder)
}

// TestServingAsksNothing: between listening and the signal, the only calls of a server with players
// that name the budget's pages fill and send buffers there. The control: the calls of Open and
// Close are found by the same search.
func TestServingAsksNothing(t *testing.T) {
	step.Needs(t, step.Check)
	step.Machine(t, step.Loopback())
	program, dir := buildLike(t, "frogpond"), t.TempDir()
	s := startStraced(t, program, "serve", "-json", "-addr", "127.0.0.1:0", "-wad", "builtin", "-rooms", "2",
		"-inputs", filepath.Join(dir, "inputs"), "-saves", filepath.Join(dir, "saves"), "-save-every", "500ms",
		"-scores", filepath.Join(dir, "scores"))
	address := regexp.MustCompile(`players on ([^;]+);`).FindStringSubmatch(s.first)
	require.NotNil(t, address, s.first)
	bots := exec.Command(program, "bots", "-json", "-addr", address[1], "-n", "16", "-for", "2s", "-loss", "2",
		"-jitter", "50ms")
	saw, err := bots.Output()
	require.NoError(t, err)
	assert.Contains(t, string(saw), `"joined": 16,`)
	stdout, lines := s.end()
	_, budget := readBudgetAt(t, stdout)
	before, serving, after := between(t, lines, "players on ", "--- SIGTERM ")
	_, found := budget.findings(serving)
	assert.Empty(t, found)
	opened, _ := budget.findings(before)
	assert.Contains(t, opened, "mprotect")
	closed, _ := budget.findings(after)
	assert.Contains(t, closed, "mmap", "over what was there")
	// These calls have their buffers in the budget.
	for _, call := range []string{"recvmmsg", "sendmmsg", "pwrite64"} {
		assert.True(t, slices.ContainsFunc(serving, func(line string) bool {
			_, args, called := strings.Cut(line, " "+call+"(")
			return called && namesBudget(args, budget)
		}), call)
	}
}
