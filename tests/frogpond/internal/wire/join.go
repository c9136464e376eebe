package wire

import (
	"encoding/binary"
	"unicode"
	"unicode/utf8"
)

// JoinPacket is a Join. It has the server's cookie, and a proof of the old session if the client
// continues one from another address.
type JoinPacket struct {
	Nonce       Nonce
	Cookie      Cookie
	Name        Name
	Old         uint32 // session; 0: none
	Room, Flags uint8
	Proof       [8]byte // by the old session's key, see [Mac.Proof]
	_           [2]byte
}

// AnyRoom requests any room. Watch is the flag of a watcher.
const (
	AnyRoom = 0xff
	Watch   = 1
)

// ProofAt is the offset of a Join's proof, which covers the bytes before it.
const ProofAt = 52

// AppendJoin appends:
//
//	kind u8, version u8, room u8, flags u8, nonce u64, cookie 16, name 16, old session u32,
//	zeros 4, proof 8, zeros to 96
func AppendJoin(dst []byte, j *JoinPacket) []byte {
	dst = append(dst, byte(Join), Version, j.Room, j.Flags)
	dst = binary.LittleEndian.AppendUint64(dst, j.Nonce)
	dst = append(dst, j.Cookie[:]...)
	dst = append(dst, j.Name[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, j.Old)
	dst = appendZeros(dst, 4)
	dst = append(dst, j.Proof[:]...)
	return appendZeros(dst, JoinSize-ProofAt-8)
}

// ParseJoin parses a Join. It checks neither cookie nor proof: [Cookies.Check] and [Mac.Proves] do.
func ParseJoin(p []byte) (j JoinPacket, r Reason) {
	if r = handshake(p, Join, JoinSize); r != 0 {
		return j, r
	}
	j.Room, j.Flags = p[2], p[3]
	j.Nonce = binary.LittleEndian.Uint64(p[4:])
	j.Cookie, j.Name = Cookie(p[12:28]), Name(p[28:44])
	j.Old = binary.LittleEndian.Uint32(p[44:])
	j.Proof = [8]byte(p[ProofAt : ProofAt+8])
	if j.Flags&^Watch != 0 || !j.Name.valid() || !zeros(p[48:ProofAt]) || !zeros(p[ProofAt+8:]) ||
		j.Old == 0 && !zeros(j.Proof[:]) {
		return JoinPacket{}, Short
	}
	return j, 0
}

// Name is a player's name: printable UTF-8, padded with zeros.
type Name [NameSize]byte

// MakeName returns a player's name: the printable characters of a text, as many as fit.
func MakeName(text string) (n Name) {
	at := 0
	for _, c := range text {
		if !unicode.IsPrint(c) {
			continue
		}
		if at+utf8.RuneLen(c) > len(n) {
			break
		}
		at += utf8.EncodeRune(n[at:], c)
	}
	return n
}

// Text returns the name without its padding. It aliases n.
func (n *Name) Text() []byte {
	end := 0
	for end < len(n) && n[end] != 0 {
		end++
	}
	return n[:end]
}

// valid reports whether the name is printable.
func (n *Name) valid() bool {
	text := n.Text()
	if !zeros(n[len(text):]) {
		return false
	}
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		if c == utf8.RuneError && size == 1 || !unicode.IsPrint(c) {
			return false
		}
		text = text[size:]
	}
	return true
}
