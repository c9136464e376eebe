package twin

import (
	"slices"

	"github.com/upfront-mem/upfront/tests/strangers/work"
)

type entity struct {
	work.Entity
	data []byte // the array stays with the place in the chunk
}

type chunk struct {
	place    work.Place
	heat     uint32
	next     uint32   // the heat after this tick
	serial   uint32   // of the next entity
	entities []entity // in no order
	terrain  [work.TerrainSize]byte
}

type world struct {
	chunks   map[work.Place]*chunk
	loaded   []*chunk // the loaded chunks, in no order
	unloaded []*chunk // to load again
	player   work.Place
	gone     uint64 // digests of the chunks that were unloaded
	dead     uint64 // digests of the entities that died
}

// World plays the program world. An unloaded chunk is loaded again with its
// grown memory: its terrain, its list of entities and their data.
func World(m *work.Meter) (uint64, error) {
	w := &world{chunks: make(map[work.Place]*chunk, work.ChunksAtOnce)}
	var (
		walk work.Walk
		sum  work.Sum
	)
	m.Ready()
	for tick := 0; ; tick++ {
		at, more := walk.Next()
		if !more {
			break
		}
		m.Start()
		if tick == 0 || at != w.player {
			w.player = at
			w.stream()
		}
		heat, entities := w.turn(tick)
		sum.Add(heat)
		sum.Add(entities)
		m.Stop()
	}
	for len(w.loaded) > 0 {
		w.unload(0)
	}
	sum.Add(w.gone)
	sum.Add(w.dead)
	return uint64(sum), nil
}

func (w *world) stream() {
	for i := len(w.loaded) - 1; i >= 0; i-- { // backwards: unload moves the last chunk here
		if !w.loaded[i].place.Within(w.player, work.Far) {
			w.unload(i)
		}
	}
	for x := w.player.X - work.Near; x <= w.player.X+work.Near; x++ {
		for z := w.player.Z - work.Near; z <= w.player.Z+work.Near; z++ {
			p := work.Place{X: x, Z: z}
			if w.chunks[p] == nil {
				w.load(p)
			}
		}
	}
}

func (w *world) load(p work.Place) {
	var c *chunk
	if last := len(w.unloaded) - 1; last >= 0 {
		c, w.unloaded = w.unloaded[last], w.unloaded[:last]
	} else {
		c = new(chunk)
	}
	c.place = p
	c.heat = work.FirstHeat(p)
	c.serial = 0
	work.Terrain(c.terrain[:], p)
	for range work.Population(p) {
		c.spawn()
	}
	w.chunks[p] = c
	w.loaded = append(w.loaded, c)
}

func (w *world) unload(i int) {
	c := w.loaded[i]
	var entities uint64
	for i := range c.entities {
		e := &c.entities[i]
		entities += e.Digest(e.data)
	}
	w.gone += work.ChunkDigest(c.place, c.heat, c.serial, c.terrain[:], entities)
	delete(w.chunks, c.place)
	last := len(w.loaded) - 1
	w.loaded[i] = w.loaded[last]
	w.loaded = w.loaded[:last]
	c.entities = c.entities[:0]
	w.unloaded = append(w.unloaded, c)
}

// spawn adds an entity. It reuses the data array of the last entity at the same place of the list.
func (c *chunk) spawn() {
	n := len(c.entities)
	if n < cap(c.entities) {
		c.entities = c.entities[:n+1]
	} else {
		c.entities = append(c.entities, entity{})
	}
	e := &c.entities[n]
	e.Entity = work.Born(c.place, c.serial)
	c.serial++
	e.data = e.data[:0]
	e.resize()
}

// kill removes an entity. The last entity takes its place, and the two places swap their data
// arrays.
func (c *chunk) kill(i int) {
	last := len(c.entities) - 1
	c.entities[i], c.entities[last] = c.entities[last], c.entities[i]
	c.entities = c.entities[:last]
}

// resize gives the data its new size, and keeps the bytes that fit.
func (e *entity) resize() {
	had, size := len(e.data), e.DataSize()
	e.data = slices.Grow(e.data, max(0, size-had))[:size]
	e.FillData(e.data, had)
}

// turn plays a tick of all chunks. It returns the sum of their heat and the number of their
// entities.
func (w *world) turn(tick int) (heat, entities uint64) {
	for _, c := range w.loaded {
		p := c.place
		c.next = work.Warm(c.heat, w.heat(p.X, p.Z-1), w.heat(p.X+1, p.Z), w.heat(p.X, p.Z+1), w.heat(p.X-1, p.Z))
	}
	for _, c := range w.loaded {
		c.heat = c.next
		work.Burn(c.terrain[:], c.heat)
		for i := len(c.entities) - 1; i >= 0; i-- { // backwards: kill moves the last entity here
			e := &c.entities[i]
			e.Step(c.terrain[:], e.data)
			if e.Left == 0 {
				w.dead += e.Digest(e.data)
				c.kill(i)
			} else if e.Resizes() {
				e.resize()
			}
		}
		if len(c.entities) < work.EntitiesInChunk && work.Spawns(c.place, tick) {
			c.spawn()
		}
		heat += uint64(c.heat)
		entities += uint64(len(c.entities))
	}
	return heat, entities
}

func (w *world) heat(x, z int32) uint32 {
	if c := w.chunks[work.Place{X: x, Z: z}]; c != nil {
		return c.heat
	}
	return 0
}
