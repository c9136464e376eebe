package platform_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

// taken counts the GiB above the safe base that tests use.
var taken atomic.Uintptr

// safe returns an address above the safe base that no test has used: the process keeps a range that
// a test released.
func safe(t *testing.T) uintptr {
	if platform.GoBacked {
		t.Skip("with -race the Go heap chooses the address: go test ./platform runs it")
	}
	if platform.SafeBase() == 0 {
		t.Skip("this target has no safe base: on linux/amd64 and linux/arm64, go test ./platform runs it")
	}
	return platform.SafeBase() + taken.Add(1)<<30
}

func reserveAt(t testing.TB, base uintptr, size, head uint64) *platform.Reservation {
	r, err := platform.Reserve(base, size, platform.Head{Size: head})
	require.NoError(t, err)
	require.Equal(t, base, uintptr(r.Base()))
	t.Cleanup(func() { _ = r.Release() })
	return r
}

func TestSafeBaseIsFree(t *testing.T) {
	safe(t) // or skip
	const free uint64 = 64 << 30
	step.Machine(t, step.Addresses(free+1<<30))
	base := platform.SafeBase()
	if !inChild(t) {
		for range 19 { // the layout is random
			inChild(t)
		}
		return
	}
	r := reserveAt(t, base, free, edge)
	assert.Zero(t, uint64(base)%free, "a round number")
	assert.False(t, readable(r, 0))
	contents := make([][]byte, 64) // the Go heap finds other places
	for i := range contents {
		contents[i] = make([]byte, 8*mib)
		first := uintptr(unsafe.Pointer(&contents[i][0]))
		assert.False(t, first >= base && uint64(first-base) < free)
	}
	runtime.KeepAlive(contents)
}

func TestWhereNoBaseCanBeChosen(t *testing.T) {
	if platform.GoBacked {
		assert.Zero(t, platform.SafeBase())
		_, err := platform.Reserve(1<<30, edge, platform.Head{})
		assert.ErrorIs(t, err, errors.ErrUnsupported)
		assert.EqualError(t, err, "platform: reserve 65536 bytes at 0x40000000: unsupported operation: "+
			"in a race build the memory is the Go heap's")
		return
	}
	if runtime.GOARCH == "amd64" {
		assert.Equal(t, uint64(0x4800_0000_0000), uint64(platform.SafeBase()))
	}
}

func TestReserveAtABase(t *testing.T) {
	base := safe(t)
	r := reserveAt(t, base, 4*edge, edge)
	assert.EqualValues(t, 4*edge, r.Size())
	assert.False(t, readable(r, 0), "before Commit")
	require.NoError(t, r.Commit())
	contents(r)[0], contents(r)[4*edge-1] = 1, 2
	granted, err := r.Prefault()
	require.NoError(t, err)
	assert.True(t, granted)

	for _, c := range []struct {
		base uintptr
		size uint64
	}{{base, 4 * edge}, {base + edge, edge}, {base - edge, 2 * edge}, {base + 3*edge, 5 * edge}} {
		_, err := platform.Reserve(c.base, c.size, platform.Head{})
		require.ErrorIs(t, err, unix.EEXIST)
		assert.Regexp(t, fmt.Sprintf(`^platform: reserve %d bytes at %#x: file exists: /proc/self/maps has `+
			`"%x-[0-9a-f]+ rw-p 00000000 00:00 0.*" there$`, c.size, c.base, base), err.Error())
	}
	assert.Equal(t, byte(1), contents(r)[0], "nothing has moved")
	below := reserveAt(t, base-edge, edge, 0)
	above := reserveAt(t, base+4*edge, edge, 0)
	require.NoError(t, below.Release())
	require.NoError(t, above.Release())
}

func TestAKeptRangeIsTakenOver(t *testing.T) {
	platform.ForgetSpares()
	base := safe(t)
	r := reserveAt(t, base, 4*edge, edge)
	require.NoError(t, r.Commit())
	contents(r)[0], contents(r)[edge] = 1, 2
	require.NoError(t, r.Release())

	stranger := commit(t, edge, edge)
	assert.NotEqual(t, r.Base(), stranger.Base(), "it waits for those who say where")
	for _, c := range []struct {
		base       uintptr
		size, head uint64
	}{{base, 5 * edge, edge}, {base, 4 * edge, 0}, {base, 4 * edge, 2 * edge}, {base + edge, edge, edge},
		{base - edge, 2 * edge, edge}} {
		_, err := platform.Reserve(c.base, c.size, platform.Head{Size: c.head})
		require.ErrorIs(t, err, unix.EEXIST)
		assert.EqualError(t, err, fmt.Sprintf("platform: reserve %d bytes at %#x: file exists: base %#x is kept for "+
			"reuse by a range of at most 262144 bytes with the same head of 65536; choose another base", c.size,
			c.base, base))
	}
	assert.False(t, platform.Keeps(0, edge, platform.Head{Size: edge}))
	assert.True(t, platform.Keeps(base, 3*edge, platform.Head{Size: edge}))
	again := reserveAt(t, base, 3*edge, edge)
	require.NoError(t, again.Commit())
	assert.Equal(t, byte(1), contents(again)[0], "the head")
	assert.Zero(t, contents(again)[edge])
	require.NoError(t, again.Release())
	require.NoError(t, reserveAt(t, base, 4*edge, edge).Release(), "the whole is still there")
}

