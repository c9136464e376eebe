package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reference returns the standard library's HMAC.
func reference(k Key, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, k[:])
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func TestMacIsHMAC(t *testing.T) {
	random, m := rand.NewChaCha8([32]byte{1}), new(Mac)
	for size := Header; size <= PacketMost; size += 1 + size/9 {
		var k Key
		p := make([]byte, size)
		random.Read(k[:])
		random.Read(p)
		m.Seal(&k, p)
		require.Equal(t, reference(k, p[:macAt], p[Header:])[:macSize], p[macAt:Header], "%d bytes", size)
		require.True(t, m.Open(&k, p))
		for at := range p {
			p[at] ^= 1
			require.False(t, m.Open(&k, p), "byte %d of %d", at, size)
			p[at] ^= 1
		}
		k[31] ^= 1
		require.False(t, m.Open(&k, p))
	}
	join, k := example()[Join], Key{5}
	proof := m.Proof(&k, join)
	assert.Equal(t, reference(k, join[:ProofAt])[:8], proof[:])
	assert.False(t, m.Proves(&k, join))
	copy(join[ProofAt:], proof[:])
	assert.True(t, m.Proves(&k, join))
	assert.False(t, m.Open(&k, nil))
	assert.False(t, m.Open(&k, make([]byte, PacketMost+1)))
	assert.False(t, m.Proves(&k, nil))
}

func TestCookies(t *testing.T) {
	m, secret, address := new(Mac), Key{1}, []byte{127, 0, 0, 1, 0x1f, 0x90}
	c := MakeCookies(secret)
	const now = 1000 * cookieUnit
	cookie := c.Make(m, address, 7, now)
	unit := binary.LittleEndian.AppendUint32(nil, now/cookieUnit)
	nonce := binary.LittleEndian.AppendUint64(nil, 7)
	assert.Equal(t, reference(secret, []byte("cookie\x06"), address, nonce, unit)[:12], cookie[4:])

	assert.True(t, c.Check(m, address, 7, now, cookie))
	assert.True(t, c.Check(m, address, 7, now+2*cookieUnit-1, cookie))
	assert.False(t, c.Check(m, address, 7, now+2*cookieUnit, cookie), "too old")
	assert.False(t, c.Check(m, address, 7, now-1, cookie), "of the future")
	assert.False(t, c.Check(m, address, 8, now, cookie))
	assert.False(t, c.Check(m, address[:5], 7, now, cookie))
	for i := range cookie {
		wrong := cookie
		wrong[i] ^= 1
		assert.False(t, c.Check(m, address, 7, now, wrong), "byte %d", i)
	}
	other := MakeCookies(Key{2})
	assert.False(t, other.Check(m, address, 7, now, cookie))

	key := c.SessionKey(m, 9, 7, cookie)
	session := binary.LittleEndian.AppendUint32([]byte("session"), 9)
	assert.Equal(t, reference(secret, session, nonce, cookie[:]), key[:])
	assert.NotEqual(t, key, c.SessionKey(m, 10, 7, cookie))
	assert.NotEqual(t, key, c.SessionKey(m, 9, 8, cookie))
}

// TestWindow compares Window with a model that remembers all sequences.
func TestWindow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var w Window
	var came []uint32
	newest, taken := uint32(0), 0
	for range 20000 {
		sequence := newest + uint32(random.IntN(80)) - min(newest, 70)
		if random.IntN(500) == 0 {
			sequence += 1000
		}
		new := sequence != 0 && newest < sequence+64 && !slices.Contains(came, sequence)
		require.Equal(t, new, w.Take(sequence), "%d after %d", sequence, newest)
		if new {
			came = append(came, sequence)
			newest = max(newest, sequence)
			came = slices.DeleteFunc(came, func(s uint32) bool { return s+64 <= newest })
			taken++
		}
	}
	assert.Equal(t, newest, w.newest)
	assert.Greater(t, taken, 1000)
	assert.Less(t, taken, 19000)
	var last Window
	assert.True(t, last.Take(^uint32(0)))
	assert.False(t, last.Take(0))
	assert.False(t, last.Take(1))
}
