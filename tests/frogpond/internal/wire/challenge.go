package wire

import "encoding/binary"

// AppendChallenge appends:
//
//	kind u8, version u8, zeros 2, nonce u64, cookie 16, zeros to 32
func AppendChallenge(dst []byte, nonce Nonce, cookie Cookie) []byte {
	dst = append(dst, byte(Challenge), Version, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, nonce)
	dst = append(dst, cookie[:]...)
	return appendZeros(dst, ChallengeSize-28)
}

// ParseChallenge parses a Challenge, for a client.
func ParseChallenge(p []byte) (nonce Nonce, cookie Cookie, r Reason) {
	if r = handshake(p, Challenge, ChallengeSize); r != 0 {
		return 0, cookie, r
	}
	if !zeros(p[2:4]) || !zeros(p[28:]) {
		return 0, cookie, Short
	}
	return binary.LittleEndian.Uint64(p[4:]), Cookie(p[12:28]), 0
}
