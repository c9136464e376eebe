package wire

import "encoding/binary"

// stateHead is the number of bytes in a State before the operations. hashAt and thingsAt are
// offsets in these bytes.
const (
	stateHead = 16 + selfSize
	thingsAt  = 3
	hashAt    = 12
	selfSize  = 24
)

// StateLeast is the least limit for the size of a State: it fits the longest change.
const StateLeast = Header + stateHead + operationMost

// nothing is the base of a State without a base.
var nothing View

// AppendState appends a State to a packet's header, dst:
//
//	epoch u8, early i8, flags u8, things u8, tick u32, base u32, hash u32, self 24, operations
//
// The operations lead from base to want. AppendState then leaves in want the view that the client
// will have. base may be nil; a base that is too old, or of another map, counts as nil. The packet
// has at most `most` bytes, and at most the capacity of dst, which must be at least StateLeast. A
// change that doesn't fit waits: the thing stays as it is in base, or absent. whole is true if all
// changes fit. choose sees to it that no change waits for ever.
//
// want's things must be in order, and its Sequence must be the packet's.
func AppendState(dst []byte, most int, want, base *View, early int8, flags uint8) (packet []byte,
	whole bool) {
	if base == nil || !base.mayBase(want.Sequence) || base.Epoch != want.Epoch {
		base = &nothing
	}
	want.Early, want.Flags, want.Cursor = early, flags, base.Cursor
	most = min(most, cap(dst))
	dst = appendStateHead(dst, want, base)
	head := dst[Header:]
	packet, whole = appendOperations(dst, most, want, base)
	if !whole {
		choose(want, base, most-len(dst))
		packet, _ = appendOperations(dst, most, want, base)
	}
	head[thingsAt] = byte(want.Count)
	binary.LittleEndian.PutUint32(head[hashAt:], want.Hash())
	return packet, whole
}

// appendStateHead appends the bytes before the operations, with zeros for the number of things and
// the hash.
func appendStateHead(dst []byte, v, base *View) []byte {
	dst = append(dst, v.Epoch, byte(v.Early), v.Flags, 0)
	dst = binary.LittleEndian.AppendUint32(dst, v.Tick)
	dst = binary.LittleEndian.AppendUint32(dst, base.Sequence)
	dst = appendZeros(dst, 4)
	s := &v.Self
	dst = binary.LittleEndian.AppendUint32(dst, uint32(s.X))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(s.Y))
	dst = binary.LittleEndian.AppendUint16(dst, s.Heading)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(s.Health))
	dst = binary.LittleEndian.AppendUint32(dst, s.Caught)
	dst = binary.LittleEndian.AppendUint16(dst, s.Deaths)
	dst = binary.LittleEndian.AppendUint16(dst, s.Exits)
	dst = binary.LittleEndian.AppendUint16(dst, s.Keys)
	return binary.LittleEndian.AppendUint16(dst, s.Frogs)
}

// ParseState decodes a whole packet of a session into the ring, and returns the view. The reason is
// Replayed if the ring has this view, or a newer view in its entry. It is NoBase if the view's base
// is gone, and WrongHash if the result differs from the server's view.
func ParseState(p []byte, ring *Ring) (*View, Reason) {
	rest, r := payload(p, State)
	if r != 0 {
		return nil, r
	}
	if len(rest) < stateHead {
		return nil, Short
	}
	sequence, base := binary.LittleEndian.Uint32(p[8:]), binary.LittleEndian.Uint32(rest[8:])
	v, from := ring.At(sequence), &nothing
	if v.Sequence >= sequence {
		return nil, Replayed
	}
	if base != 0 {
		if from = ring.Base(base, sequence); from == nil {
			return nil, NoBase
		}
	}
	v.Sequence = 0 // until it is proven right
	v.parseHead(rest)
	things := rest[thingsAt]
	if v.Flags&^NotHere != 0 || things > Things || base != 0 && from.Epoch != v.Epoch ||
		!v.parseOperations(rest[stateHead:], from) || v.Count != uint16(things) {
		return nil, Short
	}
	if v.Hash() != binary.LittleEndian.Uint32(rest[hashAt:]) {
		return nil, WrongHash
	}
	v.Sequence = sequence
	return v, 0
}

func (v *View) parseHead(b []byte) {
	v.Epoch, v.Early, v.Flags = b[0], int8(b[1]), b[2]
	v.Tick = binary.LittleEndian.Uint32(b[4:])
	b = b[16:stateHead]
	v.Self = Self{
		X: int32(binary.LittleEndian.Uint32(b)), Y: int32(binary.LittleEndian.Uint32(b[4:])),
		Heading: binary.LittleEndian.Uint16(b[8:]), Health: int16(binary.LittleEndian.Uint16(b[10:])),
		Caught: binary.LittleEndian.Uint32(b[12:]),
		Deaths: binary.LittleEndian.Uint16(b[16:]), Exits: binary.LittleEndian.Uint16(b[18:]),
		Keys: binary.LittleEndian.Uint16(b[20:]), Frogs: binary.LittleEndian.Uint16(b[22:]),
	}
}
