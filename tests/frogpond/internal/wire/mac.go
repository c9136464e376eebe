package wire

import (
	"crypto/sha256"
	"crypto/subtle"
)

// Key is the key of a session, or a server's secret.
type Key [32]byte

// Mac is memory for computing MACs; each goroutine needs its own. The MAC is HMAC-SHA256, made from
// [sha256.Sum256] because package hmac allocates.
type Mac struct{ buffer [block + PacketMost]byte }

// block is SHA-256's block size in bytes: keys are padded to it.
const block = sha256.BlockSize

// macSize is the bytes of a MAC in a packet.
const macSize = 8

// sum returns the HMAC of n bytes of the buffer after the first block.
func (m *Mac) sum(k *Key, n int) [sha256.Size]byte {
	m.pad(k, 0x36)
	inner := sha256.Sum256(m.buffer[:block+n])
	m.pad(k, 0x5c)
	copy(m.buffer[block:], inner[:])
	return sha256.Sum256(m.buffer[:block+sha256.Size])
}

// pad puts a key into the first block.
func (m *Mac) pad(k *Key, with byte) {
	for i, b := range k {
		m.buffer[i] = b ^ with
	}
	for i := len(k); i < block; i++ {
		m.buffer[i] = with
	}
}

// packet returns the MAC of a packet of a session, over all bytes but the MAC's own.
func (m *Mac) packet(k *Key, packet []byte) [sha256.Size]byte {
	n := copy(m.buffer[block:], packet[:macAt])
	n += copy(m.buffer[block+n:], packet[Header:])
	return m.sum(k, n)
}

// Seal fills in the MAC of a packet of a session, which has at most PacketMost bytes.
func (m *Mac) Seal(k *Key, packet []byte) {
	sum := m.packet(k, packet)
	copy(packet[macAt:Header], sum[:])
}

// Open reports whether the MAC of a packet of a session is by the session's key. It takes the same
// time for each wrong MAC.
func (m *Mac) Open(k *Key, packet []byte) bool {
	if len(packet) < Header || len(packet) > PacketMost {
		return false
	}
	sum := m.packet(k, packet)
	return subtle.ConstantTimeCompare(sum[:macSize], packet[macAt:Header]) == 1
}

// Proof returns a Join's proof that it owns an old session, by that session's key.
func (m *Mac) Proof(k *Key, join []byte) [8]byte {
	sum := m.sum(k, copy(m.buffer[block:], join[:ProofAt]))
	return [8]byte(sum[:])
}

// Proves reports whether a Join's proof is by this key.
func (m *Mac) Proves(k *Key, join []byte) bool {
	if len(join) != JoinSize {
		return false
	}
	proof := m.Proof(k, join)
	return subtle.ConstantTimeCompare(proof[:], join[ProofAt:ProofAt+8]) == 1
}
