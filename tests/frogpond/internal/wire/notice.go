package wire

import "encoding/binary"

// NoticePacket is a Notice: what will happen to a session, or did.
type NoticePacket struct {
	Seconds uint32 // until it does
	Reason  NoticeReason
	Epoch   uint8   // of NextMap
	Map     MapName // of NextMap
	_       [2]byte
}

// NoticeReason is what will happen.
type NoticeReason uint8

// What will happen.
const (
	Closing   NoticeReason = 1 + iota // the server stops
	RoomEnded                         // this room did: the session is over
	NextMap                           // ticks begin at 0 again, on another map
	TimedOut                          // nothing was heard: the session is over
)

var noticeReasons = [...]string{"", "closing", "room ended", "next map", "timed out"}

// String is what a player is told.
func (n NoticeReason) String() string {
	if int(n) < len(noticeReasons) {
		return noticeReasons[n]
	}
	return "notice"
}

// AppendNotice appends, after the header:
//
//	reason u8, epoch u8, zeros 2, seconds u32, map 8
func AppendNotice(dst []byte, n *NoticePacket) []byte {
	dst = append(dst, byte(n.Reason), n.Epoch, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, n.Seconds)
	return append(dst, n.Map[:]...)
}

// ParseNotice takes a packet of a session, whole.
func ParseNotice(p []byte) (n NoticePacket, r Reason) {
	rest, r := payload(p, Notice)
	if r != 0 {
		return n, r
	}
	if len(rest) != NoticeSize-Header {
		return n, Short
	}
	n.Reason, n.Epoch = NoticeReason(rest[0]), rest[1]
	n.Seconds = binary.LittleEndian.Uint32(rest[4:])
	n.Map = MapName(rest[8:])
	about := n.Epoch != 0 || n.Map != MapName{}
	if n.Reason == 0 || int(n.Reason) >= len(noticeReasons) || !zeros(rest[2:4]) || !n.Map.valid() ||
		about && n.Reason != NextMap {
		return NoticePacket{}, Short
	}
	return n, 0
}
