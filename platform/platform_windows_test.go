//go:build !race

package platform_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"

	"github.com/upfront-mem/upfront/platform"
)

// wine reports whether the system is Wine, which keeps neither limits of jobs nor a bound of locks.
func wine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

// stateOf returns the state and the access of a page.
func stateOf(t *testing.T, r *platform.Reservation, offset uint64) [2]uint32 {
	t.Helper()
	var info windows.MemoryBasicInformation
	require.NoError(t, windows.VirtualQuery(uintptr(r.Base())+uintptr(offset), &info, unsafe.Sizeof(info)))
	return [2]uint32{info.State, info.Protect}
}

// TestPageStates compares each step with the system's view of the pages.
func TestPageStates(t *testing.T) {
	platform.ForgetSpares()
	var (
		onlyReserved = [2]uint32{windows.MEM_RESERVE, 0}
		inUse        = [2]uint32{windows.MEM_COMMIT, windows.PAGE_READWRITE}
		denied       = [2]uint32{windows.MEM_COMMIT, windows.PAGE_NOACCESS}
	)
	r := reserve(t, 4*edge, edge)
	assert.Equal(t, onlyReserved, stateOf(t, r, 0))
	require.NoError(t, r.Commit())
	assert.Equal(t, inUse, stateOf(t, r, 0))
	assert.Equal(t, inUse, stateOf(t, r, 4*edge-1))
	require.NoError(t, r.Protect(2*edge, edge))
	assert.Equal(t, denied, stateOf(t, r, 2*edge))
	assert.Equal(t, inUse, stateOf(t, r, 3*edge))
	require.NoError(t, r.Unprotect(2*edge, edge))
	contents(r)[2*edge] = 1
	require.NoError(t, r.Discard(2*edge, edge))
	assert.Equal(t, inUse, stateOf(t, r, 2*edge))
	assert.Zero(t, contents(r)[2*edge])
	require.NoError(t, r.Release())
	assert.Equal(t, inUse, stateOf(t, r, edge-1), "the head")
	assert.Equal(t, onlyReserved, stateOf(t, r, edge))
}

// missing returns how many pages of a range aren't in the working set.
func missing(t *testing.T, r *platform.Reservation) (pages int) {
	t.Helper()
	size := os.Getpagesize()
	list := make([]windows.PSAPI_WORKING_SET_EX_INFORMATION, int(r.Size())/size)
	for i := range list {
		list[i].VirtualAddress = windows.Pointer(unsafe.Add(r.Base(), i*size))
	}
	require.NoError(t, windows.QueryWorkingSetEx(windows.CurrentProcess(), uintptr(unsafe.Pointer(&list[0])),
		uint32(len(list))*uint32(unsafe.Sizeof(list[0]))))
	for i := range list {
		if !list[i].VirtualAttributes.Valid() {
			pages++
		}
	}
	return pages
}

func TestPrefaultMakesPresent(t *testing.T) {
	platform.ForgetSpares()
	r := commit(t, mib, 0)
	all := mib / os.Getpagesize()
	assert.Equal(t, all, missing(t, r))
	contents(r)[5*edge] = 1
	assert.Equal(t, all-1, missing(t, r))
	granted, err := r.Prefault()
	require.NoError(t, err)
	assert.True(t, granted)
	assert.Zero(t, missing(t, r))
	require.NoError(t, r.Discard(edge, edge))
	assert.Equal(t, edge/os.Getpagesize(), missing(t, r))
	peak, ok := platform.ResidentPeak()
	assert.True(t, ok)
	assert.Greater(t, peak, uint64(mib))
}

func TestLockMakesPresent(t *testing.T) {
	platform.ForgetSpares()
	r := commit(t, 2*edge, 0)
	require.NoError(t, r.Lock())
	assert.Zero(t, missing(t, r))
	assert.ErrorContains(t, r.Discard(0, edge), "the range is locked")
	require.NoError(t, r.Release())

	if wine() {
		t.Skip("Wine doesn't bound locks: on Windows, go test ./platform runs it")
	}
	err := commit(t, 1<<30, 0).Lock()
	require.ErrorIs(t, err, windows.ERROR_WORKING_SET_QUOTA)
	assert.ErrorContains(t, err, "the minimum working set of this process is ")
}

func TestLargePagesAreRefused(t *testing.T) {
	err := commit(t, 4*mib, 0).HugePages()
	require.ErrorIs(t, err, errors.ErrUnsupported)
	assert.EqualError(t, err, "platform: huge pages for 4194304 bytes: unsupported operation on windows: "+
		"a large page is committed and locked from the start, and needs the right to lock pages")
}

// TestLimits: the limits of the machine, and those of the job that this test puts itself into.
func TestLimits(t *testing.T) {
	names := func() (list []string) {
		for _, limit := range platform.Limits() {
			assert.NotZero(t, limit.Bytes, limit.Name)
			assert.NotEmpty(t, limit.Raise)
			list = append(list, limit.Name)
		}
		return list
	}
	const child = "UPFRONT_PLATFORM_JOB"
	if os.Getenv(child) == "" {
		assert.Subset(t, names(), []string{"commit limit", "physical memory"})
		command := exec.Command(os.Args[0], "-test.run=^TestLimits$", "-test.v")
		command.Env = append(os.Environ(), child+"=1")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return
	}
	job, err := windows.CreateJobObject(nil, nil)
	require.NoError(t, err)
	info := &windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{JobMemoryLimit: 3 << 30, ProcessMemoryLimit: 2 << 30}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_JOB_MEMORY |
		windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(info)), uint32(unsafe.Sizeof(*info)))
	require.NoError(t, err)
	require.NoError(t, windows.AssignProcessToJobObject(job, windows.CurrentProcess()))
	found := names()
	if wine() {
		t.Skip("Wine keeps no memory limit of a job; on Windows, go test ./platform runs it:", found)
	}
	assert.Subset(t, found, []string{"job memory limit", "job process memory limit"})
	for _, limit := range platform.Limits() {
		if limit.Name == "job process memory limit" {
			assert.EqualValues(t, 2<<30, limit.Bytes)
			assert.NotZero(t, limit.Used)
		}
	}
}
