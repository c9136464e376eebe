package platform_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

// addressBytes returns the size of the process's address space, which status has in kB. statm
// counts pages, which aren't PageSize under an emulator.
func addressBytes(t testing.TB) int {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "\nVmSize:")
	require.True(t, found)
	var size int
	_, err = fmt.Sscan(rest, &size)
	require.NoError(t, err)
	if strconv.IntSize == 32 && size >= 4*mib {
		t.Skip("under qemu VmSize has all addresses of 32 bits: on a 32-bit machine, go test ./platform runs it")
	}
	return size * kib
}

func TestMissingSeesPagesBeforeAndAfterPrefault(t *testing.T) {
	platform.ForgetSpares()
	const size = 40 * mib // more than one chunk
	r := commit(t, size, 0)
	all := size / os.Getpagesize()
	pages, ok := r.Missing()
	if !ok && os.Getpagesize() > 4*kib {
		t.Skip("the emulator's pages aren't its host's: on a machine of this target, go test ./platform runs it")
	}
	require.True(t, ok)
	if !platform.GoBacked { // the runtime may reuse memory
		assert.Equal(t, all, pages, "control: nothing is present yet")
	}
	contents(r)[17*mib] = 1
	pages, _ = r.Missing()
	assert.Less(t, pages, all, "control: one page was touched")

	granted, err := r.Prefault()
	require.NoError(t, err)
	assert.True(t, granted)
	pages, ok = r.Missing()
	assert.True(t, ok)
	assert.Zero(t, pages)

	before, _, ok := platform.Faults()
	require.True(t, ok)
	for offset := 0; offset < size; offset += os.Getpagesize() {
		contents(r)[offset] = 1
	}
	after, _, _ := platform.Faults()
	if !platform.GoBacked { // the race detector's shadow is larger than the range
		// The runtime has faults of its own, and with -asan so has the shadow, an eighth of the
		// range.
		assert.Less(t, after-before, uint64(all/4), "prefaulted pages cost no fault")
	}

	require.NoError(t, r.Release())
	again := commit(t, size, 0)
	require.Equal(t, r.Base(), again.Base())
	pages, _ = again.Missing()
	if platform.GoBacked {
		assert.Zero(t, pages, "memory stays")
	} else {
		assert.Equal(t, all, pages, "memory was given back")
	}
}

func TestFaultsCountTouchedPages(t *testing.T) {
	if platform.GoBacked {
		t.Skip("with -race the pages are the Go heap's: go test ./platform runs it")
	}
	const size = 8 * mib
	r := commit(t, size, 0)
	// A huge page would be one fault for many pages.
	require.NoError(t, unix.Madvise(contents(r), unix.MADV_NOHUGEPAGE))
	before, _, ok := platform.Faults()
	require.True(t, ok)
	for offset := 0; offset < size; offset += os.Getpagesize() {
		contents(r)[offset] = 1
	}
	after, _, _ := platform.Faults()
	assert.GreaterOrEqual(t, after-before, uint64(size/os.Getpagesize()))
}

func TestAddressSpaceStaysFlat(t *testing.T) {
	platform.ForgetSpares()
	const slack = 256 * mib // the Go heap grows by 64 MiB at a time
	size, rounds := uint64(16*mib), 10_000
	if platform.GoBacked { // every round clears every byte
		size, rounds = 8*mib, 200
	}
	open := func(size uint64) *platform.Reservation {
		r, err := platform.Reserve(0, size, platform.Head{Size: edge})
		require.NoError(t, err)
		require.NoError(t, r.Commit())
		contents(r)[0]++
		return r
	}
	require.NoError(t, open(size).Release())
	before := addressBytes(t)
	for i := range rounds {
		require.NoError(t, open(size-uint64(i%3)*mib).Release())
	}
	assert.Less(t, addressBytes(t)-before, slack, "%d times %d bytes", rounds, size)

	if platform.GoBacked {
		return // the Go heap keeps spare addresses
	}
	before = addressBytes(t)
	var held []*platform.Reservation
	for range 32 {
		held = append(held, open(2*size))
	}
	assert.GreaterOrEqual(t, addressBytes(t)-before, 20*int(size), "control: ranges that are held do count")
	for _, r := range held {
		require.NoError(t, r.Release())
	}
}

