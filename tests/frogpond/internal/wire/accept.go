package wire

import "encoding/binary"

// AcceptPacket is an Accept: a client's session, and the data that it needs to play.
type AcceptPacket struct {
	Nonce              Nonce
	Key                Key
	Map                MapName
	Session, Tick      uint32
	Room, Player       uint8 // Player: its place, or Watcher
	Epoch              uint8
	Rollback, TickRate uint8 // ticks that inputs may be late; ticks a second
	_                  [3]byte
}

// Watcher is the player number of a watcher.
const Watcher = 0xff

// AppendAccept appends:
//
//	kind u8, version u8, room u8, player u8, nonce u64, session u32, key 32, tick u32, epoch u8,
//	rollback u8, ticks a second u8, zero, map 8, zeros to 80
func AppendAccept(dst []byte, a *AcceptPacket) []byte {
	dst = append(dst, byte(Accept), Version, a.Room, a.Player)
	dst = binary.LittleEndian.AppendUint64(dst, a.Nonce)
	dst = binary.LittleEndian.AppendUint32(dst, a.Session)
	dst = append(dst, a.Key[:]...)
	dst = binary.LittleEndian.AppendUint32(dst, a.Tick)
	dst = append(dst, a.Epoch, a.Rollback, a.TickRate, 0)
	dst = append(dst, a.Map[:]...)
	return appendZeros(dst, AcceptSize-64)
}

// ParseAccept parses an Accept, for a client.
func ParseAccept(p []byte) (a AcceptPacket, r Reason) {
	if r = handshake(p, Accept, AcceptSize); r != 0 {
		return a, r
	}
	a.Room, a.Player = p[2], p[3]
	a.Nonce = binary.LittleEndian.Uint64(p[4:])
	a.Session = binary.LittleEndian.Uint32(p[12:])
	a.Key = Key(p[16:48])
	a.Tick = binary.LittleEndian.Uint32(p[48:])
	a.Epoch, a.Rollback, a.TickRate = p[52], p[53], p[54]
	a.Map = MapName(p[56:64])
	if a.Session == 0 || a.TickRate == 0 || p[55] != 0 || !a.Map.valid() || !zeros(p[64:]) {
		return AcceptPacket{}, Short
	}
	return a, 0
}

// MapName is a map's name as in a WAD: printable ASCII without spaces, padded with zeros.
type MapName [8]byte

// MakeMapName returns a map's name: the first 8 bytes of a text.
func MakeMapName(text string) (m MapName) {
	copy(m[:], text)
	return m
}

// Text returns the name without its padding. It aliases m.
func (m *MapName) Text() []byte {
	end := 0
	for end < len(m) && m[end] != 0 {
		end++
	}
	return m[:end]
}

// valid reports whether the name is printable.
func (m *MapName) valid() bool {
	text := m.Text()
	for _, c := range text {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return zeros(m[len(text):])
}
