//go:build !race

package platform

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const mapsText = `00400000-004ab000 r-xp 00000000 fe:00 9999470                            /usr/bin/server with blanks
1ce2d0000000-1ce2d2400000 ---p 00000000 00:00 0
7fff0df24000-7fff0df45000 rw-p 00000000 00:00 0                          [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
`

func TestCollision(t *testing.T) {
	for _, c := range []struct {
		first, end uint64
		line       string
	}{
		{0, 0x400000, ""},
		{0, 0x400001, "00400000-004ab000 r-xp 00000000 fe:00 9999470 /usr/bin/server with blanks"},
		{0x4aa000, 0x4ab000, "00400000-004ab000 r-xp 00000000 fe:00 9999470 /usr/bin/server with blanks"},
		{0x4ab000, 0x4ac000, ""},
		{0x1ce2d1000000, 0x1ce2d1000001, "1ce2d0000000-1ce2d2400000 ---p 00000000 00:00 0"},
		{0x500000, 0xffffffffffff0000, "1ce2d0000000-1ce2d2400000 ---p 00000000 00:00 0"},
		{0x7fff0df45000, 0x7fff0df46000, ""},
		{0xffffffffff600000, 0xffffffffff600001, "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]"},
	} {
		line, found := collision([]byte(mapsText), c.first, c.end)
		assert.Equal(t, c.line, line, "%#x-%#x", c.first, c.end)
		assert.Equal(t, c.line != "", found)
	}
	for _, garbage := range []string{"", "\n\n", "- ", "0-", "-ffff r", "0 ffff", "0x0-0xffff r",
		"fffffffffffffffffff-0 r", "é-è"} {
		_, found := collision([]byte(garbage), 0, 1<<40)
		assert.False(t, found, garbage)
	}
}

func FuzzCollision(f *testing.F) {
	f.Add([]byte(mapsText), uint64(0x400000), uint64(0x1000))
	f.Fuzz(func(t *testing.T, maps []byte, first, size uint64) {
		line, found := collision(maps, first, first+size)
		assert.Equal(t, found, strings.Contains(line, "-"))
	})
}

// TestTheSystemDecides skips the look into /proc, because the process may map a range after it.
// Where MAP_FIXED_NOREPLACE is a mere hint, the system returns another range, which must be
// unmapped.
func TestTheSystemDecides(t *testing.T) {
	const size = 64 << 20
	ForgetSpares()
	r, err := Reserve(0, size, Head{})
	require.NoError(t, err)
	require.NoError(t, r.Commit())
	*(*byte)(r.Base()) = 7
	address := uintptr(r.Base())
	addresses := func() uint64 {
		bytes, ok := system.kilobytes("proc/self/status", "VmSize:")
		require.True(t, ok)
		return bytes
	}
	before := addresses()
	for range 100 {
		_, err = mapExactly(address, size)
		require.ErrorIs(t, err, unix.EEXIST)
	}
	assert.Less(t, addresses(), before+10*size)
	assert.Equal(t, byte(7), *(*byte)(r.Base()))

	_, err = Reserve(address, size, Head{})
	assert.ErrorContains(t, err, "/proc/self/maps has ")
	require.NoError(t, r.Release())
	ForgetSpares()
}

func TestSafeBasePerTarget(t *testing.T) {
	for _, c := range []struct {
		processor string
		bits      int
		base      uint64
	}{
		{"amd64", 47, 0x4800_0000_0000}, {"arm64", 48, 0x9000_0000_0000}, {"arm64", 39, 0x20_0000_0000},
		{"arm64", 42, 0}, {"arm64", 0, 0}, {"386", 32, 0}, {"arm", 32, 0}, {"riscv64", 39, 0},
	} {
		base := safeBase(c.processor, c.bits)
		assert.Equal(t, c.base, base, "%+v", c)
		assert.Zero(t, base%(64<<30), "%+v", c)
	}
}
