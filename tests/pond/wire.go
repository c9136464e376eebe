package main

// The protocol. A datagram is a message: a byte for its kind, then the fields below. Numbers are
// big endian; NAME, ROOM and TEXT are UTF-8 without control characters. Datagrams get lost, so both
// sides repeat their messages; only a line of chat is sent once.
//
// A client sends:
//
//	j n NAME ROOM      join a room; n is the length of the name. Send it each second: the first
//	                   join takes a seat, the next ones keep it. The first player opens the room
//	h x y              hop towards a place: 2 bytes each
//	s TEXT             say a line to the room, at most one a tick
//	l                  leave. A client that is silent for five seconds also leaves
//
// The server sends:
//
//	w id               welcome, the answer to each join: the player's number in the room
//	e why              the seat has ended, or the address has no seat
//	n (id n NAME)...   the players of the room, to a new one and each second
//	p tick (id x y)... their places, each tick: 4 bytes, then 1, 2 and 2 for each
//	s n NAME TEXT      a line of chat. A new player gets the last 32
//
// The server knows a player by its address, which may be forged. On an open network, let a client
// first prove that it receives packets at its address, as frogpond's join does.

import (
	"net/netip"
	"unicode"
	"unicode/utf8"
)

const (
	kindJoin, kindHop, kindSay, kindLeave                 = 'j', 'h', 's', 'l'
	kindWelcome, kindEnd, kindNames, kindPlaces, kindSaid = 'w', 'e', 'n', 'p', 's'
)

// The reasons why a seat ended or an address has none.
const (
	whyRoomFull   = 'r'
	whyServerFull = 's'
	whyTooSmall   = 'b' // the plan's slots are too small for a room
	whyNameTaken  = 'n'
	whyServerEnds = 'd'
	whySilent     = 'q' // silent for too long
	whyLeft       = 'l'
	whyNoSeat     = 'j' // the address must join first
)

const (
	nameMost  = 16 // bytes
	textMost  = 128
	heardMost = 1 + textMost
	toldMost  = max(1+playersMost*(2+nameMost), 2+nameMost+textMost) // names, or a line
)

// Address is a netip.AddrPort as plain data. It has no zone, so link-local addresses get no answer.
type Address struct {
	IP   [16]byte
	Port uint16
}

func addressOf(a netip.AddrPort) Address { return Address{a.Addr().As16(), a.Port()} }

func (a Address) addrPort() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(a.IP), a.Port)
}

// cutNames cuts the body of a join into the names of the player and the room.
func cutNames(b []byte) (player, room []byte, ok bool) {
	if len(b) == 0 || int(b[0]) >= len(b) {
		return nil, nil, false
	}
	n := int(b[0])
	player, room = b[1:1+n], b[1+n:]
	return player, room, isText(player, nameMost) && isText(room, nameMost)
}

// isText reports whether b may be a name or a line of chat of at most most bytes.
func isText(b []byte, most int) bool {
	if len(b) < 1 || len(b) > most || !utf8.Valid(b) {
		return false
	}
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if unicode.IsControl(r) {
			return false
		}
		b = b[size:]
	}
	return true
}

// appendName appends a name after its length.
func appendName(b, name []byte) []byte { return append(append(b, byte(len(name))), name...) }
