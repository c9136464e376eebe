// Package world is the program world with upfront, in two versions. In Slots, each chunk is in a
// slot of a region. In Heap, all chunks are in pools and a heap of one region.
package world

import (
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/strangers/work"
)

// slotHeap is the size of the heap for the data of a chunk's entities: the need of a run, and a
// quarter more for gaps.
const slotHeap = 10 * budget.KiB

// Slots begin at multiples of 64 KiB. A chunk begins at one of several places in its slot, so that
// chunks don't compete for a few lines of the processor's caches.
const (
	colours = 64
	colour  = 256
)

// slotsPlan has a region for the index of chunks, and a slot for each chunk. Its sizes and limits
// are from budget.Measure. The game seldom reaches the limit of chunks, so no page is present
// before it is touched.
var slotsPlan = budget.Plan{
	Name: "slots",
	Regions: []budget.RegionPlan{
		{Name: "index", Size: 2 * budget.KiB},
		{Name: "chunk", Size: 43 * budget.KiB, Slots: work.ChunksAtOnce},
	},
	Limits: budget.Limits{Scopes: 1, Pools: 1, Owned: 1, Labels: 1},
	Pages:  budget.Pages{Prefault: budget.Off},
}

type slotChunk struct {
	place    work.Place
	heat     uint32
	next     uint32 // heat
	serial   uint32
	count    int32 // of the entities
	entities [work.EntitiesInChunk]work.Entity
	terrain  [work.TerrainSize]byte
}

var (
	slotChunks = scope.Plain[slotChunk]()
	addresses  = scope.Plain[scope.Addr[slotChunk]]()
	bytes      = arena.HeapOf[byte](nil)
)

// side is the side of a square around all loaded chunks, and a power of two. No two loaded chunks
// have places that are equal modulo side.
const side = 16 // at least 2*work.Far + 1

// cell returns the number of a place's cell, from 0 to side*side-1.
func cell(x, z int32) int32 { return z&(side-1)*side + x&(side-1) }

// slotValues are the Go values of a slot and its chunk.
type slotValues struct {
	slot       budget.Region
	*slotChunk // nil if no chunk is loaded
	heap       arena.Heap
	data       [work.EntitiesInChunk][]byte // of the entities, on the heap
}

type slotWorld struct {
	ctx    context.Context
	slots  *budget.Slots
	chunks []slotValues            // by the slots' numbers
	at     []scope.Addr[slotChunk] // the chunks, by the cells of their places
	gone   uint64
	dead   uint64
}

// Slots plays the program with each chunk in a slot, which ends with the chunk.
func Slots(m *work.Meter) (sum uint64, err error) {
	b, err := budget.Open(slotsPlan)
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := b.Close(); err == nil {
			err = e
		}
	}()
	return playSlots(b, m)
}

func playSlots(b *budget.Budget, m *work.Meter) (uint64, error) {
	w := &slotWorld{
		ctx:    context.Background(),
		slots:  b.Slots("chunk"),
		chunks: make([]slotValues, work.ChunksAtOnce),
	}
	if _, err := budget.Load(w.ctx, b.Region("index"), func(s scope.Scope) (*slotWorld, error) {
		w.at = addresses.Slice(s, side*side)
		return w, nil
	}); err != nil {
		return 0, err
	}
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
		w.warm()
		var heat, entities uint64
		for i := range w.chunks {
			c := &w.chunks[i]
			if c.slotChunk == nil {
				continue
			}
			if err := w.step(c, tick); err != nil {
				return 0, err
			}
			heat += uint64(c.heat)
			entities += uint64(c.count)
		}
		sum.Add(heat)
		sum.Add(entities)
		m.Stop()
	}
	for i := range w.chunks {
		if c := &w.chunks[i]; c.slotChunk != nil {
			if err := w.unload(c); err != nil {
				return 0, err
			}
		}
	}
	sum.Add(w.gone)
	sum.Add(w.dead)
	return uint64(sum), nil
}

