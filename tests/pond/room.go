package main

import (
	"cmp"
	"encoding/binary"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// The limits of a room. plan.json has the bytes of a room and the number of rooms.
const (
	playersMost = 16 // their IDs are bytes
	linesMost   = 32 // of chat; a new player gets them
)

// Name is the name of a player or a room. Two names compare with ==.
type Name = arena.Inline[[nameMost]byte]

// Player and Line are plain data in the room's slot, so their strings are Inlines.
type (
	Player struct {
		From         Address
		Name         Name
		Heard, Spoke uint32 // the ticks of the last packet, and of the last line
		X, Y         int16
		ToX, ToY     int16
		ID           uint8
	}
	Line struct {
		Name Name
		Text arena.Inline[[textMost]byte]
	}
)

var (
	players = scope.Plain[Player]()
	lines   = scope.Plain[Line]()
)

// Room is a Go value. Its players and lines are in a slot of the budget, and end with it in one
// step.
type Room struct {
	slot    budget.Region
	number  uint32 // the slot's, and the index in Server.rooms
	name    Name
	players scope.HandlePool[Player]
	lines   container.Deque[Line]
}

// loadRoom fills a slot. Add the rest of your own game here: a map, frogs, a grid. If the slot is
// too small, the load returns an ErrFull that names the key of the plan to raise.
func loadRoom(s scope.Scope) (*Room, error) {
	return &Room{
		players: players.HandlePool(s, playersMost),
		lines:   container.NewDeque(s, lines, linesMost),
	}, nil
}

// has reports whether a player of that name is in the room.
func (r *Room) has(name Name) bool {
	for _, p := range r.players.All() {
		if p.Name == name {
			return true
		}
	}
	return false
}

// keep adds a line of chat and returns it. If the room has linesMost lines, keep removes the oldest
// first.
func (r *Room) keep(name Name, text []byte) *Line {
	if r.lines.Len() == linesMost {
		r.lines.PopFront()
	}
	line := Line{Name: name}
	line.Text.SetBytes(text)
	r.lines.PushBack(line)
	return r.lines.At(r.lines.Len() - 1)
}

// move plays one tick: each player hops one step towards its target.
func (r *Room) move() {
	for _, p := range r.players.All() {
		p.X += int16(cmp.Compare(p.ToX, p.X))
		p.Y += int16(cmp.Compare(p.ToY, p.Y))
	}
}

func (r *Room) appendPlaces(b []byte, tick uint32) []byte {
	b = binary.BigEndian.AppendUint32(append(b, kindPlaces), tick)
	for _, p := range r.players.All() {
		b = append(b, p.ID)
		b = binary.BigEndian.AppendUint16(b, uint16(p.X))
		b = binary.BigEndian.AppendUint16(b, uint16(p.Y))
	}
	return b
}

func (r *Room) appendNames(b []byte) []byte {
	b = append(b, kindNames)
	for _, p := range r.players.All() {
		b = appendName(append(b, p.ID), p.Name.Bytes())
	}
	return b
}

func (l *Line) append(b []byte) []byte {
	return append(appendName(append(b, kindSaid), l.Name.Bytes()), l.Text.Bytes()...)
}
