package serve

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"reflect"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// A checkpoint makes a room outlive the process. It has the state of the room's map, and the bytes
// of an outlives: the room's seats and inputs, and the data that the load of the map needs. The
// room writes one in each tick after the play, and before anything about that tick is sent. So a
// client never has an epoch that the newest checkpoint doesn't know. Views and messages in inboxes
// aren't in it: the next process gives the map a new epoch, and clients begin with new views.

// outlives is the plain data of a room that outlives the process, but for the state of its map. The
// room uses it in place; a checkpoint has a copy of its bytes.
type outlives struct {
	types        uint64 // of this type: see outlivesTypes
	seed         uint64 // of the play
	origin       int64  // of the receiver
	secret       wire.Key
	title        wire.MapName
	room, number uint32
	tick         uint32 // also the number of the snapshot
	_            uint32
	seats        [PlayersMost + watchers]seat
	inputs       inputs
}

const (
	// checkpointSize is the bytes for a map's state and the description of its types. The largest
	// of Freedoom's takes 97 KiB.
	checkpointSize = 128 << 10

	outlivesSize = int(unsafe.Sizeof(outlives{}))

	// sequenceJump is more packets than a server sends to a player after a checkpoint.
	sequenceJump = 1 << 20
)

func (k *outlives) bytes() []byte { return (*[outlivesSize]byte)(unsafe.Pointer(k))[:] }

// outlivesTypes identifies the layout of outlives. Another program's bytes aren't read.
var outlivesTypes = sync.OnceValue(func() uint64 {
	h := fnv.New64a()
	describe(h, reflect.TypeFor[outlives]())
	return h.Sum64()
})

// describe writes the fields of a type, with their kinds and offsets.
func describe(to io.Writer, t reflect.Type) {
	fmt.Fprintln(to, t, t.Kind(), t.Size())
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			fmt.Fprintln(to, t.Field(i).Name, t.Field(i).Offset)
			describe(to, t.Field(i).Type)
		}
	case reflect.Array:
		describe(to, t.Elem())
	}
}

// openCheckpoints opens the file of -checkpoints. It puts a file that it can't read aside.
func (s *Server) openCheckpoints() (err error) {
	name := s.o.Checkpoints
	plan := save.CheckpointPlan{Slots: s.o.Rooms, Size: checkpointSize, Own: uint64(outlivesSize)}
	s.checkpoints, err = save.OpenCheckpoints(name, plan)
	if errors.Is(err, save.ErrRefused) && s.server == nil { // else the other server plays on
		s.say(fmt.Errorf("-checkpoints: %w; it is %s.refused now", err, name))
		if err = os.Rename(name, name+".refused"); err == nil {
			s.checkpoints, err = save.OpenCheckpoints(name, plan)
		}
	}
	if err != nil {
		return fmt.Errorf("-checkpoints: %w", err)
	}
	return nil
}

// checkpoint makes the state before the room's next tick its checkpoint.
func (r *room) checkpoint() {
	p, k := r.play, r.kept
	if p.checkpoint == nil {
		return
	}
	k.types, k.secret, k.origin = outlivesTypes(), r.s.receiver.secret, r.s.receiver.origin
	k.room, k.title, k.seed, k.number, k.tick = uint32(r.number), p.title, p.seed, p.number, p.tick
	err := p.level.Snapshots.Take(uint64(p.tick))
	if err == nil {
		err = p.checkpoint.Write(uint64(p.tick), k.bytes())
	}
	r.s.keeper.check(err)
}

// forget empties the checkpoint of a room whose map ends without a next one.
func (r *room) forget() {
	if r.play.checkpoint != nil {
		r.s.keeper.check(r.play.checkpoint.Clear())
	}
}

