package wire

import (
	"crypto/sha256"
	"crypto/subtle"
)

// Key is a session's, or a server's own.
type Key [32]byte

// Mac is memory that a MAC is worked out in: one for each goroutine. It is HMAC-SHA256 by
// [sha256.Sum256], since package hmac allocates.
type Mac struct{ buffer [block + PacketMost]byte }

// block is how many bytes SHA-256 takes at once: a key is padded to as many.
const block = sha256.BlockSize

// macSize is how much of a MAC a packet has.
const macSize = 8

// sum is the HMAC of what lies in the buffer after the first block, n bytes.
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

// packet is the MAC of a packet of a session: of all but the MAC itself.
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

// Open says whether the MAC of a packet of a session is by its key. It takes as long for each that
// isn't.
func (m *Mac) Open(k *Key, packet []byte) bool {
	if len(packet) < Header || len(packet) > PacketMost {
		return false
	}
	sum := m.packet(k, packet)
	return subtle.ConstantTimeCompare(sum[:macSize], packet[macAt:Header]) == 1
}

// Proof is what a Join proves by the old session's key that the session was its own with.
func (m *Mac) Proof(k *Key, join []byte) [8]byte {
	sum := m.sum(k, copy(m.buffer[block:], join[:ProofAt]))
	return [8]byte(sum[:])
}

// Proves says whether a Join's proof is by this key.
func (m *Mac) Proves(k *Key, join []byte) bool {
	if len(join) != JoinSize {
		return false
	}
	proof := m.Proof(k, join)
	return subtle.ConstantTimeCompare(proof[:], join[ProofAt:ProofAt+8]) == 1
}
