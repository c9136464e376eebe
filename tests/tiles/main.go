// Command tiles is a world of tiles, larger than its memory, that streams around a moving player.
//
//	tiles [-fast] [-file world.tiles]
//
// Chunks are read from the file when the player nears them. A changed chunk is written back when
// another chunk needs its room.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
)

const (
	Side = 32  // tiles of a chunk, in each direction
	Wide = 256 // chunks of the world, in each direction
	View = 3   // chunks that the player sees, in each direction
	Rate = 35  // ticks a second
)

// The kinds of tiles. The file has zeros where no chunk was written.
const Grass, Stone, Moss, Water = 1, 2, 3, 4

// Place is the place of a tile or a chunk in the world.
type Place struct{ X, Y int32 }

func (p Place) chunk() Place  { return Place{p.X / Side, p.Y / Side} }
func (p Place) offset() int64 { return (int64(p.Y)*Wide + int64(p.X)) * Side * Side }

// Chunk is a square of tiles. It refers to its neighbors by handles, which find nothing once the
// neighbor was evicted.
type Chunk struct {
	At      Place
	Near    [4]arena.Handle[Chunk] // north, east, south, west
	Changed bool
	Tiles   [Side * Side]byte
}

var (
	directions = [4]Place{{0, -1}, {1, 0}, {0, 1}, {-1, 0}}

	disk *os.File // has the chunks that aren't in the cache

	places = scope.Plain[Place]()
	chunks = scope.Object(func(c *Chunk) error {
		if !c.Changed {
			return nil
		}
		_, err := disk.WriteAt(c.Tiles[:], c.At.offset())
		return err
	})
)

// World is the part of the world around the player.
type World struct {
	chunks *cache.Of[Place, Chunk]
	player Place // in tiles
	tick   uint64
}

// NewWorld makes a world of at most n chunks in s.
func NewWorld(s scope.Scope, n int) *World {
	return &World{cache.NewObjects(s, places, chunks, n), Place{Wide * Side / 2, Wide * Side / 2}, 0}
}

// Tick moves the player by a tile, and lets moss grow on the chunks in view.
func (w *World) Tick() error {
	w.tick++
	way := directions[w.tick/200%4] // around a square
	w.player.X, w.player.Y = w.player.X+way.X, w.player.Y+way.Y
	at := w.player.chunk()
	for y := at.Y - View; y <= at.Y+View; y++ {
		for x := at.X - View; x <= at.X+View; x++ {
			c, err := w.chunk(Place{x, y})
			if err == nil {
				err = w.grow(c)
				w.chunks.Unpin(c)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// chunk returns a chunk, pinned. It reads it from the disk if the cache doesn't have it.
func (w *World) chunk(at Place) (*Chunk, error) {
	if c := w.chunks.Get(at); c != nil {
		return c, nil
	}
	c, err := w.chunks.Add(at)
	if err != nil {
		return nil, err
	}
	c.At = at
	if _, err := disk.ReadAt(c.Tiles[:], at.offset()); err != nil && err != io.EOF {
		w.chunks.Unpin(c)
		return nil, errors.Join(err, w.chunks.Delete(at))
	}
	if c.Tiles[0] == 0 { // never written
		for i := range c.Tiles {
			c.Tiles[i] = Grass + byte(mix(at, uint64(i))%97/32) // water is rare
		}
	}
	return c, nil
}

// grow lets one tile of moss cover a tile next to it.
func (w *World) grow(c *Chunk) (err error) {
	random := mix(c.At, w.tick<<10)
	i := random % (Side * Side)
	if c.Tiles[i] != Moss {
		return nil
	}
	d := random >> 32 % 4
	x, y := int32(i%Side)+directions[d].X, int32(i/Side)+directions[d].Y
	to := c
	if x < 0 || x >= Side || y < 0 || y >= Side {
		if to, err = w.near(c, d); to == nil || err != nil {
			return err
		}
		defer w.chunks.Unpin(to)
	}
	if tile := &to.Tiles[(y+Side)%Side*Side+(x+Side)%Side]; *tile == Grass || *tile == Stone {
		*tile, to.Changed = Moss, true
	}
	return nil
}

// near returns the neighbor of c in a direction, pinned, or nil if it isn't in view.
func (w *World) near(c *Chunk, d uint64) (*Chunk, error) {
	at, player := Place{c.At.X + directions[d].X, c.At.Y + directions[d].Y}, w.player.chunk()
	if max(at.X-player.X, player.X-at.X, at.Y-player.Y, player.Y-at.Y) > View {
		return nil, nil
	}
	if n := w.chunks.At(c.Near[d]); n != nil {
		return n, nil
	}
	n, err := w.chunk(at)
	if err == nil {
		c.Near[d] = w.chunks.Handle(n)
	}
	return n, err
}

// mix returns a number that looks random, and is the same in each run.
func mix(at Place, i uint64) uint64 {
	i = i*0x9e3779b97f4a7c15 ^ uint64(uint32(at.X))<<32 ^ uint64(uint32(at.Y))
	i = (i ^ i>>30) * 0xbf58476d1ce4e5b9
	i = (i ^ i>>27) * 0x94d049bb133111eb
	return i ^ i>>31
}

func main() {
	fast := flag.Bool("fast", false, "don't wait between ticks")
	file := flag.String("file", "world.tiles", "the world's `file`")
	flag.Parse()
	if err := play(*file, *fast, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// play plays a minute, and then reports.
func play(name string, fast bool, out io.Writer) (err error) {
	if disk, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	b, err := budget.Open(budget.Plan{Name: "tiles", GoHeap: 16 * budget.MiB,
		Regions: []budget.RegionPlan{{Name: "world", Size: 128 * budget.KiB}}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }() // writes the chunks that changed
	world, err := budget.Load(context.Background(), b.Region("world"), func(s scope.Scope) (*World, error) {
		return NewWorld(s, 80), nil
	})
	for i := 0; i < 60*Rate && err == nil; i++ {
		err = world.Get().Tick()
		if !fast {
			time.Sleep(time.Second / Rate)
		}
	}
	if err == nil {
		_, err = fmt.Fprint(out, b.Report())
	}
	return err
}