// outlived loads and returns the map of a room as its checkpoint has it, and seats the players
// again. After an error the room is as before.
func (l *loader) outlived(r *room) (p *play, err error) {
	own, err := l.s.checkpoints.Own(r.number)
	var k *outlives
	if err == nil {
		k, err = l.s.readOutlives(r, own)
	}
	if err == nil {
		p, err = l.loadNamed(r, k.title, max(k.number+1, r.maps), func(p *play) (state []byte, err error) {
			if k, err = p.outlive(r); err != nil || l.s.o.Inputs == "" {
				return nil, err
			}
			return p.file(nil)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("room %d: its checkpoint: %w", r.number, err)
	}
	*r.kept = *k
	l.s.seatAgain(r)
	return p, nil
}

// outlive makes the state of the play that of the room's checkpoint, and returns the rest.
func (p *play) outlive(r *room) (*outlives, error) {
	tick, own, err := p.checkpoint.Restore(context.Background())
	if err != nil {
		return nil, err
	}
	k, err := r.s.readOutlives(r, own)
	if err != nil {
		return nil, err
	}
	if k.title != p.title || tick != uint64(k.tick) || p.level.Room.Tick != k.tick {
		return nil, fmt.Errorf("it is of tick %d of %s; its state is of tick %d of %s", k.tick, k.title.Text(),
			p.level.Room.Tick, p.title.Text())
	}
	p.tick, p.logged, p.seed, p.isOutlived = k.tick, k.tick, k.seed, true
	return k, nil
}

// readOutlives returns the outlives in the bytes of a checkpoint, if it is one that this server may
// have written.
func (s *Server) readOutlives(r *room, own []byte) (*outlives, error) {
	k := new(outlives)
	if copy(k.bytes(), own); len(own) != outlivesSize || k.types != outlivesTypes() {
		return nil, errors.New("its seats and inputs are damaged, or have the types of another version of frogpond")
	}
	if k.room != uint32(r.number) || k.inputs.players != uint32(s.o.Players) {
		return nil, fmt.Errorf("it is of room %d with -players %d; here it is -players %d", k.room, k.inputs.players,
			s.o.Players)
	}
	for i := range k.seats {
		if err := k.seats[i].check(r.number*s.net.places+i, i >= s.net.places); err != nil {
			return nil, fmt.Errorf("seat %d: %w", i, err)
		}
	}
	for tick := range window {
		for i := range PlayersMost {
			for _, in := range []game.Input{k.inputs.came[tick][i], k.inputs.played[tick][i]} {
				if in.Heading > 15 || (in.SpawnAt.X|in.SpawnAt.Y)&(1<<doom.UnitBits-1) != 0 {
					return nil, fmt.Errorf("an input of player %d has the heading %d and spawns at %v", i, in.Heading,
						in.SpawnAt)
				}
			}
		}
	}
	return k, nil
}

// check returns an error for the seat of a forged checkpoint. at is the index of its session.
func (s *seat) check(at int, beyond bool) error {
	switch {
	case s.state > going || beyond && *s != (seat{}):
		return fmt.Errorf("its state is %d", s.state)
	case s.session != 0 && int(s.session&(1<<idBits-1)) != at, s.session == 0 && s.state != empty:
		return fmt.Errorf("it is of session %#x", s.session)
	case wire.MakeName(string(s.name.Text())) != s.name:
		return fmt.Errorf("its player's name is %q", s.name[:])
	case s.state != empty && !udp.IsSize(s.address.Size):
		return fmt.Errorf("its address has %d bytes", s.address.Size)
	case s.sequence > math.MaxUint32-2*sequenceJump:
		return fmt.Errorf("its player got %d packets", s.sequence)
	}
	return nil
}

// seatAgain seats the players of an outlives that is the room's from now on. Packets of the last
// process may have come after the checkpoint, so sequences jump.
func (s *Server) seatAgain(r *room) {
	s.receiver.secret, s.receiver.origin = r.kept.secret, r.kept.origin
	s.receiver.cookies = wire.MakeCookies(r.kept.secret)
	taken := int32(0)
	for i := range r.seats {
		seat, session, at := &r.seats[i], &s.net.roomSessions(r.number)[i], r.number*s.net.places+i
		if seat.session == 0 {
			continue // it was never taken
		}
		session.id, session.nonce, session.key, session.name = seat.session, seat.nonce, seat.key, seat.name
		session.address, session.window = seat.address, wire.WindowAfter(seat.received)
		s.receiver.nonces[at], s.receiver.networks[at] = seat.nonce, seat.address.Network()
		seat.heard, seat.sequence = s.now().Nanoseconds(), seat.sequence+sequenceJump
		seat.acked, seat.first, seat.early = 0, r.kept.tick, wire.NoInput
		if seat.state != empty {
			session.taken.Store(1)
			taken++
		}
	}
	r.taken.Store(taken)
}
