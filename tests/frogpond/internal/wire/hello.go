package wire

import "encoding/binary"

// Nonce is a number that a client chooses, and by which it recognizes answers.
type Nonce = uint64

// AppendHello appends:
//
//	kind u8, version u8, zeros 2, nonce u64, zeros to 64
func AppendHello(dst []byte, nonce Nonce) []byte {
	dst = append(dst, byte(Hello), Version, 0, 0)
	dst = binary.LittleEndian.AppendUint64(dst, nonce)
	return appendZeros(dst, HelloSize-12)
}

// ParseHello parses a Hello. It also returns the nonce with BadVersion, since a client of another
// version gets an answer.
func ParseHello(p []byte) (nonce Nonce, r Reason) {
	r = handshake(p, Hello, HelloSize)
	if r == Short || r == BadKind {
		return 0, r
	}
	if r == 0 && !(zeros(p[2:4]) && zeros(p[12:])) {
		return 0, Short
	}
	return binary.LittleEndian.Uint64(p[4:]), r
}
