package serve

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/disk"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// room is a match: one map after the other, each in a slot of the plan. Only the room's worker uses
// the fields that aren't atomic, except the loader's.
type room struct {
	s      *Server
	number int
	late   string        // the flight recorder's reason for a late tick
	due    time.Duration // its next tick, since the server began

	play      *play                // nil if the map was unwound, and the next isn't loaded
	next      atomic.Pointer[play] // from the loader
	gone      atomic.Pointer[play] // to the loader
	ended     *play                // waits until the loader has released the one before
	recording atomic.Pointer[play] // play, for the keeper
	wanted    atomic.Bool          // the room needs a next map

	// clock and title have the map, epoch and tick for an Accept. A closed room takes no joins.
	clock  atomic.Uint64
	title  atomic.Uint64
	closed atomic.Bool

	inbox      inbox
	kept       *outlives
	inputs     *inputs // in kept, as the seats
	seats      []seat
	taken      atomic.Int32 // seats; only the worker changes it
	stage      *stage       // nil: the server has no pages
	wrong      uint32       // the first tick played with a wrong guess; the next tick if none
	logs       [2]inputLog  // of this map and the last
	free       int          // the loader's: the log for the next map
	scores     scoreLog
	saved      time.Duration // the time of the last save
	isOutlived bool          // it has a checkpoint of the process before
	spare      *play         // the loader's: a map without a game, for the next load of its name
	saving     atomic.Bool   // a save is on its way; another must not overtake it
	maps       uint32        // the loader's: the number of maps begun
	// The loader's: the time of the next attempt after all maps failed to load.
	again time.Duration
}

// newRoom makes a room without a map in the scope in.
func newRoom(s *Server, in scope.Scope, number int) *room {
	kept := &s.net.rooms[number]
	r := &room{s: s, number: number, late: fmt.Sprintf("room %d: a late tick", number), inbox: newInbox(in),
		kept: kept, inputs: &kept.inputs, seats: kept.seats[:s.net.places:s.net.places]}
	r.inputs.players = uint32(s.o.Players)
	if s.o.Inputs != "" {
		for i := range r.logs {
			size := disk.TickSize(s.o.Players)
			r.logs[i].bytes, r.logs[i].size = byteMaker.Slice(in, logTicks*size), size
		}
	}
	if s.o.HTTP != "" {
		r.stage = newStage(s.o.Players)
	}
	if s.o.Scores != "" {
		r.scores.list = scoreMaker.Slice(in, scoreMost)
	}
	return r
}

// tick plays a tick of the room, and reports whether it did. A room without players rests.
func (r *room) tick(w *worker, now time.Duration) (played bool) {
	r.give()
	if r.play == nil || r.play.tick >= r.s.mapTicks {
		r.change(w)
	}
	r.read(w, now)
	r.show(w)
	if r.play == nil || r.taken.Load() == 0 {
		return false
	}
	if err := r.run(w, now); err != nil {
		r.unwind(w, err)
	}
	return true
}

// run plays the tick, sends the views and saves. It turns a panic into an error.
func (r *room) run(w *worker, now time.Duration) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	if err := r.advance(w); err != nil {
		return err
	}
	r.farewell(now)
	r.checkpoint()
	r.publish()
	r.tell(w)
	r.keep(now)
	return nil
}

// change begins the next map, if it is loaded; until then the old one plays on.
func (r *room) change(w *worker) {
	next := r.next.Load()
	if next == nil {
		r.wanted.Store(true)
		return
	}
	r.end()
	r.play = next
	r.recording.Store(next)
	r.next.Store(nil)
	r.wanted.Store(false)
	r.wrong = next.tick
	if !next.isOutlived {
		r.enterAll(next)
	}
	r.checkpoint()
	r.publish()
	r.closed.Store(false)
}

// enterAll makes the players of the room enter its next map.
func (r *room) enterAll(next *play) {
	r.inputs.reset()
	for i := range r.seats {
		s := &r.seats[i]
		s.acked, s.newest, s.first, s.early, s.scored = 0, 0, next.tick, wire.NoInput, score{}
		switch {
		case i >= r.s.o.Players:
		case s.state == here:
			r.mark(i, true)
		case next.resumed: // absent since the save
			r.inputs.mark(next.tick).leave |= 1 << i
		}
	}
}

// end ends the map. The keeper writes the rest of its record, and the loader releases its slot.
func (r *room) end() {
	if r.play == nil {
		return
	}
	r.log(r.wrong) // later ticks aren't final
	r.play.over.Store(true)
	r.ended, r.play = r.play, nil
	r.give()
}

// give hands the ended map to the loader, as soon as the loader has finished the one before.
func (r *room) give() {
	if r.ended != nil && r.gone.Load() == nil {
		r.gone.Store(r.ended)
		r.ended = nil
	}
}

// publish stores the room's map, epoch and tick for Accepts.
func (r *room) publish() {
	p := r.play
	r.title.Store(binary.LittleEndian.Uint64(p.title[:]))
	r.clock.Store(uint64(p.epoch())<<32 | uint64(p.tick))
}

// advance plays the tick. If a guess was wrong, it first restores the state before that tick and
// plays the ticks since then again.
func (r *room) advance(w *worker) error {
	p := r.play
	if r.wrong != p.tick {
		w.rollbacks++
		if err := p.level.Snapshots.Restore(context.Background(), uint64(r.wrong)); err != nil {
			return err
		}
		for tick := r.wrong; tick != p.tick; tick++ {
			w.again++
			if err := r.step(w, tick); err != nil {
				return err
			}
		}
	}
	if err := r.s.o.Plant.into(w, r); err != nil {
		return err
	}
	if err := r.step(w, p.tick); err != nil {
		return err
	}
	p.tick++
	r.wrong = p.tick
	r.inputs.open(p.tick)
	r.log(p.tick - uint32(min(p.tick, uint32(r.s.o.Rollback))))
	return nil
}