// stream unloads the chunks that are too far from the player, and loads those that are near.
func (w *slotWorld) stream(player work.Place) error {
	for i := range w.chunks {
		if c := &w.chunks[i]; c.slotChunk != nil && !c.place.Within(player, work.Far) {
			if err := w.unload(c); err != nil {
				return err
			}
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

func (w *slotWorld) load(p work.Place) error {
	slot, err := w.slots.Acquire()
	if err != nil {
		return err
	}
	values := &w.chunks[slot.Slot()]
	values.slot = slot
	_, err = budget.Load(w.ctx, slot, func(s scope.Scope) (*slotChunk, error) {
		return w.fill(s, values, p)
	})
	return err
}

func (w *slotWorld) fill(s scope.Scope, values *slotValues, p work.Place) (*slotChunk, error) {
	s.BytesUnzeroed(values.slot.Slot()%colours*colour, 64)
	c := slotChunks.New(s)
	c.place, c.heat = p, work.FirstHeat(p)
	work.Terrain(c.terrain[:], p)
	heap, err := arena.NewHeap(s.BytesUnzeroed(slotHeap, 64), 16)
	if err != nil {
		return nil, err
	}
	heap.MayLive() // a chunk ends with its entities
	values.slotChunk, values.heap = c, heap
	for range work.Population(p) {
		if err := w.born(values); err != nil {
			return nil, err
		}
	}
	w.at[cell(p.X, p.Z)] = scope.AddrOf(s, c)
	return c, nil
}

func (w *slotWorld) unload(c *slotValues) error {
	var entities uint64
	for j := range c.entities[:c.count] {
		entities += c.entities[j].Digest(c.data[j])
	}
	w.gone += work.ChunkDigest(c.place, c.heat, c.serial, c.terrain[:], entities)
	w.at[cell(c.place.X, c.place.Z)] = scope.Addr[slotChunk]{}
	c.slotChunk = nil
	return c.slot.Release(w.ctx)
}

func (w *slotWorld) warm() {
	for i := range w.chunks {
		c := w.chunks[i].slotChunk
		if c == nil {
			continue
		}
		p := c.place
		c.next = work.Warm(c.heat, w.heat(p.X, p.Z-1), w.heat(p.X+1, p.Z), w.heat(p.X, p.Z+1), w.heat(p.X-1, p.Z))
	}
}

func (w *slotWorld) find(x, z int32) *slotChunk {
	c := w.at[cell(x, z)].Get()
	if c == nil || c.place != (work.Place{X: x, Z: z}) {
		return nil
	}
	return c
}

func (w *slotWorld) heat(x, z int32) uint32 {
	if c := w.find(x, z); c != nil {
		return c.heat
	}
	return 0
}

// step plays a tick of a chunk, whose next heat was computed before.
func (w *slotWorld) step(c *slotValues, tick int) error {
	c.heat = c.next
	work.Burn(c.terrain[:], c.heat)
	for i := int32(0); i < c.count; {
		e, data := &c.entities[i], c.data[i]
		e.Step(c.terrain[:], data)
		if e.Left == 0 {
			w.dead += e.Digest(data)
			if err := bytes.DeleteSlice(c.heap, data); err != nil {
				return err
			}
			c.count--
			*e, c.data[i] = c.entities[c.count], c.data[c.count]
			continue
		}
		if e.Resizes() {
			data, err := resize(c.heap, e, data)
			if err != nil {
				return fmt.Errorf("%s: %w", c.slot.Name(), err)
			}
			c.data[i] = data
		}
		i++
	}
	if c.count < work.EntitiesInChunk && work.Spawns(c.place, tick) {
		return w.born(c)
	}
	return nil
}

// born adds an entity to a chunk, which has room for it.
func (w *slotWorld) born(c *slotValues) error {
	e := work.Born(c.place, c.serial)
	data := bytes.Slice(c.heap, e.DataSize())
	if data == nil {
		return fmt.Errorf("%s: %w", c.slot.Name(), heapFull(c.heap, e.DataSize()))
	}
	e.FillData(data, 0)
	c.entities[c.count], c.data[c.count] = e, data
	c.count++
	c.serial++
	return nil
}

func resize(heap arena.Heap, e *work.Entity, data []byte) ([]byte, error) {
	old, size := len(data), e.DataSize()
	if size == old {
		return data, nil
	}
	data, err := bytes.Grow(heap, data[:min(old, size)], size) // it also shrinks the block
	if err == nil && data == nil {
		err = heapFull(heap, size)
	}
	if err != nil {
		return nil, err
	}
	e.FillData(data, old)
	return data, nil
}

func heapFull(heap arena.Heap, size int) error {
	stats := heap.Stats()
	return fmt.Errorf("the heap has no room for %d bytes, %d of %d are free: %w",
		size, stats.Free, stats.Size, budget.ErrFull)
}
