package platform_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

const sharedSize = 2 * edge

var sharedHead = []byte("a pond's head")

func sharedCheck(first []byte, size uint64) error {
	if string(first[1:]) != string(sharedHead[1:]) || size != sharedSize {
		return fmt.Errorf("%d bytes that begin with %q", size, first)
	}
	return nil
}

func shared(t *testing.T, name string) (s *platform.Shared, isNew bool) {
	t.Helper()
	s, isNew, err := platform.OpenShared(name, sharedSize, sharedHead, sharedCheck)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s, isNew
}

// TestShared: a file keeps its bytes, has an identity and one owner, and is new until its first
// bytes change.
func TestShared(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pond")
	s, isNew := shared(t, name)
	require.True(t, isNew)
	require.Len(t, s.Bytes(), sharedSize)
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	id, err := s.Identity()
	require.NoError(t, err)

	_, _, err = platform.OpenShared(name, sharedSize, sharedHead, sharedCheck)
	assert.ErrorIs(t, err, unix.EWOULDBLOCK)
	s.Bytes()[sharedSize-1] = 7
	require.NoError(t, s.Sync())
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	assert.Nil(t, s.Bytes())
	assert.ErrorContains(t, s.Sync(), "BUG")

	s, isNew = shared(t, name)
	assert.True(t, isNew, "its first bytes are the head")
	assert.Equal(t, byte(7), s.Bytes()[sharedSize-1])
	again, _ := s.Identity()
	assert.Equal(t, id, again)
	s.Bytes()[0] = 'A'
	require.NoError(t, s.Close())
	s, isNew = shared(t, name)
	assert.False(t, isNew)
	require.NoError(t, s.Close())

	other, _ := shared(t, name+"2")
	another, _ := other.Identity()
	assert.NotEqual(t, id, another)
}

// TestSharedIsPresent: writes to a file on a tmpfs cause no page fault.
func TestSharedIsPresent(t *testing.T) {
	var fs unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		t.Skip("/dev/shm is no tmpfs: with one, go test ./platform runs it")
	}
	dir, err := os.MkdirTemp("/dev/shm", "upfront-")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	least := uint64(1 << 62) // the process's: other threads fault too
	for i := range 5 {
		s, _, err := platform.OpenShared(filepath.Join(dir, fmt.Sprint(i)), 4*mib, sharedHead, sharedCheck)
		require.NoError(t, err)
		before, _, _ := platform.Faults()
		for at := 0; at < 4*mib; at += 4096 {
			s.Bytes()[at]++
		}
		after, _, _ := platform.Faults()
		least = min(least, after-before)
		require.NoError(t, s.Close())
	}
	assert.Less(t, least, uint64(100), "of 1024 pages")
}

// TestSharedRefuses: a file that isn't of this user only, or has no room, is refused and unchanged.
func TestSharedRefuses(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pond")
	refuses := func(at string, size uint64, texts ...string) {
		t.Helper()
		_, _, err := platform.OpenShared(at, size, sharedHead, sharedCheck)
		for _, text := range texts {
			assert.ErrorContains(t, err, text)
		}
	}
	refuses(filepath.Dir(name), sharedSize, "platform: a shared file of 131072 bytes: ", "is a directory")
	refuses("/dev/null", sharedSize, "/dev/null isn't a regular file: Dcrw-rw-rw-")
	refuses(name, 1<<62, "reserve 4611686018427387904 bytes: the file system has ", " of them free; make it larger")
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Zero(t, info.Size(), "it takes no space")
	require.NoError(t, os.Chmod(name, 0o640))
	refuses(name, sharedSize, "pond has mode 0640, and other users may access it: chmod 0600 it")
	require.NoError(t, os.WriteFile(name+"3", []byte("a frog's head"), 0o600))
	refuses(name+"3", sharedSize, `pond3: 13 bytes that begin with "a frog's head"`)
	for _, size := range []uint64{0, uint64(len(sharedHead)) - 1, 1 << 63} {
		refuses(name+"2", size, "platform: BUG: ")
	}
	assert.NoFileExists(t, name+"2")
}