// step takes a snapshot of the state before a tick, and plays it.
func (r *room) step(w *worker, tick uint32) error {
	if err := r.play.level.Snapshots.Take(uint64(tick)); err != nil {
		return err
	}
	return r.play.game.StepBy(w.crew, r.inputs.compose(tick))
}

// log hands the inputs of the ticks before to, which are final, to the keeper.
func (r *room) log(to uint32) {
	p := r.play
	if p.record == nil || p.cut {
		return
	}
	for ; int32(to-p.logged) > 0; p.logged++ {
		if p.cut = !p.inputs.add(r.inputs.of(p.logged)); p.cut {
			r.s.unrecorded.Add(1)
			return
		}
	}
}

func (r *room) read(w *worker, now time.Duration) {
	for m := r.inbox.first(); m != nil; m = r.inbox.first() {
		s := &r.seats[m.place]
		switch {
		case m.what == joined:
			r.join(w, int(m.place), m)
		case s.state == empty || s.session != m.session: // the message is of a player that has left
		case m.what == moved:
			s.heard, s.address, s.nonce = m.came, m.address, m.nonce
		case m.what == leaves:
			r.leave(int(m.place))
		default:
			r.hear(w, int(m.place), m)
		}
		if s.session == m.session && int32(m.sequence-s.received) > 0 {
			s.received = m.sequence
		}
		r.inbox.done(&r.s.net.roomSessions(r.number)[m.place])
	}
	for i := range r.seats {
		if s := &r.seats[i]; s.state == here && now.Nanoseconds()-s.heard > r.s.o.Timeout.Nanoseconds() {
			w.timedOut++
			r.notice(w, i, wire.TimedOut, 0)
			r.leave(i)
		}
	}
}

// join seats a player. A player with the name of the seat's last player goes on as before.
func (r *room) join(w *worker, place int, m *message) {
	from := &r.s.net.roomSessions(r.number)[place]
	s := &r.seats[place]
	back := s.name == from.name && from.name != (wire.Name{})
	scored := s.scored
	*s = seat{heard: m.came, nonce: m.nonce, session: from.id, key: from.key, name: from.name, address: m.address,
		state: here, early: wire.NoInput}
	if r.taken.Add(1); place < r.s.o.Players && r.play != nil {
		if back {
			s.scored = scored
		}
		s.first = r.play.tick
		r.inputs.forget(place, r.play.tick)
		r.mark(place, !back)
	}
	if r.play == nil { // the map has ended meanwhile
		r.notice(w, place, wire.RoomEnded, 0)
		r.dismiss(place)
		w.flush()
	}
}

// mark makes a player enter with the next tick.
func (r *room) mark(player int, fresh bool) {
	m, bit := r.inputs.mark(r.play.tick), uint32(1)<<player
	m.enter, m.leave = m.enter|bit, m.leave&^bit
	if fresh {
		m.fresh |= bit
	}
}

// leave makes a player leave with the next tick.
func (r *room) leave(place int) {
	r.seats[place].state = going
	if place < r.s.o.Players && r.play != nil {
		r.inputs.mark(r.play.tick).leave |= 1 << place
	}
}

// farewell writes the scores of players that left, and frees their places.
func (r *room) farewell(now time.Duration) {
	for i := range r.seats {
		if r.seats[i].state == going {
			r.score(i, now)
			r.dismiss(i)
		}
	}
}

// dismiss frees a place, which the receiver may then give to another player.
func (r *room) dismiss(place int) {
	r.seats[place].state = empty
	r.taken.Add(-1)
	r.s.net.roomSessions(r.number)[place].taken.Store(0)
}

func (r *room) hear(w *worker, place int, m *message) {
	s := &r.seats[place]
	s.heard, s.epoch = m.came, m.epoch
	if r.play == nil || m.epoch != r.play.epoch() {
		w.foreign += uint64(m.count)
		return
	}
	if int32(m.ack-s.acked) > 0 && int32(s.sequence-m.ack) >= 0 {
		s.acked = m.ack
	}
	if place >= r.s.o.Players || m.count == 0 {
		return
	}
	p := r.play
	if s.early == wire.NoInput || int32(m.tick-s.newest) > 0 {
		s.newest, s.early = m.tick, int8(max(-127, min(127, int32(m.tick-p.tick))))
	}
	oldest := p.tick - min(p.tick, uint32(r.s.o.Rollback))
	for i := range uint32(m.count) {
		tick := m.tick - i
		if int32(tick-s.first) < 0 { // from before the save, or of a former player
			w.late++
			continue
		}
		switch r.inputs.hear(place, tick, p.tick, oldest, m.inputs[i]) {
		case early:
			w.early++
		case late:
			w.late++
		case wrong:
			if int32(tick-r.wrong) < 0 {
				r.wrong = tick
			}
		}
	}
}

// unwind ends the room's map after an error, without effect on other rooms. It sends the players a
// notice and frees their places. The loader then releases the slot and loads another map.
func (r *room) unwind(w *worker, err error) {
	r.s.fault(r, err)
	r.closed.Store(true)
	for i := range r.seats {
		if r.seats[i].state != empty {
			r.notice(w, i, wire.RoomEnded, 0)
			r.dismiss(i)
		}
	}
	w.flush()
	r.forget()
	r.end()
	r.wanted.Store(true)
}

func place(x, y int16) doom.Point {
	return doom.Point{X: int32(x) << doom.UnitBits, Y: int32(y) << doom.UnitBits}
}
