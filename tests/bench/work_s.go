package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

// workS has a state with the size and layout of a frogpond level's. A third of the pool is free.
var workS = work{
	letter: "S", title: "a level's state of 90 KiB: a snapshot, putting it back, its hash",
	absent: "Hand-written Go copies as many bytes, or takes CRC32C of them, without their types. On the Go " +
		"heap the same world is structs, pointers and slices, which are cloned field by field.",
	loops: []loop{
		{name: "S snapshot", unit: "state", units: 1, enter: func() []contestant { return enterS("take") }},
		{name: "S restore", unit: "state", units: 1, enter: func() []contestant { return enterS("restore") }},
		{name: "S snapshot and hash", unit: "state", units: 1, counted: 5, enter: func() []contestant {
			return enterS("both")
		}},
		{name: "S delta, 3000 writes in 1.7 MB", unit: "delta", units: 1, counted: 5, enter: enterDelta},
		{name: "S 64 MiB, 5 % written", unit: "state", units: 1, enter: enterTracked},
		{name: "S snapshot, 5 MB in a heap of 16 MiB", unit: "state", units: 1, counted: 5, enter: func() []contestant {
			return enterHeap(16, sqliteSizes, false)
		}},
		{name: "S snapshot, 5 MB in a heap of 64 MiB", unit: "state", units: 1, counted: 5, enter: func() []contestant {
			return enterHeap(64, sqliteSizes, false)
		}},
		{name: "S restore, 5 MB in a heap of 16 MiB", unit: "state", units: 1, counted: 5, enter: func() []contestant {
			return enterHeap(16, sqliteSizes, true)
		}},
		{name: "S restore, 5 MB in a heap of 64 MiB", unit: "state", units: 1, counted: 5, enter: func() []contestant {
			return enterHeap(64, sqliteSizes, true)
		}},
		{name: "S snapshot, blocks of 64 bytes", unit: "state", units: 1, counted: 5, enter: func() []contestant {
			return enterHeap(16, smallSizes, false)
		}},
		{name: "S restore, blocks of 64 bytes", unit: "state", units: 1, counted: 5, enter: func() []contestant {
			return enterHeap(16, smallSizes, true)
		}},
		{name: "S checkpoint, 20 KiB", unit: "state", units: 1, enter: enterCheckpoint},
		{name: "S checkpoint, 163 pages of 64 MiB", unit: "state", units: 1, enter: enterCheckpointTracked},
	},
}

const (
	frogsS   = 900
	sectorsS = 700
)

type frogS struct {
	X, Y, Heading, Hop, Rest, Life, Sightings, Sector int32
	Way                                               [6]int32
}

type sectorS struct {
	Floor, Ceiling int32
	Light, Special int16
	Flat           [3]int32
}

type rootS struct {
	Tick, Seed uint64
	Sectors    arena.Slice[sectorS]
	Frogs      arena.Slice[arena.Handle[frogS]]
	Players    [8][32]uint32
}

var (
	rootMakerS   = scope.Plain[rootS]()
	frogMakerS   = scope.Plain[frogS]()
	sectorMakerS = scope.Plain[sectorS]()
	handleMakerS = scope.Plain[arena.Handle[frogS]]()
)

// stateS returns a ring of a loaded state, the state's size, and the same world on the Go heap.
func stateS() (ring *save.Ring, size int, twin *worldS) {
	b, err := budget.Open(budget.Plan{Name: "save",
		Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB, State: true}}})
	if err != nil {
		panic(err)
	}
	region, twin := b.Region("level"), &worldS{byName: map[uint32]*frogS{}}
	_, err = budget.Load(context.Background(), region, func(s scope.Scope) (*rootS, error) {
		state, root := save.Begin(region, s, rootMakerS)
		sectors, handles := sectorMakerS.Slice(s, sectorsS), handleMakerS.Slice(s, frogsS)
		root.Sectors, root.Frogs = arena.SliceOf(region.Base(), sectors), arena.SliceOf(region.Base(), handles)
		frogs := frogMakerS.HandlePool(s, frogsS)
		r := rand.New(rand.NewPCG(22, 1))
		for i := range handles {
			var f *frogS
			f, handles[i] = frogs.Get()
			f.X, f.Way[3] = r.Int32(), r.Int32()
		}
		for _, h := range handles {
			if r.IntN(3) == 0 {
				frogs.Put(h)
			}
		}
		for _, f := range frogs.All() {
			twin.frogs = append(twin.frogs, new(*f))
			twin.byName[uint32(len(twin.frogs))] = twin.frogs[len(twin.frogs)-1]
		}
		twin.sectors = slices.Clone(sectors)
		ring = save.NewRing(s, 2, state)
		size = int(state.Size())
		return nil, nil
	})
	if err != nil {
		panic(err)
	}
	return ring, size, twin
}

