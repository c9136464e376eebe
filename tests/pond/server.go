package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

const (
	ticksPerSecond = 20
	silentMost     = 5 * ticksPerSecond // ticks; the longest silence of a player
)

// Seat is a place in the game for one address: a room, and a player in it.
type Seat struct {
	Room   uint32
	Player arena.Handle[Player]
}

var (
	addresses = scope.Plain[Address]()
	seats     = scope.Plain[Seat]()
	numbers   = scope.Plain[uint32]()
)

// Server holds the rooms and the seats in them. Two goroutines share it: one handles packets, the
// other plays the ticks.
type Server struct {
	conn        *net.UDPConn
	slots       *budget.Slots
	checkpoints *save.Checkpoints // nil: none

	mu     sync.Mutex                  // guards the fields below
	rooms  []*Room                     // by slot number; nil if the slot is free
	byName container.StringMap[uint32] // the numbers of rooms
	seats  container.Map[Address, Seat]
	out    []byte // the packet to send next
	drains bool
	counts struct{ joined, resumed, roomFull, serverFull, tooSmall, malformed, unkept int }
}

// openCheckpoints opens a file with a checkpoint for each slot. It puts a file that it can't read
// aside.
func openCheckpoints(name string, rooms int) (*save.Checkpoints, error) {
	plan := save.CheckpointPlan{Slots: rooms, Size: checkpointSize, Own: nameMost}
	c, err := save.OpenCheckpoints(name, plan)
	if errors.Is(err, save.ErrRefused) {
		log.Print(err)
		if err := os.Rename(name, name+".refused"); err != nil {
			return nil, err
		}
		return save.OpenCheckpoints(name, plan)
	}
	return c, err
}

// newServer returns a server that has at most one room for each slot of the plan. If checkpoints
// isn't nil, the server first opens the rooms that have a checkpoint.
func newServer(b *budget.Budget, conn *net.UDPConn, checkpoints *save.Checkpoints) (*Server, error) {
	slots := b.Slots("room")
	rooms := slots.Available()
	load := func(s scope.Scope) (*Server, error) {
		return &Server{
			conn:        conn,
			slots:       slots,
			checkpoints: checkpoints,
			rooms:       make([]*Room, rooms),
			byName:      container.NewStringMap(s, numbers, rooms, nameMost),
			seats:       container.NewMap(s, addresses, seats, rooms*playersMost),
			out:         s.Bytes(toldMost)[:0],
		}, nil
	}
	loaded, err := budget.Load(context.Background(), b.Region("server"), load)
	if server := loaded.Get(); err == nil && checkpoints != nil {
		for slot, err := range checkpoints.All() {
			if err == nil {
				err = server.resume(slot)
			}
			if err != nil {
				log.Print(err) // the room stays closed, until another one begins in its slot
			}
		}
	}
	return loaded.Get(), err
}

// resume opens the room of a checkpoint in its slot, with its players.
func (s *Server) resume(number int) error {
	slot, err := s.slots.AcquireAt(number)
	if err != nil {
		return err
	}
	room, err := s.load(slot)
	if err != nil {
		return err
	}
	tick, name, err := room.checkpoint.Restore(context.Background())
	if err == nil && (!isText(name, nameMost) || s.byName.GetBytes(name) != nil || tick != uint64(room.hall.Tick)) {
		err = fmt.Errorf("the checkpoint of slot %d: the name %q, or the tick %d, isn't its room's", number, name, tick)
	}
	for player, p := range room.players.All() {
		if s.seats.Get(p.From) != nil { // the kill came while the player went from room to room
			room.players.Put(player)
		}
	}
	if err == nil && room.players.Live() == 0 {
		err = fmt.Errorf("the checkpoint of slot %d: all players of %q are in other rooms", number, name)
	}
	if err != nil {
		return errors.Join(err, slot.Release(context.Background()))
	}
	for player, p := range room.players.All() {
		s.seats.Set(p.From, Seat{room.number, player})
		s.counts.resumed++
	}
	return s.add(room, name)
}

// receive handles packets until the socket is closed.
func (s *Server) receive() {
	packet := make([]byte, heardMost+1) // a packet that fills the buffer is too long
	for {
		n, from, err := s.conn.ReadFromUDPAddrPort(packet)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil && n <= heardMost: // Windows has an error for a packet that is too long
			time.Sleep(time.Millisecond) // the next read may also fail
		default:
			s.handle(addressOf(from), packet[:n])
		}
	}
}

// handle obeys a packet. It counts malformed packets and doesn't answer them.
func (s *Server) handle(from Address, packet []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(packet) == 0 || len(packet) > heardMost || !s.obey(from, packet[0], packet[1:]) {
		s.counts.malformed++
	}
}

// obey carries out a packet, and reports whether it is well-formed.
func (s *Server) obey(from Address, kind byte, rest []byte) bool {
	seat := s.seats.Get(from)
	if kind == kindJoin {
		player, room, ok := cutNames(rest)
		if ok {
			s.join(from, seat, player, room)
		}
		return ok
	}
	if seat == nil {
		s.send(from, append(s.out, kindEnd, whyNoSeat))
		return true
	}
	room := s.rooms[seat.Room]
	p := room.players.At(seat.Player)
	p.Heard = room.hall.Tick
	switch {
	case kind == kindHop && len(rest) == 4:
		p.ToX = int16(binary.BigEndian.Uint16(rest))
		p.ToY = int16(binary.BigEndian.Uint16(rest[2:]))
	case kind == kindSay && isText(rest, textMost):
		if p.Spoke != room.hall.Tick {
			p.Spoke = room.hall.Tick
			s.tell(room, room.keep(p.Name, rest).append(s.out))
		}
	case kind == kindLeave && len(rest) == 0:
		s.leave(*seat, whyLeft)
	default:
		return false
	}
	return true
}

