package wire

import "encoding/binary"

// Header is the size in bytes of the header of a packet of a session:
//
//	kind u8, zeros 3, session u32, sequence u32, MAC 8
const Header = 20

// macAt is the offset of the MAC in a header.
const macAt = 12

// SessionHeader is a parsed header. Each direction has a sequence of its own, from 1.
type SessionHeader struct {
	Session, Sequence uint32
	Kind              Kind
	_                 [3]byte
}

// AppendHeader appends the header of a packet of a session. The caller appends the payload, and
// then calls [Mac.Seal].
func AppendHeader(dst []byte, kind Kind, session, sequence uint32) []byte {
	dst = append(dst, byte(kind), 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, session)
	dst = binary.LittleEndian.AppendUint32(dst, sequence)
	return appendZeros(dst, Header-macAt)
}

// ParseHeader parses the header of a packet of a session. Don't trust it before [Mac.Open].
func ParseHeader(p []byte) (h SessionHeader, r Reason) {
	kind, r := KindOf(p)
	if r != 0 {
		return h, r
	}
	if kind < Inputs {
		return h, BadKind
	}
	h.Session, h.Sequence = binary.LittleEndian.Uint32(p[4:]), binary.LittleEndian.Uint32(p[8:])
	h.Kind = kind
	if !zeros(p[1:4]) || h.Session == 0 || h.Sequence == 0 {
		return SessionHeader{}, Short
	}
	return h, 0
}

func payload(p []byte, kind Kind) ([]byte, Reason) {
	h, r := ParseHeader(p)
	if r == 0 && h.Kind != kind {
		r = BadKind
	}
	if r != 0 {
		return nil, r
	}
	return p[Header:], 0
}

// AppendLeave appends a Leave, without its MAC.
func AppendLeave(dst []byte, session, sequence uint32) []byte {
	return AppendHeader(dst, Leave, session, sequence)
}

// ParseLeave returns 0 if p is a Leave.
func ParseLeave(p []byte) Reason {
	rest, r := payload(p, Leave)
	if r == 0 && len(rest) != 0 {
		r = Short
	}
	return r
}
