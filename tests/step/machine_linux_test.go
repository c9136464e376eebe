package step

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// limited names the limit that a child of TestMachineUnderALimit sets for itself.
const limited = "UPFRONT_STEP_LIMITED"

// TestMachineUnderALimit runs itself as a child under each limit. The child skips there, and fails
// with REQUIRE_ALL. The control: it passes without the limit.
func TestMachineUnderALimit(t *testing.T) {
	if name := os.Getenv(limited); name != "" {
		limitedChild(t, name)
		return
	}
	run := func(name string, attr *syscall.SysProcAttr, env ...string) (text string, err error) {
		child := exec.Command(os.Args[0], "-test.run=^TestMachineUnderALimit$", "-test.v")
		child.Env = append(append(os.Environ(), "REQUIRE_ALL=", limited+"="+name), env...)
		child.SysProcAttr = attr
		out, err := child.CombinedOutput()
		return string(out), err
	}
	text, err := run("none", nil)
	require.NoError(t, err, text)
	require.Contains(t, text, "--- PASS")
	for name, lack := range map[string]string{
		"files":     "not proven here: the test needs 64 open files, and the limit (RLIMIT_NOFILE) is 63",
		"addresses": "not proven here: the test needs 8589934592 bytes of addresses, and the limit (RLIMIT_AS) of ",
		"lock": "not proven here: the test needs 65536 bytes of locked memory, and the limit (RLIMIT_MEMLOCK) " +
			"is 0 without CAP_IPC_LOCK: ",
		"loopback": "not proven here: the test needs the loopback network: ",
	} {
		t.Run(name, func(t *testing.T) {
			var attr *syscall.SysProcAttr
			if name == "loopback" {
				attr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET}
			}
			text, err := run(name, attr)
			if attr != nil && text == "" {
				t.Skip("with the right to make a network namespace, go test ./tests/step runs it:", err)
			}
			require.NoError(t, err, text)
			assert.Contains(t, text, "--- SKIP")
			assert.Contains(t, text, lack)
			text, err = run(name, attr, "REQUIRE_ALL=1")
			assert.Error(t, err)
			assert.Contains(t, text, "REQUIRE_ALL is set, and the test needs ")
		})
	}
}

func limitedChild(t *testing.T, name string) {
	set := func(resource int, limit uint64) {
		require.NoError(t, unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}))
	}
	switch name {
	case "none":
		Machine(t, Files(2), Addresses(1<<20))
		return
	case "files":
		set(unix.RLIMIT_NOFILE, 63)
		Machine(t, Files(64))
	case "addresses":
		if limit, ok := soft(unix.RLIMIT_AS); !ok || limit > 8<<30 {
			set(unix.RLIMIT_AS, 8<<30)
		}
		Machine(t, Addresses(8<<30))
	case "lock":
		runtime.LockOSThread() // a right belongs to a thread
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		require.NoError(t, unix.Capset(&header, &none[0]))
		set(unix.RLIMIT_MEMLOCK, 0)
		Machine(t, LockedMemory(1<<16))
	case "loopback":
		Machine(t, Loopback())
	}
	t.Fatal("the limit has no effect")
}
