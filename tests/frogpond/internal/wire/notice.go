package wire

import "encoding/binary"

// NoticePacket is a Notice: an event of a session.
type NoticePacket struct {
	Seconds uint32 // until the event
	Reason  NoticeReason
	Epoch   uint8   // of NextMap
	Map     MapName // of NextMap
	_       [2]byte
}

// NoticeReason is the event of a Notice.
type NoticeReason uint8

const (
	Closing   NoticeReason = 1 + iota // the server stops
	RoomEnded                         // this room ended, and the session with it
	NextMap                           // ticks begin at 0 again, on another map
	TimedOut                          // the server got no packet; the session is over
)

var noticeReasons = [...]string{"", "closing", "room ended", "next map", "timed out"}

// String returns the reason for people.
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

// ParseNotice parses a whole packet of a session.
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
