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

// serveWeb serves pages of the budget at / and of the rooms below /rooms, if the options ask for
// them. The address stays when the plan changes. Pages allocate on the Go heap, but outside of
// ticks.
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

// shown is the server's data for browsers. It reads only the Go heap, so it also works for rooms of
// a closed plan, with old data.
type shown struct{ s *Server }

func (v shown) Rooms() int       { return v.s.o.Rooms }
func (v shown) Places() int      { return v.s.o.Players }
func (v shown) Maps() []doom.Map { return v.s.game.Maps }

// rooms returns the rooms of the last plan that was built, or nil.
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
