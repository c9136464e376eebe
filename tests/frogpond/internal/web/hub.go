// Package web shows the rooms of a server to browsers: each on a canvas, as its map and who walks
// there, and a list of them all.
//
// hub.go is what there is to show, asked for only while somebody looks, and encoded once for all who
// do. page.go answers requests, picture.go draws the still picture of a room, charts.go has the
// maps. Nothing here is waited for by play.
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

// Source is the server, for who looks. Its methods may be called by any goroutine; no two calls of Scene are
// for the same room at once.
type Source interface {
	Rooms() int
	Places() int // for players, in each
	Maps() []doom.Map
	List() []Brief
	Scene(room int) *Scene // of now, which takes a tick; nil: the room doesn't play
}

// Brief is a line of the list.
type Brief struct {
	Room    int    `json:"room"`
	Map     string `json:"map"`
	Tick    uint32 `json:"tick"`
	Players int    `json:"players"`
}

// Scene is a room in a moment; nobody changes it. Whole says that all frogs and sectors are in it.
type Scene struct {
	Room    int        `json:"room"`
	Map     string     `json:"map"`    // "": the next is being loaded
	Number  uint32     `json:"number"` // of the room's maps
	Tick    uint32     `json:"tick"`
	Whole   bool       `json:"whole"`
	Players []Player   `json:"players"`
	Frogs   [][3]int16 `json:"frogs"`   // x, y, heading
	Sectors [][3]int16 `json:"sectors"` // that moved: number, floor, ceiling
}

// Player is one who is in the room. Headings are sixteenths of the compass, counterclockwise from
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

// pace is the time between two scenes of a room, at least, and between two lists.
const pace = time.Second / 10

// Hub is an http.Handler of what a server has, below /rooms/, /room/ and /map/. All is for any
// goroutine.
type Hub struct {
	source  Source
	handler http.Handler
	rooms   []sight[*Scene]
	list    sight[[]Brief]
	charts  charts
}

// New is a hub, which lives until Close.
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

// Close ends the streams, and gives back what maps were loaded in. A server that cut its connections
// before has no viewer left who is waited for.
func (h *Hub) Close() error {
	for i := range h.rooms {
		h.rooms[i].feed.Close()
	}
	h.list.feed.Close()
	return h.charts.close()
}

// sight is something that some look at: by a stream, or by a page now and then. All see the same
// copy, which is made at the pace, while somebody looks.
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

// look is the newest value; who asks within the pace gets the last one.
func (s *sight[T]) look() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at.IsZero() || time.Since(s.at) >= pace {
		s.value = s.ask()
		s.at = time.Now() // after it, which may take longer than the pace: who waits doesn't ask again
	}
	return s.value
}

// encode is what a script reads.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // these types have nothing that JSON hasn't
	}
	return text
}

var errClosed = errors.New("the server ends")
