// Package web shows the rooms of a server to browsers: a list, and for each room a page with its
// map, players and frogs.
//
//	mux.Handle("/rooms/", web.New(source)) // also /room/ and /map/
//
// hub.go copies a room's scenes while the room has viewers, and encodes each scene once for all
// viewers. page.go answers requests, picture.go draws the still picture of a room, and charts.go
// has the maps. Ticks never wait for this package.
package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/budget/view/live"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Source is the server. Any goroutine may call its methods; two calls of Scene for the same room
// don't overlap.
type Source interface {
	Rooms() int
	Places() int // for players, in each room
	Maps() []doom.Map
	List() []Brief
	Scene(room int) *Scene // the room now, after up to a tick; nil if its worker doesn't answer
}

// Brief is a line of the list of rooms.
type Brief struct {
	Room    int    `json:"room"`
	Map     string `json:"map"`
	Tick    uint32 `json:"tick"`
	Players int    `json:"players"`
}

// Scene is a room at a moment. It never changes. Whole is true if it has all frogs and sectors.
type Scene struct {
	Room    int        `json:"room"`
	Map     string     `json:"map"`    // "": the next one is loading
	Number  uint32     `json:"number"` // counts the room's maps
	Tick    uint32     `json:"tick"`
	Whole   bool       `json:"whole"`
	Players []Player   `json:"players"`
	Frogs   [][3]int16 `json:"frogs"`   // x, y, heading
	Sectors [][3]int16 `json:"sectors"` // moved ones: number, floor, ceiling
}

// Player is a player in the room. Headings are sixteenths of the compass, counterclockwise from
// east.
type Player struct {
	Number  uint16 `json:"number"`
	Name    string `json:"name"`
	X       int16  `json:"x"`
	Y       int16  `json:"y"`
	Heading uint8  `json:"heading"`
	Health  int32  `json:"health"`
	Caught  uint32 `json:"caught"`
	Deaths  uint32 `json:"deaths"`
	Exits   uint32 `json:"exits"`
}

// pace is the least time between two scenes of a room, and between two lists.
const pace = time.Second / 10

// Hub is an http.Handler for the pages below /rooms/, /room/ and /map/. It is safe for concurrent
// use.
type Hub struct {
	source  Source
	handler http.Handler
	rooms   []sight[*Scene]
	list    sight[[]Brief]
	charts  charts
}

// New returns a hub for source. The caller closes it.
func New(source Source) *Hub {
	h := &Hub{source: source, rooms: make([]sight[*Scene], source.Rooms()), charts: charts{maps: source.Maps()}}
	for i := range h.rooms {
		h.rooms[i].open(func() *Scene { return source.Scene(i) })
	}
	h.list.open(source.List)
	h.handler = live.Guard(h.routes())
	return h
}

// ServeHTTP answers GET and HEAD.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.handler.ServeHTTP(w, r) }

// Close ends the streams, and frees the charts' memory. Close the server's connections first, or
// Close waits for viewers.
func (h *Hub) Close() error {
	for i := range h.rooms {
		h.rooms[i].feed.Close()
	}
	h.list.feed.Close()
	return h.charts.close()
}

// sight is a value for viewers of a stream or a page. All viewers get the same copy. While there
// are viewers, a new copy is made at most once in each pace.
type sight[T any] struct {
	feed *live.Feed
	ask  func() T

	mu    sync.Mutex
	at    time.Time
	value T
}

func (s *sight[T]) open(ask func() T) {
	s.ask = ask
	s.feed = live.NewFeed(func() []byte { return encode(s.look()) }, live.FeedOptions{Every: pace})
}

// look returns the last value, or a new one if the last is older than the pace.
func (s *sight[T]) look() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) >= pace {
		s.value = s.ask()
		// Set after ask, which may take longer than the pace: waiting viewers then share the value.
		s.at = time.Now()
	}
	return s.value
}

func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // JSON has a form for all of these types
	}
	return text
}

var errClosed = errors.New("the server ends")