// worldS is the same world with Go's types.
type worldS struct {
	tick, seed uint64
	sectors    []sectorS
	frogs      []*frogS
	byName     map[uint32]*frogS
	players    [8][32]uint32
}

// clone copies the world field by field, as a game written by hand does.
func (w *worldS) clone() *worldS {
	c := &worldS{tick: w.tick, seed: w.seed, sectors: slices.Clone(w.sectors), frogs: make([]*frogS, len(w.frogs)),
		byName: make(map[uint32]*frogS, len(w.byName)), players: w.players}
	for i, f := range w.frogs {
		c.frogs[i] = new(*f)
		c.byName[uint32(i+1)] = c.frogs[i]
	}
	return c
}

//go:noinline
func enterS(what string) []contestant {
	ring, size, twin := stateS()
	from, to := make([]byte, size), make([]byte, size)
	var kept *worldS
	library := contestant{who: library}
	hand := contestant{who: byHand, run: func(n int) uint64 {
		for range n {
			copy(to, from)
		}
		return 0
	}}
	cloned := contestant{who: goHeap, run: func(n int) uint64 {
		for range n {
			kept = twin.clone()
		}
		return uint64(len(kept.frogs) - len(twin.frogs))
	}}
	mustS(ring.Take(1))
	switch what {
	case "take":
		library.run = func(n int) uint64 {
			for i := range n {
				mustS(ring.Take(uint64(i)))
			}
			return 0
		}
	case "restore":
		ctx := context.Background()
		library.run = func(n int) uint64 {
			for range n {
				mustS(ring.Restore(ctx, 1))
			}
			return 0
		}
	case "both":
		library.run = func(n int) uint64 {
			for range n {
				mustS(ring.Take(1))
				_, err := ring.Hash(1)
				mustS(err)
			}
			return 0
		}
		hand.run = func(n int) uint64 {
			for range n {
				copy(to, from)
				if crc32.Checksum(to, castagnoli) == 0 {
					panic("the sum of a state is 0")
				}
			}
			return 0
		}
		return []contestant{library, hand}
	}
	return []contestant{library, hand, cloned}
}

// enterDelta makes deltas between two snapshots that were hashed.
//
//go:noinline
func enterDelta() []contestant {
	const size, writes = 1_700_000, 3000
	all, ring := bytesS(budget.RegionPlan{Name: "level", Size: 2 * budget.MiB, State: true}, size, 2)
	r := rand.New(rand.NewPCG(22, 3))
	mustS(ring.Take(1))
	for range writes {
		binary.LittleEndian.PutUint64(all[8*r.IntN(size/8):], r.Uint64())
	}
	mustS(ring.Take(2))
	delta, err := ring.Delta(nil, 1, 2)
	mustS(err)
	if len(delta) > 40*budget.KiB {
		panic(fmt.Sprintf("a delta of %d bytes", len(delta)))
	}
	to := make([]byte, size)
	return []contestant{
		{who: library, run: func(n int) uint64 {
			for range n {
				delta, err = ring.Delta(delta[:0], 1, 2)
				mustS(err)
			}
			return 0
		}},
		{who: byHand, run: func(n int) uint64 {
			for range n {
				copy(to, all)
			}
			return 0
		}}}
}

// bytesS returns a loaded state of bytes, and its ring, which is in the next region.
func bytesS(level budget.RegionPlan, size, places int) (all []byte, ring *save.Ring) {
	b, err := budget.Open(budget.Plan{Name: "save", Regions: []budget.RegionPlan{level,
		{Name: "ring", Size: uint64(places+1)*uint64(size) + budget.MiB}}})
	mustS(err)
	var state *save.State
	for _, r := range []budget.Region{b.Region("level"), b.Region("ring")} {
		_, err := budget.Load(context.Background(), r, func(s scope.Scope) (*rootS, error) {
			if state == nil {
				state, _ = save.Begin(r, s, rootMakerS)
				all = s.Bytes(size)
			} else {
				ring = save.NewRing(s, places, state)
			}
			return nil, nil
		})
		mustS(err)
	}
	return all, ring
}

func mustS(err error) {
	if err != nil {
		panic(err)
	}
}

const trackedS = 64 << 20