// TestSharedLimits needs a namespace of its own, for a full and a read-only file system.
func TestSharedLimits(t *testing.T) {
	const inside = "UPFRONT_PLATFORM_MOUNTS"
	if os.Getenv(inside) == "" {
		child := exec.Command(os.Args[0], "-test.run=^TestSharedLimits$", "-test.v")
		child.Env = append(os.Environ(), inside+"=1")
		child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}
		out, err := child.CombinedOutput()
		if len(out) == 0 && err != nil {
			t.Skip("with the right to make a mount namespace, go test ./platform runs it:", err)
		}
		require.NoError(t, err, "%s", out)
		require.NotContains(t, string(out), "--- SKIP", "%s", out)
		return
	}
	dir := t.TempDir()
	require.NoError(t, unix.Mount("small", dir, "tmpfs", 0, "size=64k"))
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	name := filepath.Join(dir, "pond")
	_, _, err := platform.OpenShared(name, sharedSize, sharedHead, sharedCheck)
	assert.ErrorIs(t, err, unix.ENOSPC)
	assert.ErrorContains(t, err, "reserve 131072 bytes: the file system has 65536 bytes, ")
	info, err := os.Stat(name)
	require.NoError(t, err)
	assert.Zero(t, info.Size())
	require.NoError(t, unix.Mount("small", dir, "tmpfs", unix.MS_REMOUNT, "size=256k"))
	s, isNew := shared(t, name)
	assert.True(t, isNew)
	require.NoError(t, s.Close())
	require.NoError(t, unix.Mount("small", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, _, err = platform.OpenShared(name, sharedSize, sharedHead, sharedCheck)
	assert.ErrorIs(t, err, unix.EROFS)
	require.NoError(t, unix.Mount("small", dir, "tmpfs", unix.MS_REMOUNT, "size=256k"))

	require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: edge, Max: edge}))
	_, _, err = platform.OpenShared(name+"2", sharedSize, sharedHead, sharedCheck)
	assert.ErrorIs(t, err, unix.EFBIG)
	assert.ErrorContains(t, err, "131072 bytes, and the limit (RLIMIT_FSIZE) is 65536")
}

// TestSharedIsCut: a file that another process makes shorter is an error, not SIGBUS. The size of a
// memfd that may be sealed can't change.
func TestSharedIsCut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pond")
	s, _ := shared(t, name)
	write := func() error { s.Bytes()[sharedSize-1]++; return nil }
	require.NoError(t, platform.OnLoss(write))
	require.NoError(t, os.Truncate(name, edge))
	err := platform.OnLoss(write)
	assert.ErrorIs(t, err, unix.EIO)
	assert.ErrorContains(t, err, "platform: a mapped file has no page at 0x")
	assert.Zero(t, testing.AllocsPerRun(10, func() { _ = platform.OnLoss(func() error { return nil }) }))
	oops := errors.New("oops")
	assert.Equal(t, oops, platform.OnLoss(func() error { return oops }))
	assert.PanicsWithValue(t, "oops", func() { _ = platform.OnLoss(func() error { panic("oops") }) })

	fd, err := unix.MemfdCreate("pond", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	defer unix.Close(fd)
	s, isNew := shared(t, fmt.Sprintf("/proc/self/fd/%d", fd))
	assert.True(t, isNew)
	for _, size := range []int64{edge, 4 * edge} {
		assert.ErrorIs(t, unix.Ftruncate(fd, size), unix.EPERM)
	}
	require.NoError(t, platform.OnLoss(write))
}

// TestSharedAndChildren: the lock ends with the process that has it, though a program that it
// started goes on.
func TestSharedAndChildren(t *testing.T) {
	const inside = "UPFRONT_PLATFORM_OWNER"
	if name := os.Getenv(inside); name != "" {
		s, _, err := platform.OpenShared(name, sharedSize, sharedHead, sharedCheck)
		require.NoError(t, err)
		heir := exec.Command("sleep", "1000")
		require.NoError(t, heir.Start())
		s.Bytes()[0], s.Bytes()[20] = 9, 9
		fmt.Println("heir", heir.Process.Pid)
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}
	name := filepath.Join(t.TempDir(), "pond")
	owner := exec.Command(os.Args[0], "-test.run=^TestSharedAndChildren$")
	owner.Env = append(os.Environ(), inside+"="+name)
	said, err := owner.StdoutPipe()
	require.NoError(t, err)
	if err := step.Start(owner); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the emulator starts no programs; on a machine of this target, go test ./platform runs it:", err)
	} else {
		require.NoError(t, err)
	}
	var heir int
	_, err = fmt.Fscanf(said, "heir %d", &heir)
	require.NoError(t, err)
	defer func() { _ = unix.Kill(heir, unix.SIGKILL) }()
	assert.ErrorContains(t, owner.Wait(), "killed")
	s, isNew := shared(t, name)
	assert.False(t, isNew)
	assert.Equal(t, byte(9), s.Bytes()[20])
	require.NoError(t, unix.Kill(heir, 0), "it goes on")
	assert.False(t, strings.Contains(mapsOf(t, heir), name))
}

func mapsOf(t *testing.T, process int) string {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", process))
	require.NoError(t, err)
	return string(maps)
}
