package work

import "encoding/binary"

// The limits of the program rooms.
const (
	RoomTicks    = 4500
	RoomsAtOnce  = 64  // rooms that are open at the same time
	RoomPlayers  = 64  // players in a room
	RoomTexts    = 32  // last texts that a room keeps
	RoomCodeSize = 12  // bytes of a room's code, at most
	NameSize     = 32  // bytes of a player's name, at most
	TextSize     = 120 // bytes of a text, at most
	Idle         = 50  // a player is removed after more ticks without a text

	roomPackets = 500 // in a tick
	roomCodes   = 72
	roomNames   = 70 // the different names of a room's players
)

// The kinds of packets.
const (
	Open = byte(iota)
	End
	Join
	Quit
	Chat
	Find
)

// Packet is a packet's parts. They are slices of the packet's bytes, which the next packet
// overwrites.
type Packet struct {
	Kind             byte
	Code, Name, Text []byte
}

// Packets is the stream of packets that the server gets.
type Packets struct {
	dice dice
	tick int
	left int
	text [256]byte
}

// NewPackets returns the stream, which is the same each time.
func NewPackets() *Packets { return &Packets{tick: -1} }

// Tick goes on to the next tick's packets. It returns false after the last tick.
func (p *Packets) Tick() bool {
	p.tick++
	p.left = roomPackets
	return p.tick < RoomTicks
}

// Next returns the tick's next packet, or nil after the last packet. The bytes are valid until the
// next call.
//
// A packet is its kind, a byte, and three texts, each after its length, a byte: the room's code,
// the player's name, and the player's text.
func (p *Packets) Next() []byte {
	if p.left == 0 {
		return nil
	}
	p.left--
	kind, room := Chat, uint64(p.dice.below(roomCodes))
	switch n := p.dice.below(1000); {
	case n < 8:
		kind = Open
	case n < 10:
		kind = End
	case n < 260:
		kind = Join
	case n < 370:
		kind = Quit
	case n < 500:
		kind = Find
	}
	b := append(p.text[:0], kind)
	b = appendWord(b, room, 5, RoomCodeSize)
	if kind == Open || kind == End {
		return append(b, 0, 0)
	}
	b = appendWord(b, room<<32|uint64(1+p.dice.below(roomNames)), 9, NameSize)
	if kind != Chat {
		return append(b, 0)
	}
	return appendWord(b, p.dice.next(), 1, TextSize)
}

// appendWord appends a text of least to most bytes, after its length. The text depends only on the
// arguments. Its letters are from '`' to 'o'.
func appendWord(b []byte, seed uint64, least, most int) []byte {
	v := Mix(seed)
	n := least + int(v>>32)%(most-least+1)
	b = append(b, byte(n))
	at := len(b)
	for i := 0; i < n; i += 8 {
		v = v*0x5851f42d4c957f2d + 1
		b = binary.LittleEndian.AppendUint64(b, (v^v>>33)&0x0f0f0f0f0f0f0f0f|0x6060606060606060)
	}
	return b[:at+n]
}

// Split returns the parts of a packet.
func Split(packet []byte) Packet {
	p := Packet{Kind: packet[0]}
	rest := packet[1:]
	for _, part := range []*[]byte{&p.Code, &p.Name, &p.Text} {
		n := 1 + int(rest[0])
		*part, rest = rest[1:n:n], rest[n:]
	}
	return p
}

// Tire returns the energy of a player after a tick.
func Tire(energy uint32, said uint32) uint32 {
	return energy - energy>>6 + said&7 + 1
}

// Hear returns the energy of a player after a text of n bytes in the room.
func Hear(energy uint32, n int) uint32 { return energy + uint32(n) }
