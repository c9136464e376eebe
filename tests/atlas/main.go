// Command atlas serves the tiles of a map over HTTP. The map and its colors are in regions that
// don't stand on each other, so each is loaded again while the other stays:
//
//	GET  /tile/{x}/{y}   a tile, as PNG
//	POST /map            a new map: a byte for each place
//	POST /colors         new colors: red, green and blue for each value of such a byte
package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"log"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

const wide, side = 1024, 64 // places of the map and of a tile, in each direction

var plan = budget.Plan{Name: "atlas",
	Regions: []budget.RegionPlan{
		{Name: "map", Size: 2 * budget.MiB},
		{Name: "colors", Size: 16 * budget.KiB, On: budget.Root}}, // not on the map
	Scratch: budget.ScratchPlan{Workers: 4, Size: 64 * budget.KiB}}

type atlas struct {
	b           *budget.Budget
	ground, hue budget.Region
	served      [4]int // tiles, by worker
}

func (a *atlas) tile(w http.ResponseWriter, r *http.Request) {
	worker, err := a.b.Lease(r.Context()) // waits for a free worker
	defer worker.Release()                // and ends its pins
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	ground, hue := worker.Reader(a.ground), worker.Reader(a.hue)
	// a load at work ends first
	if err = errors.Join(ground.PinContext(r.Context()), hue.PinContext(r.Context())); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	x, errX := strconv.ParseUint(r.PathValue("x"), 10, 8)
	y, errY := strconv.ParseUint(r.PathValue("y"), 10, 8)
	if errX != nil || errY != nil || x >= wide/side || y >= wide/side {
		http.NotFound(w, r)
		return
	}
	a.served[worker.Worker()]++ // no lock: the number is this request's
	err = worker.Scratch(0).Do("tile", func(s scope.Scope) error {
		out := bytes.NewBuffer(s.Bytes(20 << 10)[:0])
		tile := image.NRGBA{Pix: s.Bytes(4 * side * side), Stride: 4 * side, Rect: image.Rect(0, 0, side, side)}
		places, colors := *budget.Get[[]byte](ground), *budget.Get[[]byte](hue)
		for i := range uint64(side * side) {
			color := 3 * int(places[(y*side+i/side)*wide+x*side+i%side])
			copy(tile.Pix[4*i:], colors[color:color+3])
			tile.Pix[4*i+3] = 255
		}
		if err := png.Encode(out, &tile); err != nil {
			return err
		}
		ground.Unpin() // no load waits for a slow client
		hue.Unpin()
		_, _ = w.Write(out.Bytes())
		return nil
	})
	if err != nil { // scratch is full
		log.Print(err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// load returns a handler that loads a region with the n bytes of a request.
func load(region budget.Region, n int) http.HandlerFunc {
	var mu sync.Mutex // a load doesn't wait for another one of its region
	return func(w http.ResponseWriter, r *http.Request) {
		// first, so that the load is short
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(n)))
		if err == nil && len(body) < n {
			err = fmt.Errorf("%d bytes instead of %d", len(body), n)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		// waits for pins
		_, err = budget.Load(r.Context(), region, func(s scope.Scope) (*[]byte, error) {
			list := s.Bytes(n)
			copy(list, body)
			return &list, nil
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
}

func newAtlas(b *budget.Budget) (*atlas, http.Handler) {
	a := &atlas{b: b, ground: b.Region("map"), hue: b.Region("colors")}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /tile/{x}/{y}", a.tile)
	mux.HandleFunc("POST /map", load(a.ground, wide*wide))
	mux.HandleFunc("POST /colors", load(a.hue, 3*256))
	return a, mux
}

func main() {
	b, err := budget.Open(plan)
	if err != nil {
		log.Fatal(err)
	}
	_, handler := newAtlas(b)
	server := http.Server{Addr: "localhost:8080", Handler: handler, ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	log.Fatal(server.ListenAndServe()) // a tile waits for the first map
}
