// Package rooms is the program rooms with its memory in a budget. The directory of rooms is in one
// region. Each room is in a slot, which is released when the room ends.
package rooms

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
	"github.com/upfront-mem/upfront/tests/strangers/work"
)

// recalled is the number of lines that a joining player recalls.
const recalled = 8

// planJSON is the plan: the need that budget.Measure measured, and a little to spare.
//
//go:embed plan.json
var planJSON []byte

type (
	name   = arena.Inline[[work.NameSize]byte]
	player struct{ Energy, Said, Spoke uint32 }
	line   struct {
		NameSize, TextSize uint8
		Name               [work.NameSize]byte
		Text               [work.TextSize]byte
	}
)

// set sets the name and text of the line. It returns false if one of them is too long.
func (l *line) set(name, text []byte) bool {
	l.NameSize, l.TextSize = uint8(len(name)), uint8(len(text))
	return copy(l.Name[:], name) == len(name) && copy(l.Text[:], text) == len(text)
}

var (
	numbers = scope.Plain[int32]()
	names   = scope.Plain[name]()
	players = scope.Plain[player]()
	lines   = scope.Plain[line]()
)

// room is an open room, or a place for one. Its lists and its map are in its slot.
type room struct {
	slot    budget.Region
	players container.List[player]
	names   container.List[name]       // of the players, in their order
	byName  container.StringMap[int32] // the player's number in players and names
	lines   []line                     // a ring
	said    int                        // lines that were said in the room
}

func (r *room) load(s scope.Scope) (*room, error) {
	r.players = container.NewList(s, players, work.RoomPlayers)
	r.names = container.NewList(s, names, work.RoomPlayers)
	r.byName = container.NewStringMap(s, numbers, work.RoomPlayers, work.NameSize)
	r.lines = lines.Slice(s, work.RoomTexts)
	r.said = 0
	return r, nil
}

func (r *room) player(name []byte) (int, bool) {
	i := r.byName.GetBytes(name)
	if i == nil {
		return 0, false
	}
	return int(*i), true
}

func (r *room) add(text []byte, tick uint32) error {
	var n name
	if !n.SetBytes(text) || !r.players.Push(player{Energy: 100, Spoke: tick}) || !r.names.Push(n) {
		return fmt.Errorf("no room for the player %q", text)
	}
	return r.byName.SetBytes(text, int32(r.players.Len()-1))
}

// remove removes the player with a number. The last player then gets that number.
func (r *room) remove(i int) {
	r.byName.DeleteBytes(r.names.At(i).Bytes())
	r.players.RemoveSwap(i)
	r.names.RemoveSwap(i)
	if i < r.players.Len() {
		*r.byName.GetBytes(r.names.At(i).Bytes()) = int32(i)
	}
}

func (r *room) chat(i int, name, text []byte, tick uint32) error {
	l := &r.lines[r.said%work.RoomTexts]
	r.said++
	if !l.set(name, text) {
		return fmt.Errorf("no room for the line %q of %q", text, name)
	}
	all := r.players.Slice()
	all[i].Said++
	all[i].Spoke = tick
	for i := range all {
		all[i].Energy = work.Hear(all[i].Energy, len(text))
	}
	return nil
}

func (r *room) recall(sum *work.Sum, n int) {
	for i := max(r.said-n, 0); i < r.said; i++ {
		l := &r.lines[i%work.RoomTexts]
		sum.Bytes(l.Name[:l.NameSize])
		sum.Bytes(l.Text[:l.TextSize])
	}
}

// turn plays the players' turns after a tick, and removes idle players. It returns the energy of
// the players that stay, and of the removed players.
func (r *room) turn(tick uint32) (energy, idle uint64) {
	all := r.players.Slice()
	for i := len(all) - 1; i >= 0; i-- { // backwards: the player that remove moves had its turn
		p := &all[i]
		if tick-p.Spoke > work.Idle {
			idle += uint64(p.Energy)
			r.remove(i)
			all = r.players.Slice()
			continue
		}
		p.Energy = work.Tire(p.Energy, p.Said)
		energy += uint64(p.Energy)
	}
	return energy, idle
}

type server struct {
	slots   *budget.Slots
	byCode  container.StringMap[int32] // the number of a room that is open
	free    container.List[int32]      // the numbers of the rooms that aren't open
	rooms   [work.RoomsAtOnce]room
	sum     work.Sum
	refused uint64
	idle    uint64
}

