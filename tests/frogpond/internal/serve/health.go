package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// listenHealth opens the port of -health, or returns nil without the option. It runs before the
// rooms are built, so that a server whose port is in use has nothing to release.
func (s *Server) listenHealth() (net.Listener, error) {
	if s.o.Health == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", s.o.Health)
	if err != nil {
		return nil, fmt.Errorf("-health: %w", err)
	}
	if a := listener.Addr().(*net.TCPAddr); !a.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("-health %s: health is for this machine alone; use 127.0.0.1:PORT", s.o.Health),
			listener.Close())
	}
	return listener, nil
}

// serveHealth answers requests for the server's health, in the format of Agones' REST SDK. stop
// ends it and closes the listener. It allocates on the Go heap, but outside of ticks.
func (s *Server) serveHealth(listener net.Listener) (stop func()) {
	if listener == nil {
		return func() {}
	}
	at := listener.Addr().(*net.TCPAddr)
	fmt.Fprintf(s.o.Say, "frogpond: health on http://%s/health, /ready, /gameserver\n", at)
	server := &http.Server{Handler: onlyTo(at, s.healthHandler()), ReadHeaderTimeout: time.Second,
		ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 4096}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = errors.Join(server.Shutdown(ctx), server.Close())
		<-ended
	}
}

// onlyTo refuses requests whose Host isn't the address, or localhost, with its port. That stops DNS
// rebinding: a browser that a foreign name leads here sends that name as the Host.
func onlyTo(at *net.TCPAddr, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, port, err := net.SplitHostPort(r.Host)
		if err != nil { // without a port, HTTP's default
			host, port = strings.Trim(r.Host, "[]"), "80"
		}
		ip := net.ParseIP(host)
		if port != strconv.Itoa(at.Port) || !at.IP.Equal(ip) && !strings.EqualFold(host, "localhost") {
			http.Error(w, fmt.Sprintf("this server is %s: ask it by its address, or as localhost:%d", at, at.Port),
				http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (s *Server) healthHandler() http.Handler {
	mux := http.NewServeMux()
	answer := func(well func() bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if !well() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprintln(w, "{}")
		}
	}
	mux.HandleFunc("/health", answer(s.healthy))
	mux.HandleFunc("/ready", answer(func() bool { return s.healthy() && !s.closing.Load() }))
	mux.HandleFunc("GET /gameserver", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.gameServer())
	})
	return mux
}

// healthy reports whether each worker's last tick began within a second and the server hasn't
// failed.
func (s *Server) healthy() bool {
	for _, w := range s.workers {
		if s.now()-w.alive.Load() > time.Second {
			return false
		}
	}
	return s.failure.Load() == nil
}

// gameServer returns the server in Agones' format, with counters of players and rooms.
func (s *Server) gameServer() any {
	type counter struct {
		Count    int `json:"count"`
		Capacity int `json:"capacity"`
	}
	type port struct {
		Name string `json:"name"`
		Port int    `json:"port"`
	}
	state := "Ready"
	rooms := 0
	for i := range s.rooms {
		sessions := s.net.roomSessions(i)
		for k := range sessions[:s.o.Players] {
			if sessions[k].taken.Load() != 0 {
				rooms++
				state = "Allocated"
				break
			}
		}
	}
	switch {
	case s.closing.Load():
		state = "Shutdown"
	case !s.healthy():
		state = "Unhealthy"
	}
	address := s.socket.Addr().(*net.UDPAddr)
	var g struct {
		Meta struct {
			Name string `json:"name"`
		} `json:"object_meta"`
		Status struct {
			State    string             `json:"state"`
			Address  string             `json:"address"`
			Ports    []port             `json:"ports"`
			Counters map[string]counter `json:"counters"`
		} `json:"status"`
	}
	g.Meta.Name = s.b.Plan().Name
	g.Status.State, g.Status.Address = state, address.IP.String()
	g.Status.Ports = []port{{"default", address.Port}}
	g.Status.Counters = map[string]counter{
		"players": {int(s.players()), len(s.rooms) * s.o.Players}, "rooms": {rooms, len(s.rooms)}}
	return g
}