func TestARangeOfReserveMayBeTakenAt(t *testing.T) {
	if platform.GoBacked {
		t.Skip("with -race the Go heap chooses the address: go test ./platform runs it")
	}
	platform.ForgetSpares()
	r := commit(t, 4*edge, 0)
	base := uintptr(r.Base())
	require.NoError(t, r.Release())
	at := reserveAt(t, base, 2*edge, edge)
	require.NoError(t, at.Commit())
	require.NoError(t, at.Release())
}

func TestOpenAndCloseAtABaseStaysFlat(t *testing.T) {
	base := safe(t)
	const size, slack = 16 * mib, 256 * mib
	before := addressBytes(t)
	for i := range 10_000 {
		r, err := platform.Reserve(base, size-uint64(max(0, i%3-1))*mib, platform.Head{Size: edge})
		require.NoError(t, err)
		require.NoError(t, r.Commit())
		assert.Equal(t, byte(i), contents(r)[0], "the head counts on")
		contents(r)[0]++
		contents(r)[8*mib] = 1
		require.NoError(t, r.Release())
	}
	assert.Less(t, addressBytes(t)-before, slack)
}

func TestFaultsAtABaseLeaveNothing(t *testing.T) {
	base := safe(t)
	platform.ForgetSpares()
	restore := platform.InjectFault("map", 1)
	_, err := platform.Reserve(base, 4*edge, platform.Head{Size: edge})
	assert.True(t, restore())
	assert.EqualError(t, err, fmt.Sprintf("platform: reserve 262144 bytes at %#x: injected fault: cannot allocate "+
		"memory", base))

	r := reserveAt(t, base, 4*edge, edge)
	require.NoError(t, r.Commit())
	contents(r)[0], contents(r)[edge] = 1, 2
	restore = platform.InjectFault("discard", 1)
	assert.Error(t, r.Release())
	assert.True(t, restore())
	restore = platform.InjectFault("discard", 1)
	_, err = platform.Reserve(base, 4*edge, platform.Head{Size: edge})
	assert.True(t, restore())
	assert.EqualError(t, err, fmt.Sprintf("platform: reserve 262144 bytes at %#x: give memory back: "+
		"injected fault: cannot allocate memory", base), "what Release could not do has to be done first")
	again := reserveAt(t, base, 4*edge, edge)
	require.NoError(t, again.Commit())
	assert.Equal(t, byte(1), contents(again)[0])
	assert.Zero(t, contents(again)[edge])
	require.NoError(t, again.Release())
}

func TestABaseMisused(t *testing.T) {
	const high = 1 << 30
	for _, c := range []struct {
		base       uintptr
		size, head uint64
		text       string
	}{
		{high + 4096, edge, 0, "platform: BUG: reserve 65536 bytes at 0x40001000: the base is not a multiple of " +
			"65536 bytes"},
		{high, 0, 0, "platform: BUG: reserve 0 bytes at 0x40000000: not a multiple of the page, "},
		{high, 1, 0, "platform: BUG: reserve 1 bytes at 0x40000000: not a multiple of the page, "},
		{high, edge, 1, "platform: BUG: reserve 65536 bytes at 0x40000000: head 1 is not a multiple of the page, "},
		{high, edge, 2 * edge, "platform: BUG: reserve 65536 bytes at 0x40000000: head 131072 is not a multiple of " +
			"the page, "},
		{high, math.MaxUint64 &^ (edge - 1), 0,
			"platform: reserve 18446744073709486080 bytes at 0x40000000: beyond this target's"},
		{^uintptr(0) &^ (edge - 1), edge, 0, "beyond this target's address space"},
	} {
		_, err := platform.Reserve(c.base, c.size, platform.Head{Size: c.head})
		assert.ErrorContains(t, err, c.text)
	}
	if !platform.GoBacked && strconv.IntSize == 64 {
		// This is above the user's half of the addresses.
		_, err := platform.Reserve(^uintptr(0)>>1&^(edge-1), edge, platform.Head{})
		assert.ErrorContains(t, err, "platform: reserve 65536 bytes at 0x7fff")
	}
}

// TestTheGoHeapIsRefused reserves at addresses of the Go heap: the collector must never see them as
// a pointer.
func TestTheGoHeapIsRefused(t *testing.T) {
	if platform.GoBacked || strconv.IntSize < 64 {
		t.Skip("race and 32-bit builds have other arenas: on linux/amd64, go test ./platform runs it")
	}
	const arena = 64 * mib // the runtime's unit
	object := make([]byte, mib)
	base := uintptr(unsafe.Pointer(&object[0])) &^ (arena - 1)
	for offset := uintptr(0); offset < arena; offset += mib {
		_, err := platform.Reserve(base+offset, edge, platform.Head{})
		require.ErrorIs(t, err, unix.EEXIST)
		if offset%(8*mib) == 0 {
			runtime.GC()
		}
	}
	runtime.KeepAlive(object)
}
