package work

import (
	"encoding/binary"
	"strconv"
)

// The limits of the program tiles.
const (
	TileTicks  = 4000
	CacheSize  = 8 << 20    // bytes of the cache, all of its parts included
	PathSize   = 16         // bytes of a path, at most
	RasterSize = 8192       // bytes of a tile's raster
	TileSize   = 2 * 8192   // bytes of a tile, at most
	MeanTile   = 4 << 10    // bytes of a tile in the cache, on average
	tileSide   = 128        // tiles of the map, in each direction
	tileCalls  = 40         // requests in a tick
	tileAll    = 128 * 128  // tiles of the map
	tileDrift  = 1 << 6     // requests after which another tile becomes popular
	tileStride = 2654435761 // brings near ranks to places that are far from each other
)

// Request is a request of a tile, or the news that a tile has changed.
type Request struct {
	Path []byte // the tile's key, such as "/z7/103/51": valid until the next request
	Edit bool   // the tile has changed
	tile int
}

// Tiles is the stream of requests that the server gets, and the map that it draws. Its zero value
// is the stream's start.
type Tiles struct {
	dice    dice
	tick    int
	left    int
	asked   int
	path    [PathSize]byte
	version [tileAll]uint8
}

// Tick goes on to the next tick's requests. It returns false after the last tick.
func (t *Tiles) Tick() bool {
	t.tick++
	t.left = tileCalls
	return t.tick <= TileTicks
}

// Next returns the tick's next request, and false after the last one.
func (t *Tiles) Next() (Request, bool) {
	if t.left == 0 {
		return Request{}, false
	}
	t.left--
	t.asked++
	// A few tiles are in great demand, and which ones changes slowly.
	rank := t.dice.below(1 << (3 + t.dice.below(10)))
	r := Request{tile: int(uint32(rank+t.asked/tileDrift) * tileStride % tileAll)}
	r.Edit = t.dice.below(100) == 0
	if r.Edit {
		t.version[r.tile]++
	}
	path := append(t.path[:0], "/z7/"...)
	path = strconv.AppendInt(path, int64(r.tile%tileSide), 10)
	path = append(path, '/')
	r.Path = strconv.AppendInt(path, int64(r.tile/tileSide), 10)
	return r, true
}

// Draw draws the request's tile, as it is now, into a raster of RasterSize bytes. It overwrites all
// of the raster.
func (t *Tiles) Draw(r Request, raster []byte) {
	v := Mix(uint64(r.tile)<<8 | uint64(t.version[r.tile]))
	detail := Mix(uint64(r.tile)) % 10 // from a town to the sea
	for at := 0; at < len(raster); {
		v = v*0x5851f42d4c957f2d + 1
		run := min(1+int(v>>33&(1<<detail-1)), len(raster)-at)
		for i := range run {
			raster[at+i] = byte(v >> 56)
		}
		at += run
	}
}

// AppendTile appends the raster's tile, which is smaller if the raster has less detail: at most
// TileSize bytes.
func AppendTile(b []byte, raster []byte) []byte {
	for at := 0; at < len(raster); {
		from := at
		for at < len(raster) && at-from < 255 && raster[at] == raster[from] {
			at++
		}
		b = append(b, raster[from], byte(at-from))
	}
	return b
}

// Serve is the work to answer a request with a tile.
func Serve(sum *Sum, tile []byte) {
	sum.Add(uint64(binary.LittleEndian.Uint16(tile)))
	sum.Bytes(tile)
}
