// Package sidecar is a fake of the SDK server of Agones, for tests of its clients:
//
//	fake := sidecar.New()
//	server := httptest.NewServer(fake)
//	...                         // make calls
//	assert.Empty(t, fake.Wrong())
//
// The fake answers as Agones does, and records each call. It answers a wrong call with an error,
// and Wrong then has a line about the call. A call is wrong if the protocol doesn't have it, if its
// body differs from the body that a client must send, or if it changes something after Shutdown.
// Each function may be called from any goroutine.
package sidecar

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Values of the game server that New returns.
const (
	UID     = "4d5f7a7c-0000-4000-8000-00000000f209"
	Created = "1764200000"
)

// Sidecar is a fake sidecar and its game server.
type Sidecar struct {
	mu       sync.Mutex
	calls    []string
	wrong    []string
	server   Server
	changed  chan struct{} // closed at the next change
	instead  http.HandlerFunc
	shutdown bool
}

// Server is the game server.
type Server struct {
	State           string
	Count, Capacity int64
	Counters        bool // Agones' feature is on
	Period          int  // of Health, in seconds
	NoHealth        bool
	Allocations     int // each changes the annotation agones.dev/last-allocated
	Labels          map[string]string
	Annotations     map[string]string
}

// New returns a sidecar whose game server is scheduled, with a counter "rooms" of 1 of 10.
func New() *Sidecar {
	return &Sidecar{changed: make(chan struct{}), server: Server{State: "Scheduled", Count: 1, Capacity: 10,
		Counters: true, Period: 5,
		Labels: map[string]string{}, Annotations: map[string]string{}}}
}

// Instead makes answer answer all calls, which aren't checked or carried out but are recorded. nil
// ends that.
func (s *Sidecar) Instead(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead = answer
}

// Change changes the game server.
func (s *Sidecar) Change(change func(g *Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change(change)
}

func (s *Sidecar) change(change func(g *Server)) {
	change(&s.server)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Server returns the game server as it is.
func (s *Sidecar) Server() Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// Calls returns the calls so far, such as `POST /reserve {"seconds":"5"}`.
func (s *Sidecar) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Wrong returns the calls that no client may make, each with the reason.
func (s *Sidecar) Wrong() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.wrong)
}

// bodies has the calls of the protocol, and the form of their bodies.
var bodies = map[string]*regexp.Regexp{
	"GET /gameserver":               regexp.MustCompile(`^$`),
	"GET /watch/gameserver":         regexp.MustCompile(`^$`),
	"GET /v1beta1/counters/rooms":   regexp.MustCompile(`^$`),
	"POST /ready":                   regexp.MustCompile(`^\{\}$`),
	"POST /health":                  regexp.MustCompile(`^\{\}$`),
	"POST /allocate":                regexp.MustCompile(`^\{\}$`),
	"POST /shutdown":                regexp.MustCompile(`^\{\}$`),
	"POST /reserve":                 regexp.MustCompile(`^\{"seconds":"(\d+)"\}$`),
	"PUT /metadata/label":           regexp.MustCompile(`^\{"key":"([a-zA-Z0-9]+)","value":"([-_.a-zA-Z0-9]*)"\}$`),
	"PUT /metadata/annotation":      regexp.MustCompile(`^\{"key":"([a-zA-Z0-9]+)","value":"([^"\\]*)"\}$`),
	"PATCH /v1beta1/counters/rooms": regexp.MustCompile(`^\{"(capacity|count|countDiff)":"(-?\d+)"\}$`),
}

// ServeHTTP answers a call.
func (s *Sidecar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	body := string(text)
	call := r.Method + " " + r.RequestURI
	s.mu.Lock()
	if body == "" {
		s.calls = append(s.calls, call)
	} else {
		s.calls = append(s.calls, call+" "+body)
	}
	if instead := s.instead; instead != nil {
		s.mu.Unlock()
		instead(w, r)
		return
	}
	defer s.mu.Unlock()
	known := bodies[call]
	var parts []string
	if known != nil {
		parts = known.FindStringSubmatch(body)
	}
	kind := r.Header.Values("Content-Type")
	switch {
	case err != nil:
		s.refuses(w, call, http.StatusBadRequest, err.Error())
	case known == nil:
		s.refuses(w, call, http.StatusNotFound, "no such call")
	case parts == nil:
		s.refuses(w, call, http.StatusBadRequest, fmt.Sprintf("the body %q isn't as %s", body, known))
	case body != "" && !slices.Equal(kind, []string{"application/json"}):
		s.refuses(w, call, http.StatusBadRequest, fmt.Sprintf("content type %q", kind))
	case s.shutdown && r.Method != http.MethodGet:
		s.refuses(w, call, http.StatusBadRequest, "after Shutdown")
	default:
		s.answer(w, r, call, parts)
	}
}

