package serve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"

	"github.com/upfront-mem/upfront/budget/view/live"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/web"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/wire"
)

// serveWeb shows browsers the budget at / and the rooms beside it, if that was asked for: from one
// plan to the next, on the same address. It is no part of play: it takes Go allocations, and its own
// time.
func (s *Server) serveWeb() (stop func() error, err error) {
	if s.o.HTTP == "" {
		return func() error { return nil }, nil
	}
	page := live.New(s.b, live.Options{Timeline: s.timeline, Links: []live.Link{{Name: "Rooms", Path: "rooms/"}}})
	hub := web.New(shown{s})
	mux := http.NewServeMux()
	mux.Handle("/", page)
	for _, path := range []string{"/rooms/", "/room/", "/map/"} {
		mux.Handle(path, hub)
	}
	server, err := live.Listen(s.o.HTTP, mux, live.ServerOptions{Public: s.o.HTTPPublic,
		PerAddress: s.o.HTTPEach})
	if err != nil {
		page.Close()
		return nil, errors.Join(fmt.Errorf("-http: %w", err), hub.Close())
	}
	fmt.Fprintf(s.o.Say, "frogpond: page on %s\n", server.URL())
	return func() error {
		err := server.Close()
		page.Close()
		return errors.Join(err, hub.Close())
	}, nil
}

// shown is a server as browsers are shown it. It reads what lies on the Go heap alone: rooms of a plan
// that is over answer, too, but say nothing of now.
type shown struct{ s *Server }

func (v shown) Rooms() int       { return v.s.o.Rooms }
func (v shown) Places() int      { return v.s.o.Players }
func (v shown) Maps() []doom.Map { return v.s.game.Maps }

// rooms are those of the last plan that was built; before the first, none.
func (v shown) rooms() []*room {
	if list := v.s.visible.Load(); list != nil {
		return *list
	}
	return nil
}

func (v shown) List() []web.Brief {
	list := []web.Brief{}
	for _, r := range v.rooms() {
		title := wire.MapName(binary.LittleEndian.AppendUint64(nil, r.title.Load()))
		list = append(list, web.Brief{Room: r.number, Map: string(title.Text()), Tick: uint32(r.clock.Load()),
			Players: int(r.taken.Load())})
	}
	return list
}

func (v shown) Scene(room int) *web.Scene {
	rooms := v.rooms()
	if room >= len(rooms) || !rooms[room].stage.ask() {
		return nil
	}
	return rooms[room].stage.scene(room)
}
