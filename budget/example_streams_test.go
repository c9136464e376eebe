package budget_test

import (
	"context"
	"fmt"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// Step 1: the most chunks at once, and the most bytes of lists. The heap may be full now and then;
// enter handles that. Measure both in a run; a quarter of a heap is a fair reserve for its gaps.
const (
	chunksMax = 9
	heapSize  = 12 * budget.KiB
)

// Step 2: plain data. A chunk holds its neighbours as handles, because they come and go too. A list
// of varying length is on the heap, and the chunk holds its offset.
type (
	Cell  struct{ X, Y int32 }
	Plant struct{ X, Y, Kind, Age int16 }
	Chunk struct {
		At     Cell
		Beside [4]arena.Handle[Chunk] // east, south, west, north; the zero Handle names none
		Name   arena.String
		Plants arena.Slice[Plant]
	}
)

var (
	chunks = scope.Plain[Chunk]()
	cells  = scope.Plain[Cell]()
	links  = scope.Plain[arena.Handle[Chunk]]()
	plants = arena.HeapOf[Plant](nil) // HeapOf is for heaps, as scope.Plain is for scopes
	ways   = [4]Cell{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}
)

// Streamed is a world with the chunks around a walker in memory. It is a Go value; its chunks are
// in the region.
type Streamed struct {
	base   arena.Base
	chunks scope.HandlePool[Chunk]
	at     container.Map[Cell, arena.Handle[Chunk]]
	heap   arena.Heap
}

// Step 3: one region holds the pool, the map and the heap. The end of the level also ends all
// chunks, so blocks may still be on the heap then.
func loadStreamed(region budget.Region) (budget.Loaded[Streamed], error) {
	return budget.Load(context.Background(), region, func(s scope.Scope) (*Streamed, error) {
		heap, err := arena.NewHeap(s.BytesUnzeroed(heapSize, 64), 64)
		if err != nil {
			return nil, err
		}
		heap.MayLive()
		return &Streamed{region.Base(), chunks.HandlePool(s, chunksMax), container.NewMap(s, cells, links, chunksMax),
			heap}, nil
	})
}

// Step 4: a chunk comes while the game runs, whole or not at all. If the pool or the heap is full,
// enter undoes its steps and returns false. The world does without the chunk, and tries again when
// another chunk has left.
func (w *Streamed) enter(at Cell, name []byte, count int) bool {
	c, handle := w.chunks.Get()
	if c == nil {
		return false
	}
	c.At = at
	w.at.Set(at, handle) // has room: it is as large as the pool
	list := plants.Slice(w.heap, count)
	text, ok := arena.NewString(w.heap, w.base, name)
	c.Plants, c.Name = arena.SliceOf(w.base, list), text
	if list == nil || !ok {
		w.leave(at)
		return false
	}
	for i, way := range ways {
		if other := w.at.Get(Cell{at.X + way.X, at.Y + way.Y}); other != nil {
			c.Beside[i] = *other
			w.chunks.At(*other).Beside[(i+2)%4] = handle
		}
	}
	return true
}

// Step 5: a chunk leaves. Its neighbours need no notice: its handle is dead from now on, even when
// another chunk takes its place. An error here is a bug with a name, such as a list that was freed
// before or belongs to another heap.
func (w *Streamed) leave(at Cell) {
	handle := w.at.Get(at)
	c := w.chunks.At(*handle)
	mustBe(plants.DeleteSlice(w.heap, c.Plants.Get(w.base)))
	mustBe(arena.DeleteString(w.heap, w.base, c.Name))
	w.chunks.Put(*handle)
	w.at.Delete(at)
}

// Step 6: a list of a chunk grows. Grow ends the old slice, so the chunk takes the new one at once.
func (w *Streamed) plant(c *Chunk, p Plant) bool {
	list := c.Plants.Get(w.base)
	longer, err := plants.Grow(w.heap, list, len(list)+1)
	mustBe(err)
	if longer == nil {
		return false // the heap is full, and list is unchanged
	}
	longer[len(list)] = p
	c.Plants = arena.SliceOf(w.base, longer)
	return true
}

// east walks from chunk to chunk by handles alone.
func (w *Streamed) east(from Cell) (names []string) {
	for c := w.chunks.At(*w.at.Get(from)); c != nil; c = w.chunks.At(c.Beside[0]) {
		names = append(names, c.Name.Get(w.base))
	}
	return names
}

// A streamed world in one region, without unsafe: chunks of different sizes come and go while the
// game runs. All chunks have one type and are in a HandlePool. Their lists, of varying length, are
// in a Heap. A chunk refers to its neighbours by handles.
func Example_worldThatStreams() {
	b, err := budget.Open(budget.Plan{Name: "world",
		Regions: []budget.RegionPlan{{Name: "level", Size: 16 * budget.KiB}}})
	mustBe(err)
	level, err := loadStreamed(b.Region("level"))
	mustBe(err)
	w := level.Get()

	for x, name := range []string{"shore", "reeds", "pond"} {
		fmt.Println(name, "comes:", w.enter(Cell{int32(x), 0}, []byte(name), 100*(x+1)))
	}
	fmt.Println("east of the shore:", w.east(Cell{0, 0}))
	fmt.Println("a lily:", w.plant(w.chunks.At(*w.at.Get(Cell{2, 0})), Plant{Kind: 7}))

	fmt.Println("the heap has room for a forest:", w.enter(Cell{0, 1}, []byte("forest"), 500))
	w.leave(Cell{1, 0})
	fmt.Println("without the reeds:", w.enter(Cell{0, 1}, []byte("forest"), 500))
	fmt.Println("east of the shore:", w.east(Cell{0, 0}))
	stats := w.heap.Stats()
	fmt.Println(w.chunks.Live(), "chunks,", stats.Live, "blocks,", stats.Failed, "refused,", stats.Used, "of",
		stats.Size, "bytes used")
	fmt.Println("end:", b.Close())
	// Output:
	// shore comes: true
	// reeds comes: true
	// pond comes: true
	// east of the shore: [shore reeds pond]
	// a lily: true
	// the heap has room for a forest: false
	// without the reeds: true
	// east of the shore: [shore]
	// 3 chunks, 6 blocks, 1 refused, 7376 of 10544 bytes used
	// end: <nil>
}
