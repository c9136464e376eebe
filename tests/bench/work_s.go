package main

import (
	"context"
	"hash/crc32"
	"math/rand/v2"
	"slices"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// workS has a state of the size and shape of a level of frogpond: a third of the pool is free.
var workS = work{
	letter: "S", title: "a level's state of 90 KiB: a snapshot, putting it back, its hash",
	absent: "Hand-written Go copies as many bytes, or takes CRC32C of them, and knows nothing of what is in them. On the Go " +
		"heap the same world is structs, pointers and slices, which are cloned field by field.",
	loops: []loop{
		{name: "S snapshot", unit: "state", units: 1, enter: func() []contestant { return enterS("take") }},
		{name: "S restore", unit: "state", units: 1, enter: func() []contestant { return enterS("restore") }},
		{name: "S hash", unit: "state", units: 1, enter: func() []contestant { return enterS("hash") }},
		{name: "S snapshot and hash", unit: "state", units: 1, enter: func() []contestant { return enterS("both") }},
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

// stateS is a ring of a loaded state, the state's size, and a twin on the Go heap.
func stateS() (ring *save.Ring, size int, twin *worldS) {
	b, err := budget.Open(budget.Plan{Name: "save", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB, State: true}}})
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

// worldS is such a world as games in Go have it.
type worldS struct {
	tick, seed uint64
	sectors    []sectorS
	frogs      []*frogS
	byName     map[uint32]*frogS
	players    [8][32]uint32
}

// clone is what a game writes by hand, and forgets a field of.
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
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	must(ring.Take(1))
	switch what {
	case "take":
		library.run = func(n int) uint64 {
			for i := range n {
				must(ring.Take(uint64(i)))
			}
			return 0
		}
	case "restore":
		ctx := context.Background()
		library.run = func(n int) uint64 {
			for range n {
				must(ring.Restore(ctx, 1))
			}
			return 0
		}
	case "hash":
		library.run = func(n int) (sum uint64) {
			for range n {
				sum, _ = ring.Hash(1)
			}
			return sum - sum
		}
		hand.run = func(n int) (sum uint64) {
			for range n {
				sum = uint64(crc32.Checksum(from, castagnoli))
			}
			return sum - sum
		}
		return []contestant{library, hand}
	case "both":
		library.run = func(n int) (sum uint64) {
			for range n {
				must(ring.Take(1))
				sum, _ = ring.Hash(1)
			}
			return sum - sum
		}
		hand.run = func(n int) (sum uint64) {
			for range n {
				copy(to, from)
				sum = uint64(crc32.Checksum(to, castagnoli))
			}
			return sum - sum
		}
		return []contestant{library, hand}
	}
	return []contestant{library, hand, cloned}
}
