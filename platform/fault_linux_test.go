package platform_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

// life takes a range through all its methods and releases it, with or without a fault.
func life(size uint64) (err error) {
	r, err := platform.Reserve(0, size, platform.Head{Size: edge})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Release()) }()
	if err := r.Commit(); err != nil {
		return err
	}
	if !platform.GoBacked {
		if err := r.HugePages(); err != nil && errors.Is(err, syscall.ENOMEM) {
			return err
		}
	}
	if _, err := r.Prefault(); err != nil {
		return err
	}
	if limit, unlimited := platform.LockLimit(); !platform.GoBacked && (unlimited || limit >= 2*size) {
		if err := r.Lock(); err != nil && errors.Is(err, syscall.ENOMEM) {
			return err
		}
	}
	contents(r)[0], contents(r)[edge] = 1, 1
	k, err := platform.Track(r.Base(), size)
	if err == nil {
		defer func() { err = errors.Join(err, k.Close()) }()
	} else if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := r.Protect(2*edge, edge); err != nil {
		return err
	}
	if err := r.Unprotect(2*edge, edge); err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("life", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	s, _, err := platform.OpenShared(fmt.Sprintf("/proc/self/fd/%d", fd), edge, []byte("pond"), nil)
	if err != nil {
		return err
	}
	return s.Close()
}

func TestEachFaultIsNamedAndLeavesNothing(t *testing.T) {
	const size = 4 * mib
	texts := map[string][]string{
		"map": {"platform: reserve 4194304 bytes: injected fault: ", "map 65536 bytes: injected fault: "},
		"protect": {"platform: commit 4194304 bytes: ", "platform: protect 65536 bytes at offset 131072: ",
			"platform: unprotect 65536 bytes at offset 131072: ",
			"platform: release 4194304 bytes: take access away: "},
		"populate": {"platform: prefault 4194304 bytes: injected fault: ", "reserve 65536 bytes: the file system has "},
		"discard":  {"platform: release 4194304 bytes: give memory back: injected fault: "},
		"lock":     {"platform: lock 4194304 bytes: injected fault: "},
		"unlock":   {"platform: release 4194304 bytes: unlock: injected fault: "},
		"advise": {"platform: huge pages for 4194304 bytes: injected fault: ",
			"platform: release 4194304 bytes: withdraw huge pages: injected fault: "},
		"track":    {"platform: track 4194304 bytes: injected fault: "},
		"allocate": {"platform: a shared file of 65536 bytes: /proc/self/fd/"},
	}
	for _, name := range platform.InjectableFaults {
		n := 1
		for ; n < 20; n++ {
			platform.ForgetSpares()
			restore := platform.InjectFault(name, n)
			err := life(size)
			if !restore() {
				assert.NoError(t, err, "%s %d", name, n)
				break
			}
			if assert.ErrorContains(t, err, "injected fault", "%s %d", name, n) {
				assert.Contains(t, err.Error(), texts[name][min(n, len(texts[name]))-1], "%s %d", name, n)
			}
			assert.ErrorIs(t, err, syscall.ENOMEM)
			assert.NoError(t, life(size), "after %s %d", name, n)
			if !platform.GoBacked { // the Go heap keeps spare addresses
				staysFlat(t, name, n, func() { _ = life(size) })
			}
		}
		t.Logf("%s: %d ways to fail", name, n-1)
		assert.Less(t, n, 20, name)
	}
}

// staysFlat runs f with the fault so often that a loss of 4 MiB each time would show. The Go heap
// grows too, by up to some 64 MiB at once, but not each time.
func staysFlat(t *testing.T, name string, n int, f func()) {
	var grown int
	for range 3 {
		before := addressBytes(t)
		for range 40 {
			restore := platform.InjectFault(name, n)
			f()
			restore()
		}
		if grown = addressBytes(t) - before; grown < 64*mib {
			return
		}
	}
	assert.Fail(t, "addresses are lost", "%s %d: %d bytes", name, n, grown)
}

