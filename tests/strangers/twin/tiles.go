package twin

import (
	"bytes"
	"hash/maphash"

	"github.com/upfront-mem/upfront/tests/strangers/work"
)

// tile is an entry of a tileCache, in one of its queues.
type tile struct {
	key        string
	value      []byte // nil if it was deleted
	size       int    // that counts against the cache's size
	reads      uint8
	main       bool  // it is in the main queue, not in the small one
	prev, next int32 // in its queue: towards the oldest, towards the newest
}

// queue is a queue of tiles. Tile 0 of the cache is none.
type queue struct {
	oldest, newest int32
	used, size     int // bytes
}

// tileCache is a cache of a number of bytes. It evicts by S3-FIFO, and counts the bytes of an entry
// as scope/cache's Bytes does.
type tileCache struct {
	byKey map[string]int32 // without deleted tiles
	tiles []tile
	free  []int32 // numbers of tiles in no queue
	small queue
	main  queue

	seed    maphash.Seed
	evicted map[uint64]int // places in forget of keys that were evicted from the small queue
	forget  []uint64       // their hashes, in a ring
	next    int            // the place of the oldest
}

const (
	header     = 8  // bytes of an entry, with those of its key and value
	indexed    = 11 // bytes of an entry in the index
	mostReads  = 3
	mostSpares = 16 // entries that one eviction spares
)

// newTileCache returns a cache of size bytes. Its index has room for a few entries more than there
// are on average.
func newTileCache(size int) *tileCache {
	n := size / (work.MeanTile*9/10 + header + indexed)
	size -= n * indexed
	return &tileCache{
		byKey:   make(map[string]int32, n),
		tiles:   make([]tile, 1, n),
		small:   queue{size: size / 20},
		main:    queue{size: size - size/20},
		seed:    maphash.MakeSeed(),
		evicted: make(map[uint64]int, n),
		forget:  make([]uint64, n),
	}
}

// get returns the value of a key. It is valid until the next set or delete.
func (c *tileCache) get(key []byte) ([]byte, bool) {
	i, ok := c.byKey[string(key)]
	if !ok {
		return nil, false
	}
	t := &c.tiles[i]
	t.reads = min(t.reads+1, mostReads)
	return t.value, true
}

// set adds the value of a key that the cache doesn't have, and evicts others to make room.
func (c *tileCache) set(key, value []byte) {
	t := tile{key: string(key), value: bytes.Clone(value), size: (header + len(key) + len(value) + 7) &^ 7}
	hash := maphash.Bytes(c.seed, key)
	if at, ok := c.evicted[hash]; ok {
		delete(c.evicted, hash)
		c.forget[at] = 0
		t.main = true
	}
	t.main = t.main || t.size > c.small.size/2
	c.room(t.main, t.size)
	var i int32
	if n := len(c.free); n > 0 {
		i, c.free = c.free[n-1], c.free[:n-1]
	} else {
		i = int32(len(c.tiles))
		c.tiles = append(c.tiles, tile{})
	}
	c.tiles[i] = t
	c.push(i)
	c.byKey[t.key] = i
}

// delete removes a key. Its bytes count until its queue passes it, as in scope/cache.
func (c *tileCache) delete(key []byte) {
	if i, ok := c.byKey[string(key)]; ok {
		delete(c.byKey, c.tiles[i].key)
		c.tiles[i].value = nil
	}
}

// room evicts until a queue has room for size bytes.
func (c *tileCache) room(main bool, size int) {
	q := c.queue(main)
	for q.used+size > q.size {
		c.evict(main)
	}
}

// evict evicts a tile from the end of a queue, and spares those before it that were read.
func (c *tileCache) evict(main bool) {
	for spared := 0; ; spared++ {
		i := c.queue(main).oldest
		c.take(i)
		t := &c.tiles[i]
		if t.value == nil {
			c.drop(i)
			return
		}
		fits := !main && c.main.used+t.size <= c.main.size
		if !fits && t.reads == 0 || spared == mostSpares {
			if !main {
				c.remember(maphash.String(c.seed, t.key))
			}
			c.drop(i)
			return
		}
		if main {
			t.reads--
			c.push(i)
			continue
		}
		c.room(true, t.size)
		t.main, t.reads = true, 0
		c.push(i)
		return
	}
}

// remember notes the hash of a key that was evicted, and forgets the oldest one.
func (c *tileCache) remember(hash uint64) {
	if old := c.forget[c.next]; old != 0 {
		delete(c.evicted, old)
	}
	c.forget[c.next], c.evicted[hash] = hash, c.next
	c.next = (c.next + 1) % len(c.forget)
}

func (c *tileCache) queue(main bool) *queue {
	if main {
		return &c.main
	}
	return &c.small
}

// push makes a tile the newest of its queue.
func (c *tileCache) push(i int32) {
	t := &c.tiles[i]
	q := c.queue(t.main)
	t.prev, t.next = q.newest, 0
	c.tiles[q.newest].next = i // that of tile 0 doesn't count
	if q.newest == 0 {
		q.oldest = i
	}
	q.newest = i
	q.used += t.size
}

// take takes a tile out of its queue.
func (c *tileCache) take(i int32) {
	t := &c.tiles[i]
	q := c.queue(t.main)
	if c.tiles[t.prev].next = t.next; t.prev == 0 {
		q.oldest = t.next
	}
	if c.tiles[t.next].prev = t.prev; t.next == 0 {
		q.newest = t.prev
	}
	q.used -= t.size
}

// drop frees a tile that is in no queue.
func (c *tileCache) drop(i int32) {
	if c.tiles[i].value != nil {
		delete(c.byKey, c.tiles[i].key)
	}
	c.tiles[i] = tile{}
	c.free = append(c.free, i)
}

// Tiles plays the program tiles. It draws into the same memory each time, and copies a tile once,
// to the cache.
func Tiles(m *work.Meter) (uint64, error) {
	var (
		cache  = newTileCache(work.CacheSize)
		raster = make([]byte, work.RasterSize)
		made   = make([]byte, 0, work.TileSize)
		stream work.Tiles
		sum    work.Sum
	)
	m.Ready()
	for stream.Tick() {
		m.Start()
		for r, ok := stream.Next(); ok; r, ok = stream.Next() {
			if r.Edit {
				cache.delete(r.Path)
				continue
			}
			value, ok := cache.get(r.Path)
			if !ok {
				m.Miss()
				stream.Draw(r, raster)
				value = work.AppendTile(made, raster)
				cache.set(r.Path, value)
			}
			work.Serve(&sum, value)
		}
		m.Stop()
	}
	return uint64(sum), nil
}