func TestGoroutinesShareTheList(t *testing.T) {
	var owners sync.Map
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				r, err := platform.Reserve(0, 5*edge, platform.Head{Size: edge})
				if !assert.NoError(t, err) || !assert.NoError(t, r.Commit()) {
					return
				}
				_, taken := owners.LoadOrStore(r.Base(), true)
				assert.False(t, taken, "two owners")
				contents(r)[2*edge] = 1
				owners.Delete(r.Base())
				assert.NoError(t, r.Release())
			}
		})
	}
	group.Wait()
}

func TestCommitMayBeRefused(t *testing.T) {
	if platform.GoBacked || strconv.IntSize < 64 {
		t.Skip("needs more addresses than memory: on a 64-bit machine, go test ./platform runs it")
	}
	var info unix.Sysinfo_t
	require.NoError(t, unix.Sysinfo(&info))
	memory := (uint64(info.Totalram) + uint64(info.Totalswap)) * uint64(info.Unit)
	r, err := platform.Reserve(0, 2*memory&^(edge-1), platform.Head{})
	if err != nil {
		t.Skip("ulimit -v leaves less than twice the memory; without it, go test ./platform runs it:", err)
	}
	defer r.Release()
	if err := r.Commit(); err != nil { // a system that overcommits grants it
		assert.ErrorIs(t, err, unix.ENOMEM)
		assert.ErrorContains(t, err, fmt.Sprintf("platform: commit %d bytes: ", r.Size()))
	}
}

func TestLockedPagesAreGivenBack(t *testing.T) {
	platform.ForgetSpares()
	if platform.GoBacked {
		t.Skip("with -race the pages are the Go heap's: go test ./platform runs it")
	}
	step.Machine(t, step.LockedMemory(4*edge))
	r := commit(t, 4*edge, 0)
	require.NoError(t, unix.Mlock(contents(r)))
	contents(r)[0] = 1
	require.NoError(t, r.Release())
	again := commit(t, 4*edge, 0)
	require.Equal(t, r.Base(), again.Base())
	assert.Zero(t, contents(again)[0])
}

func TestMeasuringAllocatesNothing(t *testing.T) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "-asan" || setting.Key == "-gcflags" {
				t.Skip("with this flag pointers escape to the Go heap; go test ./platform runs it:", setting)
			}
		}
	}
	r := commit(t, 20*mib, 0)
	assert.Zero(t, testing.AllocsPerRun(20, func() { r.Missing() }))
	assert.Zero(t, testing.AllocsPerRun(20, func() { platform.Faults() }))
}

func TestResidentPeak(t *testing.T) {
	before, ok := platform.ResidentPeak()
	require.True(t, ok)
	const size = 256 * mib
	r := commit(t, size, 0)
	granted, err := r.Prefault()
	require.NoError(t, err)
	require.True(t, granted)
	after, ok := platform.ResidentPeak()
	require.True(t, ok)
	assert.GreaterOrEqual(t, after, uint64(size))
	assert.GreaterOrEqual(t, after, before)
}

func BenchmarkPrefault(b *testing.B) {
	const size = 256 * mib
	b.SetBytes(size)
	for b.Loop() {
		r := commit(b, size, 0)
		_, err := r.Prefault()
		require.NoError(b, err)
		require.NoError(b, r.Release())
	}
}

func BenchmarkReserveRelease(b *testing.B) {
	for b.Loop() {
		r, err := platform.Reserve(0, 64*mib, platform.Head{Size: edge})
		if err != nil || r.Commit() != nil || r.Release() != nil {
			b.Fatal(err)
		}
	}
}
