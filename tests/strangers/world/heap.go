package world

import (
	"context"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
	"github.com/upfront-mem/upfront/tests/strangers/work"
)

// dataHeap is the size of the heap for the data of all entities.
const dataHeap = 2 * budget.MiB

// heapPlan has one region for all. No page is present before it is touched, since there are far
// fewer chunks and entities than there may be.
var heapPlan = budget.Plan{
	Name:    "heap",
	Regions: []budget.RegionPlan{{Name: "world", Size: 6 * budget.MiB}},
	Pages:   budget.Pages{Prefault: budget.Off},
}

type (
	heapChunk struct {
		place    work.Place
		heat     uint32
		next     uint32 // heat
		serial   uint32
		count    int32 // of the entities
		entities [work.EntitiesInChunk]arena.Handle[heapEntity]
		terrain  [work.TerrainSize]byte
	}

	heapEntity struct {
		work.Entity
		block arena.Slice[byte] // on the heap
		size  int32             // of the data in the block
	}
)

var (
	heapChunks   = scope.Plain[heapChunk]()
	heapEntities = scope.Plain[heapEntity]()
	chunkHandles = scope.Plain[arena.Handle[heapChunk]]()
)

// data returns the entity's data. Its capacity is that of the block.
func (e *heapEntity) data(base arena.Base) []byte { return e.block.Get(base)[:e.size] }

// keep has the entity have that data.
func (e *heapEntity) keep(base arena.Base, data []byte) {
	e.block, e.size = arena.SliceOf(base, data[:cap(data)]), int32(len(data))
}

// heapWorld is the world whose chunks are in a pool.
type heapWorld struct {
	base     arena.Base
	chunks   scope.HandlePool[heapChunk]
	entities scope.HandlePool[heapEntity]
	at       container.Map[place, arena.Handle[heapChunk]]
	heap     arena.Heap
	gone     uint64
	dead     uint64
}

// Heap plays the program with chunks and entities in pools, and the entities' data on a heap.
func Heap(m *work.Meter) (sum uint64, err error) {
	b, err := budget.Open(heapPlan)
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := b.Close(); err == nil {
			err = e
		}
	}()
	return playHeap(b, m)
}

func playHeap(b *budget.Budget, m *work.Meter) (uint64, error) {
	region := b.Region("world")
	loaded, err := budget.Load(context.Background(), region, func(s scope.Scope) (*heapWorld, error) {
		w := &heapWorld{
			base:     region.Base(),
			chunks:   heapChunks.HandlePool(s, work.ChunksAtOnce),
			entities: heapEntities.HandlePool(s, work.ChunksAtOnce*work.EntitiesInChunk),
			at:       container.NewMap(s, places, chunkHandles, work.ChunksAtOnce),
		}
		var err error
		w.heap, err = arena.NewHeap(s.BytesUnzeroed(dataHeap, 64), 256)
		return w, err
	})
	if err != nil {
		return 0, err
	}
	w := loaded.Get()
	m.Ready()

	var sum work.Sum
	var walk work.Walk
	var last work.Place
	for tick := 0; ; tick++ {
		player, ok := walk.Next()
		if !ok {
			break
		}
		m.Start()
		if tick == 0 || player != last {
			if err := w.stream(player); err != nil {
				return 0, err
			}
			last = player
		}
		for _, c := range w.chunks.All() {
			c.next = work.Warm(c.heat, w.heat(c.place.X, c.place.Z-1), w.heat(c.place.X+1, c.place.Z),
				w.heat(c.place.X, c.place.Z+1), w.heat(c.place.X-1, c.place.Z))
		}
		var heat uint64
		for _, c := range w.chunks.All() {
			if err := w.step(c, tick); err != nil {
				return 0, err
			}
			heat += uint64(c.heat)
		}
		sum.Add(heat)
		sum.Add(uint64(w.entities.Live()))
		m.Stop()
	}
	for h, c := range w.chunks.All() {
		if err := w.unload(h, c); err != nil {
			return 0, err
		}
	}
	sum.Add(w.gone)
	sum.Add(w.dead)
	return uint64(sum), nil
}

// stream unloads the chunks that are too far from the player, and loads those that are near.
func (w *heapWorld) stream(player work.Place) error {
	for h, c := range w.chunks.All() {
		if c.place.Within(player, work.Far) {
			continue
		}
		if err := w.unload(h, c); err != nil {
			return err
		}
	}
	for z := player.Z - work.Near; z <= player.Z+work.Near; z++ {
		for x := player.X - work.Near; x <= player.X+work.Near; x++ {
			p := work.Place{X: x, Z: z}
			if w.at.Get(placeOf(x, z)) != nil {
				continue
			}
			if err := w.load(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// load makes the chunk of a place, with its entities.
func (w *heapWorld) load(p work.Place) error {
	c, h := w.chunks.Get() // there is one: the pool has ChunksAtOnce
	c.place, c.heat = p, work.FirstHeat(p)
	work.Terrain(c.terrain[:], p)
	w.at.Set(placeOf(p.X, p.Z), h)
	for range work.Population(p) {
		if err := w.born(c); err != nil {
			return err
		}
	}
	return nil
}

// unload ends a chunk and its entities.
func (w *heapWorld) unload(h arena.Handle[heapChunk], c *heapChunk) error {
	var entities uint64
	for _, entity := range c.entities[:c.count] {
		e := w.entities.At(entity)
		data := e.data(w.base)
		entities += e.Digest(data)
		if err := bytes.DeleteSlice(w.heap, data); err != nil {
			return err
		}
		w.entities.Put(entity)
	}
	w.gone += work.ChunkDigest(c.place, c.heat, c.serial, c.terrain[:], entities)
	w.at.Delete(placeOf(c.place.X, c.place.Z))
	w.chunks.Put(h)
	return nil
}

// heat returns the heat of the chunk of a place, 0 if there is none.
func (w *heapWorld) heat(x, z int32) uint32 {
	if h := w.at.Get(placeOf(x, z)); h != nil {
		return w.chunks.At(*h).heat
	}
	return 0
}

// step plays a tick of a chunk, whose next heat is known.
func (w *heapWorld) step(c *heapChunk, tick int) error {
	c.heat = c.next
	work.Burn(c.terrain[:], c.heat)
	for i := int32(0); i < c.count; {
		e := w.entities.At(c.entities[i])
		data := e.data(w.base)
		e.Step(c.terrain[:], data)
		if e.Left == 0 {
			w.dead += e.Digest(data)
			if err := bytes.DeleteSlice(w.heap, data); err != nil {
				return err
			}
			w.entities.Put(c.entities[i])
			c.count--
			c.entities[i] = c.entities[c.count]
			continue
		}
		if e.Resizes() {
			data, err := resize(w.heap, &e.Entity, data)
			if err != nil {
				return err
			}
			e.keep(w.base, data)
		}
		i++
	}
	if c.count < work.EntitiesInChunk && work.Spawns(c.place, tick) {
		return w.born(c)
	}
	return nil
}

// born adds an entity to a chunk, which has room for it.
func (w *heapWorld) born(c *heapChunk) error {
	e, h := w.entities.Get() // there is one: the pool has EntitiesInChunk for each chunk
	e.Entity = work.Born(c.place, c.serial)
	data := bytes.Slice(w.heap, e.DataSize())
	if data == nil {
		return heapFull(w.heap, e.DataSize())
	}
	e.FillData(data, 0)
	e.keep(w.base, data)
	c.entities[c.count] = h
	c.count++
	c.serial++
	return nil
}
