//go:build linux || darwin || windows || race

package platform_test

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

const (
	kib  = 1 << 10
	mib  = 1 << 20
	edge = 64 * kib // a multiple of every page
)

// reserve returns a range that the end of the test releases, unless the test did.
func reserve(t testing.TB, size, head uint64) *platform.Reservation {
	r, err := platform.Reserve(0, size, platform.Head{Size: head})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Release() })
	return r
}

func commit(t testing.TB, size, head uint64) *platform.Reservation {
	r := reserve(t, size, head)
	require.NoError(t, r.Commit())
	return r
}

func contents(r *platform.Reservation) []byte {
	return unsafe.Slice((*byte)(r.Base()), r.Size())
}

var sink byte

func faults(f func()) (faulted bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			if _, ok := cause.(runtime.Error); !ok {
				panic(cause)
			}
			faulted = true
		}
	}()
	f()
	return false
}

func readable(r *platform.Reservation, offset uint64) bool {
	return !faults(func() { sink = contents(r)[offset] })
}

func writable(r *platform.Reservation, offset uint64) bool {
	return !faults(func() { contents(r)[offset] = same(contents(r)[offset]) })
}

// same hides from the compiler that b is written back unchanged.
//
//go:noinline
func same(b byte) byte { return b }

func TestPageSize(t *testing.T) {
	page := os.Getpagesize()
	assert.Positive(t, page)
	assert.Zero(t, page&(page-1), "a power of two")
	assert.Zero(t, edge%page, "edges of 64 KiB are edges of pages")
}

func TestRangeIsAlignedZeroAndWritable(t *testing.T) {
	for _, size := range []uint64{edge, 3 * edge, mib, 65 * mib} {
		r, err := platform.Reserve(0, size, platform.Head{})
		require.NoError(t, err)
		assert.Zero(t, uint64(uintptr(r.Base()))%platform.Align)
		assert.Equal(t, size, r.Size())
		require.NoError(t, r.Commit())
		for i, b := range contents(r) {
			if b != 0 {
				require.Failf(t, "not zero", "byte %d is %d", i, b)
			}
		}
		contents(r)[0], contents(r)[size-1] = 1, 2
		assert.NoError(t, r.Release())
	}
}

func TestNoAccessBeforeCommitAndAfterRelease(t *testing.T) {
	r := reserve(t, 4*edge, edge)
	assert.Equal(t, platform.GoBacked, readable(r, 2*edge), "before Commit")
	assert.Equal(t, platform.GoBacked, writable(r, 2*edge), "before Commit")
	require.NoError(t, r.Commit())
	assert.True(t, readable(r, 2*edge), "control: committed")
	assert.True(t, writable(r, 2*edge), "control: committed")
	require.NoError(t, r.Release())
	assert.Equal(t, platform.GoBacked, readable(r, edge), "after Release")
	assert.True(t, readable(r, edge-1), "the head")
	assert.True(t, writable(r, edge-1), "the head")
}

func TestProtectTakesAccessAndKeepsContents(t *testing.T) {
	r := commit(t, 4*edge, 0)
	contents(r)[edge] = 42
	require.NoError(t, r.Protect(edge, edge))
	assert.True(t, writable(r, edge-1), "below")
	assert.Equal(t, platform.GoBacked, readable(r, edge), "first byte")
	assert.Equal(t, platform.GoBacked, readable(r, 2*edge-1), "last byte")
	assert.True(t, writable(r, 2*edge), "above")
	require.NoError(t, r.Unprotect(edge, edge))
	assert.True(t, writable(r, edge))
	assert.Equal(t, byte(42), contents(r)[edge])

	require.NoError(t, r.Protect(0, r.Size()))
	require.NoError(t, r.Commit(), "Commit lifts every protection")
	assert.Equal(t, byte(42), contents(r)[edge])
}