func (s *Sidecar) refuses(w http.ResponseWriter, call string, status int, why string) {
	s.wrong = append(s.wrong, call+": "+why)
	says(w, status, why)
}

// says answers in the form of an error of the protocol.
func says(w http.ResponseWriter, status int, why string) {
	answers(w, status, map[string]any{"code": 2, "message": why, "details": []string{}})
}

func answers(w http.ResponseWriter, status int, answer any) {
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may be gone
}

// answer carries out a call.
func (s *Sidecar) answer(w http.ResponseWriter, r *http.Request, call string, parts []string) {
	state := map[string]string{"POST /ready": "Ready", "POST /allocate": "Allocated", "POST /reserve": "Reserved",
		"POST /shutdown": "Shutdown"}[call]
	switch call {
	case "GET /gameserver":
		answers(w, http.StatusOK, s.gameServer())
		return
	case "GET /watch/gameserver":
		s.watch(w, r)
		return
	case "GET /v1beta1/counters/rooms", "PATCH /v1beta1/counters/rooms":
		s.counter(w, parts)
		return
	case "PUT /metadata/label":
		s.change(func(g *Server) { g.Labels = with(g.Labels, parts) })
	case "PUT /metadata/annotation":
		s.change(func(g *Server) { g.Annotations = with(g.Annotations, parts) })
	}
	if state != "" {
		s.shutdown = state == "Shutdown"
		s.change(func(g *Server) {
			if g.State = state; state == "Allocated" {
				g.Allocations++
			}
		})
	}
	answers(w, http.StatusOK, struct{}{})
}

func with(m map[string]string, parts []string) map[string]string {
	more := map[string]string{"agones.dev/sdk-" + parts[1]: parts[2]}
	for key, value := range m {
		if _, ok := more[key]; !ok {
			more[key] = value
		}
	}
	return more
}

func (s *Sidecar) counter(w http.ResponseWriter, parts []string) {
	g := s.server
	if !g.Counters {
		says(w, http.StatusInternalServerError, "CountsAndLists not enabled")
		return
	}
	if len(parts) > 2 {
		n, err := strconv.ParseInt(parts[2], 10, 64)
		if err != nil {
			says(w, http.StatusBadRequest, err.Error())
			return
		}
		switch parts[1] {
		case "capacity":
			g.Capacity = n
			g.Count = min(g.Count, n)
		case "count":
			g.Count = n
		case "countDiff":
			g.Count += n
		}
		if g.Capacity < 0 || g.Count < 0 || g.Count > g.Capacity {
			says(w, http.StatusInternalServerError, fmt.Sprintf("out of range: %d of %d", g.Count, g.Capacity))
			return
		}
		s.change(func(now *Server) { *now = g })
	}
	answers(w, http.StatusOK, map[string]string{"name": "rooms", "count": fmt.Sprint(g.Count),
		"capacity": fmt.Sprint(g.Capacity)})
}

// watch sends the game server, and again after each change, until the client is gone.
func (s *Sidecar) watch(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		changed := s.changed
		text, err := json.Marshal(map[string]any{"result": s.gameServer()})
		if err != nil {
			panic(err)
		}
		s.mu.Unlock()
		_, _ = w.Write(append(text, '\n'))
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
		}
		s.mu.Lock()
	}
}

// gameServer returns the game server as Agones writes it: all keys, numbers of 64 bits as strings.
func (s *Sidecar) gameServer() any {
	g := s.server
	annotations := g.Annotations
	if g.Allocations > 0 {
		annotations = maps.Clone(annotations)
		annotations["agones.dev/last-allocated"] = time.Unix(1764200000+int64(g.Allocations),
			0).UTC().Format(time.RFC3339Nano)
	}
	counters := map[string]any{}
	if g.Counters {
		counters["rooms"] = map[string]string{"count": fmt.Sprint(g.Count), "capacity": fmt.Sprint(g.Capacity)}
	}
	return map[string]any{
		"object_meta": map[string]any{"name": "pond-1", "namespace": "default", "uid": UID, "resource_version": "7",
			"generation": "2", "creation_timestamp": Created, "deletion_timestamp": "0", "annotations": annotations,
			"labels": g.Labels},
		"spec": map[string]any{"health": map[string]any{"disabled": g.NoHealth, "period_seconds": g.Period,
			"failure_threshold":     3,
			"initial_delay_seconds": 5}},
		"status": map[string]any{"state": g.State, "address": "192.0.2.7", "addresses": []any{},
			"ports":   []any{map[string]any{"name": "default", "port": 7777}},
			"players": nil, "counters": counters, "lists": map[string]any{}},
	}
}
