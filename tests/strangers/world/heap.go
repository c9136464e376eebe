package world

import (
	"context"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/strangers/work"
)

// dataHeap is the size of the heap for the data of all entities: the need of a run, and a quarter
// more for gaps.
const dataHeap = 832 * budget.KiB

// heapPlan has one region. Its size and limits are from budget.Measure. The game seldom reaches the
// limits of chunks and entities, so no page is present before it is touched.
var heapPlan = budget.Plan{
	Name:    "heap",
	Regions: []budget.RegionPlan{{Name: "world", Size: 4618 * budget.KiB}},
	Limits:  budget.Limits{Scopes: 1, Pools: 2, Owned: 1, Labels: 1},
	Pages:   budget.Pages{Prefault: budget.Off},
}

type (
	heapChunk struct {
		place    work.Place
		heat     uint32
		next     uint32 // heat
		serial   uint32
		count    int32 // of the entities
		index    int32 // in the pool
		entities [work.EntitiesInChunk]arena.Handle[work.Entity]
		terrain  [work.TerrainSize]byte
	}
)

var (
	heapChunks   = scope.Plain[heapChunk]()
	heapEntities = scope.Plain[work.Entity]()
	chunkAddrs   = scope.Plain[scope.Addr[heapChunk]]()
)

type heapWorld struct {
	scope    scope.Scope
	chunks   scope.HandlePool[heapChunk]
	entities scope.HandlePool[work.Entity]
	at       []scope.Addr[heapChunk] // the chunks, by the cells of their places
	heap     arena.Heap

	// The entities' data, by the chunk's index. It is on the heap.
	data [work.ChunksAtOnce][work.EntitiesInChunk][]byte
	gone uint64
	dead uint64
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
			scope:    s,
			chunks:   heapChunks.HandlePool(s, work.ChunksAtOnce),
			entities: heapEntities.HandlePool(s, work.ChunksAtOnce*work.EntitiesInChunk),
			at:       chunkAddrs.Slice(s, side*side),
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
			if w.find(x, z) != nil {
				continue
			}
			if err := w.load(work.Place{X: x, Z: z}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *heapWorld) load(p work.Place) error {
	c, h := w.chunks.Get() // never nil: the pool has ChunksAtOnce
	c.index = int32(w.chunks.Index(h))
	c.place, c.heat = p, work.FirstHeat(p)
	work.Terrain(c.terrain[:], p)
	w.at[cell(p.X, p.Z)] = scope.AddrOf(w.scope, c)
	for range work.Population(p) {
		if err := w.born(c); err != nil {
			return err
		}
	}
	return nil
}

func (w *heapWorld) unload(h arena.Handle[heapChunk], c *heapChunk) error {
	var entities uint64
	data := &w.data[c.index]
	for i, h := range c.entities[:c.count] {
		entities += w.entities.At(h).Digest(data[i])
		if err := bytes.DeleteSlice(w.heap, data[i]); err != nil {
			return err
		}
		w.entities.Put(h)
	}
	w.gone += work.ChunkDigest(c.place, c.heat, c.serial, c.terrain[:], entities)
	w.at[cell(c.place.X, c.place.Z)] = scope.Addr[heapChunk]{}
	w.chunks.Put(h)
	return nil
}

func (w *heapWorld) find(x, z int32) *heapChunk {
	c := w.at[cell(x, z)].Get()
	if c == nil || c.place != (work.Place{X: x, Z: z}) {
		return nil
	}
	return c
}

func (w *heapWorld) heat(x, z int32) uint32 {
	if c := w.find(x, z); c != nil {
		return c.heat
	}
	return 0
}

// step plays a tick of a chunk, whose next heat was computed before.
func (w *heapWorld) step(c *heapChunk, tick int) error {
	c.heat = c.next
	work.Burn(c.terrain[:], c.heat)
	data := &w.data[c.index]
	for i := int32(0); i < c.count; {
		e := w.entities.At(c.entities[i])
		e.Step(c.terrain[:], data[i])
		if e.Left == 0 {
			w.dead += e.Digest(data[i])
			if err := bytes.DeleteSlice(w.heap, data[i]); err != nil {
				return err
			}
			w.entities.Put(c.entities[i])
			c.count--
			c.entities[i], data[i] = c.entities[c.count], data[c.count]
			continue
		}
		if e.Resizes() {
			resized, err := resize(w.heap, e, data[i])
			if err != nil {
				return err
			}
			data[i] = resized
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
	e, h := w.entities.Get() // never nil: the pool has EntitiesInChunk for each chunk
	*e = work.Born(c.place, c.serial)
	data := bytes.Slice(w.heap, e.DataSize())
	if data == nil {
		return heapFull(w.heap, e.DataSize())
	}
	e.FillData(data, 0)
	c.entities[c.count] = h
	w.data[c.index][c.count] = data
	c.count++
	c.serial++
	return nil
}
