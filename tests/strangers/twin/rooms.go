package twin

import "github.com/upfront-mem/upfront/tests/strangers/work"

type player struct {
	name   string
	energy uint32
	said   uint32
	seen   int // the tick of the last text, or of the join
}

type line struct {
	name string
	text []byte // the array stays with the place in the ring
}

type room struct {
	code    string
	players []player         // in no order
	byName  map[string]int32 // indices into players
	lines   [work.RoomTexts]line
	said    int // lines so far
}

type server struct {
	open   []*room // in no order
	byCode map[string]*room
	ended  []*room // to open again
	sum    work.Sum
	no     uint64 // packets that were refused
	idle   uint64 // energy of players that were removed
	tick   int
}

// Rooms plays the program rooms. An ended room is opened again with its grown
// memory; names are strings, made once for each join.
func Rooms(m *work.Meter) (uint64, error) {
	s := &server{byCode: make(map[string]*room, work.RoomsAtOnce)}
	packets := work.NewPackets()
	m.Ready()
	for packets.Tick() {
		m.Start()
		for b := packets.Next(); b != nil; b = packets.Next() {
			if !s.handle(work.Split(b)) {
				s.no++
			}
		}
		players, energy := 0, uint64(0)
		for _, r := range s.open {
			energy += s.turn(r)
			players += len(r.players)
		}
		s.sum.Add(energy)
		s.sum.Add(uint64(players))
		s.tick++
		m.Stop()
	}
	s.sum.Add(s.no)
	s.sum.Add(s.idle)
	return uint64(s.sum), nil
}

// handle serves a packet. It returns false if the packet is refused.
func (s *server) handle(p work.Packet) bool {
	r := s.byCode[string(p.Code)]
	if p.Kind == work.Open {
		if r != nil || len(s.open) == work.RoomsAtOnce {
			return false
		}
		s.openRoom(string(p.Code))
		return true
	}
	if r == nil {
		return false
	}
	if p.Kind == work.End {
		s.endRoom(r)
		return true
	}
	at, known := r.byName[string(p.Name)]
	if p.Kind == work.Join {
		if known || len(r.players) == work.RoomPlayers {
			return false
		}
		s.join(r, string(p.Name))
		return true
	}
	if !known {
		return false
	}
	who := &r.players[at]
	switch p.Kind {
	case work.Quit:
		s.sum.Add(uint64(who.energy))
		r.remove(at)
	case work.Find:
		s.sum.Add(uint64(who.energy)<<32 | uint64(who.said))
	case work.Chat:
		who.said++
		who.seen = s.tick
		r.say(who.name, p.Text)
	}
	return true
}

func (s *server) openRoom(code string) {
	var r *room
	if last := len(s.ended) - 1; last >= 0 {
		r, s.ended = s.ended[last], s.ended[:last]
	} else {
		r = &room{byName: map[string]int32{}}
	}
	r.code = code
	s.open = append(s.open, r)
	s.byCode[code] = r
}

func (s *server) endRoom(r *room) {
	s.sum.Add(uint64(len(r.players)))
	s.recall(r, work.RoomTexts)
	delete(s.byCode, r.code)
	for i, other := range s.open {
		if other == r {
			last := len(s.open) - 1
			s.open[i] = s.open[last]
			s.open = s.open[:last]
			break
		}
	}
	clear(r.byName)
	clear(r.players) // drops the names
	r.players = r.players[:0]
	for i := range r.lines {
		r.lines[i].name = ""
	}
	r.said = 0
	s.ended = append(s.ended, r)
}

func (s *server) recall(r *room, n int) {
	for i := max(0, r.said-n); i < r.said; i++ {
		l := &r.lines[i%work.RoomTexts]
		s.sum.Bytes([]byte(l.name))
		s.sum.Bytes(l.text)
	}
}

func (s *server) join(r *room, name string) {
	r.byName[name] = int32(len(r.players))
	r.players = append(r.players, player{name: name, energy: 100, seen: s.tick})
	s.recall(r, 8)
}

func (r *room) remove(at int32) {
	delete(r.byName, r.players[at].name)
	last := int32(len(r.players) - 1)
	if at != last {
		r.players[at] = r.players[last]
		r.byName[r.players[at].name] = at
	}
	r.players[last] = player{}
	r.players = r.players[:last]
}

func (r *room) say(name string, text []byte) {
	l := &r.lines[r.said%work.RoomTexts]
	l.name = name
	l.text = append(l.text[:0], text...)
	r.said++
	for i := range r.players {
		p := &r.players[i]
		p.energy = work.Hear(p.energy, len(text))
	}
}

// turn plays a room's tick. It returns the energy of the room's players.
func (s *server) turn(r *room) (energy uint64) {
	for i := len(r.players) - 1; i >= 0; i-- { // backwards: remove moves the last player here
		p := &r.players[i]
		if s.tick-p.seen > work.Idle {
			s.idle += uint64(p.energy)
			r.remove(int32(i))
			continue
		}
		p.energy = work.Tire(p.energy, p.said)
		energy += uint64(p.energy)
	}
	return energy
}
