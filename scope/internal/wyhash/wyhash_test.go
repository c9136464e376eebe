package wyhash_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope/internal/wyhash"
)

// TestHashIsForEver: a state's bytes contain hashes, so hashes are the same in each build, on each
// machine and in each version of this module.
func TestHashIsForEver(t *testing.T) {
	s := wyhash.Of(7)
	key := make([]byte, 40)
	for i := range key {
		key[i] = byte(i * i)
	}
	sum := uint64(0)
	for n := range key {
		sum = s.Hash(sum, key[:n])
	}
	assert.Equal(t, wyhash.Seed{0x63cbe1e459320dd7, 0x044c3cd7f43c661c}, s)
	assert.Equal(t, uint64(0x595481371141fae9), sum)
	assert.Equal(t, s.Hash(s[0], key[:4]), s.Hash4((*[4]byte)(key)))
	assert.Equal(t, s.Hash(s[0], key[:8]), s.Hash8((*[8]byte)(key)))
	assert.NotEqual(t, wyhash.Random(), wyhash.Random())
}

// TestEachByteCounts: keys of any length that differ in a bit have different hashes, and so do a
// key and its prefix.
func TestEachByteCounts(t *testing.T) {
	s := wyhash.Of(0)
	for n := range 70 {
		key := make([]byte, n)
		seen := map[uint64]int{s.Hash(s[0], key): -1}
		for bit := range 8 * n {
			key[bit/8] ^= 1 << (bit % 8)
			h := s.Hash(s[0], key)
			_, twice := seen[h]
			require.False(t, twice, "bit %d of %d bytes", bit, n)
			seen[h] = bit
			key[bit/8] ^= 1 << (bit % 8)
		}
		if n > 0 {
			require.NotEqual(t, s.Hash(s[0], key), s.Hash(s[0], key[:n-1]))
		}
	}
}