// TestReadOfProtectedPage is the control for tests that rely on a fault: without a handler it ends
// the process.
func TestReadOfProtectedPage(t *testing.T) {
	const victim = "UPFRONT_PLATFORM_READ"
	if offset := os.Getenv(victim); offset != "" {
		r := commit(t, 2*edge, 0)
		require.NoError(t, r.Protect(edge, edge))
		if offset == "protected" {
			sink = contents(r)[edge]
		} else {
			sink = contents(r)[edge-1]
		}
		return
	}
	run := func(offset string) (string, error) {
		command := exec.Command(os.Args[0], "-test.run=^TestReadOfProtectedPage$")
		command.Env = append(os.Environ(), victim+"="+offset)
		output, err := command.CombinedOutput()
		return string(output), err
	}
	output, err := run("beside")
	if errors.Is(err, syscall.ENOEXEC) {
		t.Skip("the emulator starts no programs; on a machine of this target, go test ./platform runs it:", err)
	}
	assert.NoError(t, err, "control: the page beside is fine\n%s", output)
	output, err = run("protected")
	if platform.GoBacked {
		assert.NoError(t, err, "Protect does nothing here\n%s", output)
		return
	}
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Contains(t, output, "fault")
}

func TestPrefaultKeepsContents(t *testing.T) {
	r := commit(t, mib, 0)
	for i := range contents(r) {
		contents(r)[i] = byte(i * 7)
	}
	granted, err := r.Prefault()
	require.NoError(t, err)
	assert.True(t, granted)
	for i, b := range contents(r) {
		if b != byte(i*7) {
			require.Failf(t, "contents changed", "byte %d", i)
		}
	}
}

func TestTakenAgain(t *testing.T) {
	platform.ForgetSpares()
	const size, head = 7 * mib, 2 * edge // of the class of 8 MiB
	r := commit(t, size, head)
	first := r.Base()
	for i := range contents(r) {
		contents(r)[i] = byte(i) | 1
	}
	require.NoError(t, r.Release())

	other := commit(t, size, edge)
	assert.NotEqual(t, first, other.Base(), "another head: a stale handle would take objects for tables")
	none := commit(t, size, 0)
	assert.NotEqual(t, first, none.Base(), "no head: the same")
	assert.False(t, platform.Keeps(0, 9*mib, platform.Head{Size: head}), "too large")
	assert.False(t, platform.Keeps(0, 4*mib, platform.Head{Size: head}), "it is for larger ones")
	assert.True(t, platform.Keeps(0, size, platform.Head{Size: head}))
	smaller := commit(t, size-edge, head)
	assert.False(t, platform.Keeps(0, edge, platform.Head{Size: head}))
	require.Equal(t, first, smaller.Base(), "it fits")
	assert.EqualValues(t, size-edge, smaller.Size())
	for i, b := range contents(smaller) {
		want := byte(0)
		if i < head {
			want = byte(i) | 1
		}
		if b != want {
			require.Failf(t, "contents", "byte %d is %d, want %d", i, b, want)
		}
	}
	assert.True(t, writable(smaller, 0))
	assert.True(t, writable(smaller, size-edge-1))
	assert.Equal(t, platform.GoBacked, !faults(func() { sink = *(*byte)(unsafe.Add(first, size-edge)) }),
		"not asked for")

	contents(smaller)[0] = 99
	require.NoError(t, smaller.Release())
	again := commit(t, size, head)
	require.Equal(t, first, again.Base())
	assert.Equal(t, byte(99), contents(again)[0], "the head goes on counting")
	assert.Zero(t, contents(again)[size-1])
}

func TestLockedIsGivenBackEmpty(t *testing.T) {
	platform.ForgetSpares()
	r := commit(t, 2*edge, uint64(os.Getpagesize()))
	step.Machine(t, step.LockedMemory(r.Size()))
	if err := r.Lock(); err != nil {
		t.Skip("with the right to lock memory, go test ./platform runs it:", err)
	}
	contents(r)[0], contents(r)[edge] = 1, 1
	require.NoError(t, r.Release())
	again := commit(t, 2*edge, uint64(os.Getpagesize()))
	require.Equal(t, r.Base(), again.Base())
	assert.Equal(t, byte(1), contents(again)[0], "the head")
	assert.Zero(t, contents(again)[edge])
	assert.NoError(t, again.Lock())
}