func TestFaultsAreCounted(t *testing.T) {
	second := platform.InjectFault("protect", 2)
	third := platform.InjectFault("protect", 3)
	populate := platform.InjectFault("populate", 1)
	r := reserve(t, edge, 0)
	assert.NoError(t, r.Commit())
	assert.EqualError(t, r.Commit(), "platform: commit 65536 bytes: injected fault: cannot allocate memory")
	assert.Error(t, r.Commit())
	assert.NoError(t, r.Commit(), "once each")
	assert.True(t, second())
	assert.True(t, third())
	assert.False(t, populate())
	granted, err := r.Prefault()
	assert.NoError(t, err, "taken away before it struck")
	assert.True(t, granted)
	for _, misuse := range []func(){
		func() { platform.InjectFault("protect", 0) },
		func() { platform.InjectFault("mmap", 1) },
	} {
		assert.Panics(t, misuse)
	}
	assert.PanicsWithValue(t, `platform: BUG: inject fault 1 of "mmap": the names are `+
		`["map" "protect" "populate" "discard" "lock" "unlock" "advise" "track" "allocate"], and counting starts at 1`,
		func() { platform.InjectFault("mmap", 1) })
}

// TestWhatReleaseCouldNotDo checks that Reserve completes a release that failed, so that the next
// owner finds zeros.
func TestWhatReleaseCouldNotDo(t *testing.T) {
	for name, what := range map[string]string{"protect": "take access away", "discard": "give memory back"} {
		platform.ForgetSpares()
		r := commit(t, 4*edge, edge)
		contents(r)[0], contents(r)[2*edge] = 7, 8
		restore := platform.InjectFault(name, 1)
		assert.EqualError(t, r.Release(), "platform: release 262144 bytes: "+what+
			": injected fault: cannot allocate memory")
		assert.True(t, restore())
		assert.EqualError(t, r.Release(), "platform: BUG: release of a range already released")

		restore = platform.InjectFault(name, 1)
		other := commit(t, 4*edge, edge)
		assert.True(t, restore(), name)
		assert.NotEqual(t, r.Base(), other.Base(), "it cannot be cleaned now, and another is found")
		again := commit(t, 4*edge, edge)
		require.Equal(t, r.Base(), again.Base())
		assert.Equal(t, byte(7), contents(again)[0], "the head")
		assert.Zero(t, contents(again)[2*edge])
		require.NoError(t, again.Release())
		assert.Equal(t, platform.GoBacked, readable(again, 2*edge))
	}
}

func TestALockThatCannotBeTakenBack(t *testing.T) {
	if platform.GoBacked {
		t.Skip("with -race nothing is locked: go test ./platform runs it")
	}
	step.Machine(t, step.LockedMemory(mib))
	platform.ForgetSpares()
	before := statusBytes(t, "VmLck")
	r := commit(t, 4*edge, edge)
	require.NoError(t, r.Lock())
	lock, unlock := platform.InjectFault("lock", 1), platform.InjectFault("unlock", 1)
	err := r.Lock()
	assert.True(t, lock())
	assert.True(t, unlock())
	assert.EqualError(t, err, "platform: lock 262144 bytes: injected fault: cannot allocate memory\n"+
		"unlock the pages locked so far: injected fault: cannot allocate memory")
	assert.Equal(t, 4*edge, statusBytes(t, "VmLck")-before)

	unlock = platform.InjectFault("unlock", 1)
	assert.Error(t, r.Release())
	assert.True(t, unlock())
	// Discarding the memory unlocks it; only the head stays locked.
	assert.Equal(t, edge, statusBytes(t, "VmLck")-before)
	again := commit(t, 4*edge, edge)
	require.Equal(t, r.Base(), again.Base())
	assert.Equal(t, before, statusBytes(t, "VmLck"))
}
