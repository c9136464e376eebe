package wire

import "encoding/binary"

// RefusePacket is a Refuse: the reason, the server's players and places, and the time to ask again.
// With AddressFull, players and places are those of the client's address.
type RefusePacket struct {
	Nonce                  Nonce
	Players, Places, Rooms uint32 // of the server, now
	RetryAfter             uint32 // ms; 0: never
	Reason                 RefuseReason
	_                      [7]byte
}

// RefuseReason is the reason why a client may not join.
type RefuseReason uint8

const (
	ServerFull   RefuseReason = 1 + iota // no place in any room
	RoomFull                             // no place in the requested room
	NoRoom                               // the requested room doesn't exist
	ServerCloses                         // the server drains
	OtherVersion                         // the server speaks another version: the packet's
	AddressFull                          // the client's address has all the places that it may have
)

var refuseReasons = [...]string{"", "server full", "room full", "no such room", "server closes",
	"other version", "address full"}

// String returns the reason for people.
func (r RefuseReason) String() string {
	if int(r) < len(refuseReasons) {
		return refuseReasons[r]
	}
	return "refused"
}

// AppendRefuse appends:
//
//	kind u8, version u8, reason u8, zero, nonce u64, players u32, places u32, rooms u32,
//	retry after ms u32, zeros to 32
func AppendRefuse(dst []byte, f *RefusePacket) []byte {
	dst = append(dst, byte(Refuse), Version, byte(f.Reason), 0)
	dst = binary.LittleEndian.AppendUint64(dst, f.Nonce)
	dst = binary.LittleEndian.AppendUint32(dst, f.Players)
	dst = binary.LittleEndian.AppendUint32(dst, f.Places)
	dst = binary.LittleEndian.AppendUint32(dst, f.Rooms)
	dst = binary.LittleEndian.AppendUint32(dst, f.RetryAfter)
	return appendZeros(dst, RefuseSize-28)
}

// ParseRefuse parses a Refuse. It also returns the packet with BadVersion, because that is the
// answer of a server of another version.
func ParseRefuse(p []byte) (f RefusePacket, r Reason) {
	r = handshake(p, Refuse, RefuseSize)
	if r == Short || r == BadKind {
		return f, r
	}
	f.Reason = RefuseReason(p[2])
	f.Nonce = binary.LittleEndian.Uint64(p[4:])
	f.Players = binary.LittleEndian.Uint32(p[12:])
	f.Places = binary.LittleEndian.Uint32(p[16:])
	f.Rooms = binary.LittleEndian.Uint32(p[20:])
	f.RetryAfter = binary.LittleEndian.Uint32(p[24:])
	if f.Reason == 0 || int(f.Reason) >= len(refuseReasons) || p[3] != 0 || !zeros(p[28:]) {
		return RefusePacket{}, Short
	}
	return f, r
}