func newServer(b *budget.Budget) (*server, error) {
	v := &server{slots: b.Slots("room")}
	region := b.Region("directory")
	_, err := budget.Load(context.Background(), region, func(s scope.Scope) (*server, error) {
		v.byCode = container.NewStringMap(s, numbers, work.RoomsAtOnce, work.RoomCodeSize)
		v.free = container.NewList(s, numbers, work.RoomsAtOnce)
		for i := range v.rooms {
			v.free.Push(int32(i))
		}
		return v, nil
	})
	return v, err
}

// open opens an empty room. It returns false if no place is free.
func (v *server) open(code []byte) (bool, error) {
	number, ok := v.free.Pop()
	if !ok {
		return false, nil
	}
	slot, err := v.slots.Acquire()
	if err != nil {
		return false, err
	}
	r := &v.rooms[number]
	r.slot = slot
	if _, err := budget.Load(context.Background(), slot, r.load); err != nil {
		return false, errors.Join(err, slot.Release(context.Background()))
	}
	return true, v.byCode.SetBytes(code, number)
}

func (v *server) end(code []byte, number int32) error {
	r := &v.rooms[number]
	v.sum.Add(uint64(r.players.Len()))
	r.recall(&v.sum, work.RoomTexts)
	v.byCode.DeleteBytes(code)
	v.free.Push(number)
	return r.slot.Release(context.Background())
}

// serve serves a packet. It returns false if the packet is refused.
func (v *server) serve(packet []byte, tick uint32) (bool, error) {
	p := work.Split(packet)
	at := v.byCode.GetBytes(p.Code)
	if p.Kind == work.Open {
		if at != nil {
			return false, nil
		}
		return v.open(p.Code)
	}
	if at == nil {
		return false, nil
	}
	r := &v.rooms[*at]
	if p.Kind == work.End {
		return true, v.end(p.Code, *at)
	}
	i, known := r.player(p.Name)
	if p.Kind == work.Join {
		if known || r.players.Len() == work.RoomPlayers {
			return false, nil
		}
		if err := r.add(p.Name, tick); err != nil {
			return false, err
		}
		r.recall(&v.sum, recalled)
		return true, nil
	}
	if !known {
		return false, nil
	}
	switch p.Kind {
	case work.Quit:
		v.sum.Add(uint64(r.players.At(i).Energy))
		r.remove(i)
	case work.Find:
		x := r.players.At(i)
		v.sum.Add(uint64(x.Energy)<<32 | uint64(x.Said))
	case work.Chat:
		return true, r.chat(i, p.Name, p.Text, tick)
	}
	return true, nil
}

func (v *server) turn(tick uint32) {
	var energy, count uint64
	for _, number := range v.byCode.All() {
		r := &v.rooms[*number]
		has, idle := r.turn(tick)
		energy += has
		v.idle += idle
		count += uint64(r.players.Len())
	}
	v.sum.Add(energy)
	v.sum.Add(count)
}

func (v *server) tick(packets *work.Packets, tick uint32) error {
	for b := packets.Next(); b != nil; b = packets.Next() {
		ok, err := v.serve(b, tick)
		if err != nil {
			return err
		}
		if !ok {
			v.refused++
		}
	}
	v.turn(tick)
	return nil
}

// close ends the open rooms. It doesn't change the sum.
func (v *server) close() (err error) {
	for _, number := range v.byCode.All() {
		err = errors.Join(err, v.rooms[*number].slot.Release(context.Background()))
	}
	v.byCode.Clear()
	return err
}

// Play plays the program with its memory in a budget.
func Play(m *work.Meter) (uint64, error) {
	plan, err := budget.ParsePlan(planJSON)
	if err != nil {
		return 0, err
	}
	b, err := budget.Open(plan)
	if err != nil {
		return 0, err
	}
	sum, err := play(b, m)
	return sum, errors.Join(err, b.Close())
}

func play(b *budget.Budget, m *work.Meter) (uint64, error) {
	v, err := newServer(b)
	if err != nil {
		return 0, err
	}
	packets := work.NewPackets()
	m.Ready()
	for tick := uint32(0); packets.Tick(); tick++ {
		m.Start()
		if err := v.tick(packets, tick); err != nil {
			return 0, errors.Join(err, v.close())
		}
		m.Stop()
	}
	v.sum.Add(v.refused)
	v.sum.Add(v.idle)
	return uint64(v.sum), v.close()
}
