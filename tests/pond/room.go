package main

import (
	"cmp"
	"encoding/binary"
	"errors"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// The limits of a room. plan.json has the bytes of a room and the number of rooms.
const (
	playersMost = 16 // their IDs are bytes
	linesMost   = 32 // of chat; a new player gets them

	checkpointSize = 32 * budget.KiB // for a room and the description of its types
)

// Name is the name of a player or a room. Two names compare with ==.
type Name = arena.Inline[[nameMost]byte]

// Hall, Player and Line are plain data in the room's slot, so their strings are Inlines. They are
// the room's state: a checkpoint has all of it, and so no type may have padding.
type (
	Hall struct {
		Tick uint32
	}
	Player struct {
		Heard, Spoke uint32 // the ticks of the last packet, and of the last line
		From         Address
		Name         Name
		X, Y         int16
		ToX, ToY     int16
		ID           uint8
		_            [1]byte
	}
	Line struct {
		Name Name
		Text arena.Inline[[textMost]byte]
	}
)

var (
	halls   = scope.Plain[Hall]()
	players = scope.Plain[Player]()
	lines   = scope.Plain[Line]()
)

// Room is a Go value. Its players and lines are in a slot of the budget, and end with it in one
// step.
type Room struct {
	slot    budget.Region
	number  uint32 // the slot's, and the index in Server.rooms
	name    Name
	hall    *Hall
	players scope.HandlePool[Player]
	lines   container.Deque[Line]

	ring       *save.Ring       // of the checkpoint
	checkpoint *save.Checkpoint // nil if the server makes none
}

// loadRoom fills a slot. Add the rest of your own game here: a map, frogs, a grid. If the slot is
// too small, the load returns an ErrFull that names the key of the plan to raise.
func loadRoom(s scope.Scope) (*Room, error) {
	r := &Room{hall: halls.New(s)}
	r.fill(s)
	return r, nil
}

// fill makes the data that changes in play.
func (r *Room) fill(s scope.Scope) {
	r.players = players.HandlePool(s, playersMost)
	r.lines = container.NewDeque(s, lines, linesMost)
}

// loadKept is loadRoom for a room with a checkpoint: all data that changes in play is a state.
func loadKept(s scope.Scope, slot budget.Region, checkpoints *save.Checkpoints) (r *Room, err error) {
	state, hall := save.Begin(slot, s, halls)
	r = &Room{hall: hall}
	r.fill(s)
	state.Verify(r.verify)
	r.ring = save.NewRing(s, 1, state) // the snapshot of a tick
	r.checkpoint, err = checkpoints.Attach(slot.Slot(), r.ring)
	return r, err
}

// verify returns an error for a checkpoint that no server left, because the file may be forged.
func (r *Room) verify(v save.View) error {
	var from, names, numbers = map[Address]bool{}, map[Name]bool{}, map[uint8]bool{}
	for _, p := range save.AllHandles(v, r.players) {
		if !isText(p.Name.Bytes(), nameMost) || p.ID >= playersMost || from[p.From] || names[p.Name] || numbers[p.ID] {
			return errors.New("a player whose name, number or address no server gives")
		}
		from[p.From], names[p.Name], numbers[p.ID] = true, true, true
	}
	if len(from) == 0 {
		return errors.New("a room without players")
	}
	for _, l := range r.lines.In(v).All() {
		if !isText(l.Name.Bytes(), nameMost) || !isText(l.Text.Bytes(), textMost) {
			return errors.New("a line that no player says")
		}
	}
	return nil
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
