package serve

import (
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// tell sends each player its view, and the notices that are due.
func (r *room) tell(w *worker) {
	epoch := r.play.epoch()
	for i := range r.seats {
		s := &r.seats[i]
		if s.state == empty {
			continue
		}
		if tick := r.play.tick; tick%8 == 1 && (tick < ticksPerSecond || s.epoch != epoch) {
			r.notice(w, i, wire.NextMap, 0)
		}
		if left, closing := r.s.closingIn(); closing && (r.play.tick+uint32(i))%noticeEvery == 0 {
			r.notice(w, i, wire.Closing, left)
		}
		w.played++
		if (int(r.play.tick)+i)%r.s.o.Every == 0 {
			r.showTo(w, i)
		}
	}
	w.flush()
}

// noticeEvery is the number of ticks until a notice is repeated.
const noticeEvery = 18

// showTo sends a player a State: the difference to the newest State that the player has.
func (r *room) showTo(w *worker, place int) {
	s, ring := &r.seats[place], r.s.net.ring(r.number, place)
	s.sequence++
	want := ring.At(s.sequence)
	var flags uint8
	if !r.look(w, place, want) {
		flags = wire.NotHere
	}
	header := wire.AppendHeader(w.packet(s), wire.State, s.session, s.sequence)
	packet, whole := wire.AppendState(header, r.s.o.Bytes, want, ring.Base(s.acked, s.sequence), s.early,
		flags)
	if !whole {
		w.cut++
	}
	w.send(s, packet)
}

// look fills a view, and reports whether its player is in the map. A watcher has no player.
func (r *room) look(w *worker, place int, v *wire.View) (isHere bool) {
	s, g := &r.seats[place], r.play.game
	v.Sequence, v.Tick, v.Epoch, v.Self = s.sequence, r.play.tick, r.play.epoch(), wire.Self{}
	player := -1 // a watcher
	if place < r.s.o.Players {
		player = place
	}
	if p := r.play.level.Player(player); p != nil {
		isHere = true
		v.Self = wire.Self{X: p.At.X, Y: p.At.Y, Heading: uint16(p.Heading), Health: int16(p.Health),
			Caught: p.Caught, Deaths: uint16(p.Deaths), Exits: uint16(p.Exits), Keys: uint16(p.Keys)}
	}
	v.Self.Frogs = uint16(r.play.level.Frogs.Live())
	seen, _ := g.See(w.crew, player, w.seen[:0])
	if len(seen) > wire.Things {
		w.crowded++
		seen = crowd(seen, r.play.tick)
	}
	v.Count = uint16(len(seen))
	for i := range seen {
		t := &seen[i]
		v.Things[i] = wire.Thing{Number: t.Number, X: t.X, Y: t.Y, Kind: t.Kind, Heading: t.Heading}
	}
	return isHere
}

// crowd chooses the objects for a view that is too small for all: all players, and a run of the
// other objects. The run moves on, so that each object has its turn.
func crowd(seen []game.Seen, tick uint32) []game.Seen {
	players := 0
	for players < len(seen) && seen[players].Kind == game.SeenPlayer {
		players++
	}
	others := seen[players:]
	from, count := int(tick/crowdTicks*crowdTicks)%len(others), wire.Things-players
	if over := from + count - len(others); over > 0 { // the first ones and the last, in order
		copy(others[over:], others[from:])
	} else {
		copy(others, others[from:from+count])
	}
	return seen[:wire.Things]
}

// crowdTicks is the number of ticks until the run moves on, by as many objects.
const crowdTicks = 16

func (r *room) notice(w *worker, place int, reason wire.NoticeReason, seconds uint32) {
	s := &r.seats[place]
	s.sequence++
	n := wire.NoticePacket{Reason: reason, Seconds: seconds}
	if reason == wire.NextMap {
		n.Epoch, n.Map = r.play.epoch(), r.play.title
	}
	header := wire.AppendHeader(w.packet(s), wire.Notice, s.session, s.sequence)
	w.send(s, wire.AppendNotice(header, &n))
}