// enterTracked writes a byte to the same twentieth of the pages before each snapshot, as games
// often do.
//
//go:noinline
func enterTracked() []contestant {
	all, ring := bytesS(budget.RegionPlan{Name: "level", Size: trackedS + budget.MiB, Track: true}, trackedS, 8)
	pages := rand.New(rand.NewPCG(22, 2)).Perm(trackedS / 4096)[:trackedS/4096/20]
	turn := func(copies func(tick int)) func(n int) uint64 {
		return func(n int) uint64 {
			for tick := range n {
				for _, page := range pages {
					all[4096*page]++
				}
				copies(tick)
			}
			return 0
		}
	}
	to := make([]byte, trackedS)
	return []contestant{
		{who: library, run: turn(func(tick int) {
			mustS(ring.Take(uint64(tick)))
		})},
		{who: byHand, run: turn(func(int) { copy(to, all) })}}
}

// heapPlacesS is the number of snapshots of a heap. By hand as many copies are kept, plus one.
const heapPlacesS = 4

// enterHeap fills a heap of so many MiB with blocks of these sizes, frees half of them, and takes
// or restores snapshots. The others copy as many bytes as are in use. Go's copy stores more than
// 1 MiB past the caches, and C's memcpy through them.
//
//go:noinline
func enterHeap(mib int, size func(r *rand.Rand) uint64, restores bool) []contestant {
	const used = 5 << 20
	b, err := budget.Open(budget.Plan{Name: "save", Regions: []budget.RegionPlan{
		{Name: "level", Size: 2*uint64(mib)*budget.MiB + 4*(heapPlacesS+2)*used, State: true}}})
	mustS(err)
	region := b.Region("level")
	var ring *save.Ring
	var from []byte
	var to [heapPlacesS + 1][]byte
	_, err = budget.Load(context.Background(), region, func(s scope.Scope) (*rootS, error) {
		state, root := save.Begin(region, s, rootMakerS)
		heap, err := arena.NewHeap(s.BytesUnzeroed(mib<<20, 64), 256)
		mustS(err)
		heap.MayLive()
		fillS(heap, used, size)
		state.Heap(heap, used+used/2)
		ring = save.NewRing(s, heapPlacesS, state)
		from = s.Bytes(used)
		for i := range to {
			to[i] = s.Bytes(used)
		}
		return root, nil
	})
	mustS(err)
	for i := range heapPlacesS {
		mustS(ring.Take(uint64(i)))
	}
	copies := func(who string, move func(to, from []byte)) contestant {
		return contestant{who: who, run: func(n int) uint64 {
			for i := range n {
				if kept := to[i%len(to)]; restores {
					move(from, kept)
				} else {
					move(kept, from)
				}
			}
			return 0
		}}
	}
	ctx := context.Background()
	return []contestant{
		{who: library, run: func(n int) uint64 {
			for i := range n {
				if restores {
					mustS(ring.Restore(ctx, uint64(i%heapPlacesS)))
				} else {
					mustS(ring.Take(uint64(i % heapPlacesS)))
				}
			}
			return 0
		}},
		copies(floor, cfloor.Memcpy),
		copies(byHand, func(to, from []byte) { copy(to, from) })}
}

// sqliteSizes returns SQLite's sizes, mostly pages of 4 KiB.
func sqliteSizes(r *rand.Rand) uint64 {
	size := 4368 + r.Uint64N(2)*8
	if r.IntN(8) == 0 {
		size = 16 + r.Uint64N(500)
	}
	return size
}

// smallSizes returns 49 to 64 bytes: every block has 80 in the heap, and most of them bytes after
// the requested size.
func smallSizes(r *rand.Rand) uint64 { return 49 + r.Uint64N(16) }

// fillS fills a heap until twice as many bytes are in use, and frees blocks until only those are.
func fillS(heap arena.Heap, used uint64, sizes func(r *rand.Rand) uint64) {
	r := rand.New(rand.NewPCG(22, 4))
	var live []unsafe.Pointer
	for heap.Stats().Used < 2*used {
		size := sizes(r)
		p := heap.Alloc(size, 16)
		for i := range unsafe.Slice((*byte)(p), size) {
			unsafe.Slice((*byte)(p), size)[i] = byte(size)
		}
		live = append(live, p)
	}
	for heap.Stats().Used > used {
		i := r.IntN(len(live))
		mustS(heap.Free(live[i]))
		live[i] = live[len(live)-1]
		live = live[:len(live)-1]
	}
}