func TestMisuseIsRefused(t *testing.T) {
	page := uint64(os.Getpagesize())
	for _, c := range []struct {
		size, head uint64
		text       string
	}{
		{0, 0, "reserve 0 bytes: not a multiple of the page"},
		{page + 1, 0, "not a multiple of the page"},
		{edge, 1, "head 1"},
		{edge, 2 * edge, "within the range"},
	} {
		_, err := platform.Reserve(0, c.size, platform.Head{Size: c.head})
		assert.ErrorContains(t, err, "platform: BUG: ")
		assert.ErrorContains(t, err, c.text)
	}

	r := reserve(t, 4*edge, 0)
	_, err := r.Prefault()
	assert.EqualError(t, err, "platform: BUG: prefault before Commit")
	assert.EqualError(t, r.Protect(0, edge), "platform: BUG: protect before Commit")
	require.NoError(t, r.Commit())
	for _, c := range []struct {
		offset, size uint64
		text         string
	}{
		{1, edge, "not multiples of the page"},
		{0, 1, "not multiples of the page"},
		{4 * edge, edge, "beyond the range of 262144 bytes"},
		{edge, 4 * edge, "beyond the range"},
		{edge, math.MaxUint64 - edge + 1, "beyond the range"}, // wraps to 0 when added
	} {
		assert.ErrorContains(t, r.Protect(c.offset, c.size), c.text)
		assert.ErrorContains(t, r.Unprotect(c.offset, c.size), c.text)
	}
	assert.NoError(t, r.Protect(4*edge, 0), "nothing at the end")
	require.NoError(t, r.Protect(0, edge))
	_, err = r.Prefault()
	assert.ErrorContains(t, err, "Commit it first")

	require.NoError(t, r.Release())
	assert.EqualError(t, r.Release(), "platform: BUG: release of a range already released")
	assert.EqualError(t, r.Commit(), "platform: BUG: commit of a range already released")
	assert.EqualError(t, r.Protect(0, edge), "platform: BUG: protect of a range already released")
	assert.EqualError(t, r.Unprotect(0, edge), "platform: BUG: unprotect of a range already released")
	_, err = r.Prefault()
	assert.EqualError(t, err, "platform: BUG: prefault of a range already released")
}

func TestTooMuchIsRefused(t *testing.T) {
	for _, size := range []uint64{1 << 50, math.MaxInt64 &^ (edge - 1), math.MaxUint64 &^ (edge - 1)} {
		_, err := platform.Reserve(0, size, platform.Head{})
		require.Error(t, err, "%d", size)
		assert.Regexp(t, `^platform: reserve \d+ bytes: .+`, err.Error())
		assert.NotContains(t, err.Error(), "BUG")
	}
}

func TestReturnKeepsTheHeadAlone(t *testing.T) {
	platform.ForgetSpares()
	const size, head = 64 * mib, edge
	r := commit(t, size, head)
	first := r.Base()
	contents(r)[0], contents(r)[head] = 7, 8
	require.NoError(t, r.Return())
	assert.ErrorContains(t, r.Return(), "BUG: return of a range already released")
	assert.EqualValues(t, 7, *(*byte)(first), "the head")
	if platform.GoBacked || runtime.GOOS == "windows" {
		t.Skip("Windows and race builds return ranges whole: on Linux, go test ./platform runs it")
	}
	for i := range 3 { // if the addresses are still free, the block grows again
		again := commit(t, size>>i, head)
		assert.Equal(t, first, again.Base())
		assert.EqualValues(t, 7, contents(again)[0])
		assert.Zero(t, contents(again)[head])
		contents(again)[size>>i-1] = 1
		require.NoError(t, again.Return())
	}
	if runtime.GOOS != "linux" {
		return
	}
	between, err := platform.Reserve(uintptr(first)+head, edge, platform.Head{})
	require.NoError(t, err, "the addresses are the system's")
	other := commit(t, size, head)
	assert.NotEqual(t, first, other.Base())
	require.NoError(t, other.Release())
	require.NoError(t, between.Release())

	restore := platform.InjectFault("discard", 2)
	r = commit(t, size, head)
	assert.ErrorContains(t, r.Return(), "platform: return 67108864 bytes: injected fault")
	assert.True(t, restore())
	assert.Equal(t, r.Base(), commit(t, size, head).Base(), "then it is kept as a whole")
}
