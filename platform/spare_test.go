package platform

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpareTakesBestFit(t *testing.T) {
	ground := make([]byte, 1<<20)
	start := -uint64(uintptr(unsafe.Pointer(&ground[0]))) & (1<<16 - 1)
	at := func(offset uint64) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(&ground[0]), start+offset) }

	var s spares
	s.put(block{base: at(0), size: 900})
	s.put(block{base: at(4096), size: 500, head: Head{Size: 100}})
	s.put(block{base: at(8192), size: 500, head: Head{Size: 100}})
	s.put(block{base: at(12288), size: 700, head: Head{Size: 200}})

	s.put(block{base: at(16384), size: 400, placed: true})
	s.put(block{base: at(20480), size: 400, sparse: true})

	for _, c := range []struct {
		want want
		base unsafe.Pointer // nil: none fits
	}{
		{want{size: 901}, nil},
		{want{size: 400, head: Head{Size: 100}}, at(4096)},  // the smallest, released first
		{want{size: 400, head: Head{Size: 100}}, at(8192)},  // the next
		{want{size: 400, head: Head{Size: 200}}, nil},       // the others are kept for larger sizes
		{want{size: 600, head: Head{Size: 200}}, at(12288)}, // the same head
		{want{size: 600, head: Head{Size: 200}}, at(0)},     // none left: one without a head
		{want{size: 600, head: Head{Size: 200}}, nil},
		{want{size: 400}, nil}, // one waits for its base, the other is sparse
		{want{base: uintptr(at(16384)), size: 400, sparse: true}, nil},
		{want{base: uintptr(at(16384)), size: 300}, at(16384)},
		{want{size: 300, sparse: true}, at(20480)},
	} {
		b, found, _ := s.take(c.want)
		assert.Equal(t, c.base != nil, found, "%+v", c)
		assert.Equal(t, c.base, b.base, "%+v", c)
	}
	assert.Empty(t, s.blocks)
}

// TestSpareNeverSharesABlock compares random owners' blocks with a plain set.
func TestSpareNeverSharesABlock(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ground := make([]byte, 64)
	var s spares
	var owned []block
	for i := range ground {
		s.put(block{base: unsafe.Pointer(&ground[i]), size: uint64(1 + random.IntN(8))})
	}
	for range 2_000 {
		if len(owned) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(owned))
			s.put(owned[i])
			owned = append(owned[:i], owned[i+1:]...)
		} else if b, found, _ := s.take(want{size: uint64(1 + random.IntN(8))}); found {
			owned = append(owned, b)
		}
		seen := map[unsafe.Pointer]bool{}
		for _, b := range append(owned, s.blocks...) {
			require.False(t, seen[b.base])
			seen[b.base] = true
		}
		require.Len(t, seen, len(ground), "none is lost")
	}
}

// TestRangesWhereAddressesAreScarce checks that a new range is as large as requested and serves
// smaller owners later.
func TestRangesWhereAddressesAreScarce(t *testing.T) {
	plenty := host.plenty
	defer func() { host.plenty = plenty }()
	host.plenty = func() bool { return false }
	ForgetSpares()
	const mib = 1 << 20
	r, err := Reserve(0, 7*mib, Head{Size: mib})
	require.NoError(t, err)
	assert.EqualValues(t, 7*mib, r.Addresses())
	require.NoError(t, r.Release())
	assert.True(t, Keeps(0, 5*mib, Head{Size: mib}))
	assert.False(t, Keeps(0, 8*mib, Head{Size: mib}))
	assert.False(t, Keeps(0, 4*mib, Head{Size: mib}))
	ForgetSpares()
}

func TestClasses(t *testing.T) {
	assert.EqualValues(t, 1<<16, classOf(1<<16))
	assert.EqualValues(t, 1<<17, classOf(1<<16+1))
	assert.EqualValues(t, 1, classOf(1))
	assert.Zero(t, classOf(math.MaxInt))
	assert.Zero(t, classOf(math.MaxUint64))
}