// join gives an address a seat and welcomes it, or sends the reason for a refusal. An address that
// has a seat is only welcomed again.
func (s *Server) join(from Address, seat *Seat, playerName, roomName []byte) {
	if seat != nil {
		room := s.rooms[seat.Room]
		p := room.players.At(seat.Player)
		p.Heard = room.hall.Tick
		s.send(from, append(s.out, kindWelcome, p.ID))
	} else if why := s.admit(from, playerName, roomName); why != 0 {
		s.send(from, append(s.out, kindEnd, why))
	}
}

// admit gives an address a seat and returns 0, or returns the reason for a refusal.
func (s *Server) admit(from Address, playerName, roomName []byte) (why uint8) {
	if s.drains {
		return whyServerEnds
	}
	room, err := s.room(roomName)
	if errors.Is(err, budget.ErrNoSlot) {
		logFirst(&s.counts.serverFull, err)
		return whyServerFull
	}
	if errors.Is(err, budget.ErrFull) {
		logFirst(&s.counts.tooSmall, err)
		return whyTooSmall
	}
	if err != nil {
		log.Print(err)
		return whyServerEnds
	}
	var name Name
	if name.SetBytes(playerName); room.has(name) {
		return whyNameTaken
	}
	p, player := room.players.Get()
	if p == nil {
		s.counts.roomFull++
		return whyRoomFull
	}
	p.From, p.Name, p.ID = from, name, uint8(room.players.Index(player))
	p.Heard, p.Spoke = room.hall.Tick, room.hall.Tick-1
	// never full: the map has a seat for each player of each room
	s.seats.Set(from, Seat{room.number, player})
	s.counts.joined++
	s.send(from, append(s.out, kindWelcome, p.ID))
	s.send(from, room.appendNames(s.out))
	for _, line := range room.lines.All() {
		s.send(from, line.append(s.out))
	}
	return 0
}

// logFirst counts an error, and logs the first one, which names the key of the plan to raise.
func logFirst(count *int, err error) {
	if *count++; *count == 1 {
		log.Print(err)
	}
}

// room returns the room with that name. If it isn't open, room opens it in a free slot, and fails
// with an ErrNoSlot if there is none, or with an ErrFull if the slot is too small.
func (s *Server) room(name []byte) (*Room, error) {
	if number := s.byName.GetBytes(name); number != nil {
		return s.rooms[*number], nil
	}
	slot, err := s.slots.Acquire()
	if err != nil {
		return nil, err
	}
	room, err := s.load(slot)
	if err != nil {
		return nil, err
	}
	return room, s.add(room, name)
}

// load fills a slot. If it fails, it releases the slot.
func (s *Server) load(slot budget.Region) (*Room, error) {
	load := loadRoom
	if s.checkpoints != nil {
		load = func(scope scope.Scope) (*Room, error) { return loadKept(scope, slot, s.checkpoints) }
	}
	loaded, err := budget.Load(context.Background(), slot, load)
	if err != nil {
		return nil, errors.Join(err, slot.Release(context.Background()))
	}
	room := loaded.Get()
	room.slot, room.number = slot, uint32(slot.Slot())
	return room, nil
}

// add makes a room known by its name.
func (s *Server) add(room *Room, name []byte) error {
	room.name.SetBytes(name)
	s.rooms[room.number] = room
	return s.byName.SetBytes(name, room.number)
}

// leave ends a seat and sends its player the reason. If the player is the last one, leave also ends
// the room and frees its slot.
func (s *Server) leave(seat Seat, why uint8) {
	room := s.rooms[seat.Room]
	from := room.players.At(seat.Player).From
	s.send(from, append(s.out, kindEnd, why))
	s.seats.Delete(from)
	room.players.Put(seat.Player)
	if room.players.Live() > 0 {
		return
	}
	s.rooms[seat.Room] = nil
	s.byName.DeleteBytes(room.name.Bytes())
	if room.checkpoint != nil {
		if err := room.checkpoint.Clear(); err != nil {
			log.Print(err)
		}
	}
	if err := room.slot.Release(context.Background()); err != nil {
		log.Print(err)
	}
}

// step plays a tick of each room and sends the places to its players.
func (s *Server) step() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, room := range s.rooms {
		if room == nil {
			continue
		}
		room.hall.Tick++
		for player, p := range room.players.All() {
			if room.hall.Tick-p.Heard > silentMost {
				s.leave(Seat{room.number, player}, whySilent)
			}
		}
		if s.rooms[room.number] == nil {
			continue // all were silent
		}
		room.move()
		s.tell(room, room.appendPlaces(s.out, room.hall.Tick))
		if room.hall.Tick%ticksPerSecond == 0 {
			s.tell(room, room.appendNames(s.out))
		}
		if room.checkpoint != nil {
			if err := room.checkpoint.Write(uint64(room.hall.Tick), room.name.Bytes()); err != nil {
				logFirst(&s.counts.unkept, err)
			}
		}
	}
}

// drain refuses joins from now on. If end is set, it also ends all seats and so the rooms. It
// reports whether the server is empty.
func (s *Server) drain(end bool) (empty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drains = true
	if end {
		for _, seat := range s.seats.All() {
			s.leave(*seat, whyServerEnds)
		}
	}
	return s.seats.Len() == 0
}

func (s *Server) tell(room *Room, packet []byte) {
	for _, p := range room.players.All() {
		s.send(p.From, packet)
	}
}

// send sends a packet. It ignores errors, because the network may lose a packet anyway.
func (s *Server) send(to Address, packet []byte) {
	s.conn.WriteToUDPAddrPort(packet, to.addrPort())
}
