package crash_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/internal/crash"
	"github.com/upfront-mem/upfront/tests/step"
)

// crasher builds testdata/crasher without a sanitizer: AddressSanitizer has its own report of a
// fault in C.
func crasher(t *testing.T, tags string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "crasher")
	out, err := exec.Command("go", "build", "-o", path, "-tags", tags, "./testdata/crasher").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

func crashed(t *testing.T, program, way string) (out string, state *os.ProcessState) {
	t.Helper()
	cmd := exec.Command(program, way, t.TempDir())
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.True(t, err == nil || errors.As(err, &exit), "%v", err)
	return string(text), cmd.ProcessState
}

func TestACrashIsDescribedAndGoesOn(t *testing.T) {
	step.Needs(t, step.Check)
	program := crasher(t, "")
	for _, c := range []struct {
		way, begins, goesOn string
		status              int
	}{
		{"unwatched", "unexpected fault address", "fatal error: fault", 2}, // the control
		{"read", "TEXT: byte 7 of the block\nunexpected fault address", "fatal error: fault", 2},
		{"write", "TEXT: byte 7 of the block\nunexpected fault address", "fatal error: fault", 2},
		{"goroutine", "TEXT: byte 7 of the block\nunexpected fault address", "fatal error: fault", 2},
		{"bus", "TEXT: byte 3 of the block\nunexpected fault address", "SIGBUS", 2},
		{"c", "TEXT: byte 7 of the block\nSIGSEGV", "signal arrived during cgo execution", 2},
		{"last", "TEXT: byte 5 of the block\nunexpected fault address", "fatal error: fault", 2},
		{"behind", "unexpected fault address", "fatal error: fault", 2},
		{"nil", "panic: runtime error: invalid memory address", "goroutine 1", 2},
		{"nil recovered", "recovered: runtime error: invalid memory address", "alive", 0},
		{"sent", "SIGSEGV: segmentation violation", "sigcode=0", 2},
		{"recovered", "TEXT: byte 7 of the block\nrecovered: true\nTEXT: byte 7 of the block\nrecovered: true\nalive\n",
			"alive", 0},
		{"unreadable", "upfront: a fault in the block, whose tables can't be read any more\nunexpected",
			"fatal error: fault", 2},
		{"silent", "unexpected fault address", "fatal error: fault", 2},
		{"unwatch", "unexpected fault address", "fatal error: fault", 2},
		{"after", "TEXT: no longer 7\nunexpected fault address", "fatal error: fault", 2},
		{"anew", "TEXT: byte 7 of another's block\nunexpected", "fatal error: fault", 2},
		{"full", "true\nTEXT: byte 7 of the last block\nunexpected", "fatal error: fault", 2},
		// Threads write at once: texts of other threads may come between two lines of a thread.
		{"crowd", "TEXT: byte 7 of the block\n", "fatal error: ", 2},
	} {
		t.Run(c.way, func(t *testing.T) {
			t.Parallel()
			out, state := crashed(t, program, c.way)
			assert.Truef(t, strings.HasPrefix(out, c.begins), "want it to begin with %q:\n%s", c.begins, out)
			assert.Contains(t, out, c.goesOn)
			assert.Equal(t, c.status, state.ExitCode())
			if !strings.Contains(c.begins, "TEXT") {
				assert.NotContains(t, out, "TEXT")
			}
		})
	}
	// On a thread of C, Go ends the process by the signal, without a traceback.
	t.Run("thread", func(t *testing.T) {
		for way, want := range map[string]string{"thread": "TEXT: byte 7 of the block\n", "thread unwatched": ""} {
			out, state := crashed(t, program, way)
			assert.Equal(t, want, out)
			assert.Equal(t, syscall.SIGSEGV, state.Sys().(syscall.WaitStatus).Signal())
		}
	})
	t.Run("parallel", func(t *testing.T) {
		out, state := crashed(t, program, "parallel")
		assert.Equal(t, strings.Repeat("TEXT: byte 7 of the block\n", 200)+"alive\n", out)
		assert.True(t, state.Success())
	})
}

// TestACrashInCKeepsItsNames checks that the traceback still has the names of platform/symbolize.
func TestACrashInCKeepsItsNames(t *testing.T) {
	step.Needs(t, step.Check)
	out, _ := crashed(t, crasher(t, "symbolize"), "c")
	assert.Truef(t, strings.HasPrefix(out, "TEXT: byte 7 of the block\nSIGSEGV"), "%s", out)
	for _, name := range []string{"\ndeep_in_c\n", "\nread_in_c\n", "main._Cfunc_read_in_c"} {
		assert.Contains(t, out, name)
	}
}

func TestWatchRefusesBugs(t *testing.T) {
	x := new(byte)
	p := unsafe.Pointer(x)
	for _, r := range []crash.Range{{}, {Base: p, Size: 1}, {Base: p, Describe: p}, {Size: 1, Describe: p},
		{Base: p, Size: ^uint64(0), Describe: p}} {
		assert.ErrorContains(t, crash.Watch(r), "BUG")
	}
	crash.Unwatch(p, nil, 0) // nothing
}
