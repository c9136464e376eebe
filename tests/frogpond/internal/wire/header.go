package wire

import "encoding/binary"

// Header is how many bytes a packet of a session begins with:
//
//	kind u8, zeros 3, session u32, sequence u32, MAC 8
const Header = 20

// macAt is where a header's MAC lies.
const macAt = 12

// SessionHeader is what they say. Each direction counts its own sequence, from 1.
type SessionHeader struct {
	Session, Sequence uint32
	Kind              Kind
	_                 [3]byte
}

// AppendHeader begins a packet of a session; its payload is appended, then [Mac.Seal] ends it.
func AppendHeader(dst []byte, kind Kind, session, sequence uint32) []byte {
	dst = append(dst, byte(kind), 0, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, session)
	dst = binary.LittleEndian.AppendUint32(dst, sequence)
	return appendZeros(dst, Header-macAt)
}

// ParseHeader is what a packet of a session says of itself. Nothing is proven before [Mac.Open].
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

// payload is what follows the header of a packet of this kind.
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

// AppendLeave appends the whole packet but its MAC.
func AppendLeave(dst []byte, session, sequence uint32) []byte {
	return AppendHeader(dst, Leave, session, sequence)
}

// ParseLeave says whether a packet is one.
func ParseLeave(p []byte) Reason {
	rest, r := payload(p, Leave)
	if r == 0 && len(rest) != 0 {
		r = Short
	}
	return r
}
