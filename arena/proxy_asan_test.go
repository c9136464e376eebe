//go:build asan

package arena_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/arena"
)

// TestProxyOverrunIsReported: the words behind a proxy's block don't hide a touch past its end from AddressSanitizer.
// The touch that is reported ends a process, so another one makes it.
func TestProxyOverrunIsReported(t *testing.T) {
	const variable = "UPFRONT_PROXY_OVERRUN"
	if os.Getenv(variable) != "" {
		p := arena.NewProxy("sound", newHeap(t, 4096)).Alloc(20, 16)
		*(*byte)(unsafe.Add(p, 19)) = 1 // its last
		os.Stdout.WriteString("so far so good\n")
		if os.Getenv(variable) == "write" {
			*(*byte)(unsafe.Add(p, 20)) = 1
		}
		return
	}
	for what, reported := range map[string]bool{"nothing": false, "write": true} {
		child := exec.Command(os.Args[0], "-test.run=^TestProxyOverrunIsReported$")
		child.Env = append(os.Environ(), variable+"="+what)
		out, err := child.CombinedOutput()
		if errors.Is(err, syscall.ENOEXEC) {
			t.Skip("an emulator runs this, and doesn't start programs of its own kind")
		}
		assert.Contains(t, string(out), "so far so good")
		if reported {
			assert.Error(t, err)
			assert.Contains(t, string(out), "use-after-poison")
			continue
		}
		assert.NoError(t, err, "%s", out)
	}
}
