package save_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
	"github.com/upfront-mem/upfront/tests/step"
)

// tile is a key with parts: a float, and a blank field, which == ignores.
type tile struct {
	X, Y   float32
	Layer  uint32
	_      uint32
	Secret bool
	_      [7]byte
}

var (
	tileMaker  = scope.Plain[tile]()
	countMaker = scope.Plain[int32]()
)

// shelf is a state with containers.
type shelf struct {
	region budget.Region
	room   *room
	flies  container.List[fly]
	line   container.Deque[int32]
	tiles  container.Map[tile, fly]
	ids    container.Map[int32, int32]
	names  container.StringMap[fly]
	ring   *save.Ring
}

const (
	linesMost, idsMost, namesMost, nameMost = 9, 24, 12, 10
)

func newShelf(t testing.TB, b *budget.Budget, places int) *shelf {
	x := &shelf{region: b.Region("level")}
	_, err := budget.Load(context.Background(), x.region, func(s scope.Scope) (*shelf, error) {
		byteMaker.Slice(s, 100)
		var state *save.State
		state, x.room = save.Begin(x.region, s, roomMaker)
		x.flies = container.NewList(s, flyMaker, linesMost)
		x.line = container.NewDeque(s, countMaker, linesMost)
		x.tiles = container.NewMap(s, tileMaker, flyMaker, linesMost)
		x.ids = container.NewMap(s, countMaker, countMaker, idsMost)
		x.names = container.NewStringMap(s, flyMaker, namesMost, nameMost)
		x.names.Seed(77)
		x.ring = save.NewRing(s, places, state)
		return x, nil
	})
	require.NoError(t, err)
	return x
}

// held is the model of the containers, in Go.
type held struct {
	flies []fly
	line  []int32
	tiles map[tile]fly
	ids   map[int32]int32
	names map[string]fly
	order []string // of names, with hole for a deleted one
	freed []int    // the holes, the newest last
}

const hole = "a hole" // a name that aName never returns

func (h *held) clone() held {
	return held{slices.Clone(h.flies), slices.Clone(h.line), maps.Clone(h.tiles), maps.Clone(h.ids),
		maps.Clone(h.names), slices.Clone(h.order), slices.Clone(h.freed)}
}

func newHeld() held {
	return held{tiles: map[tile]fly{}, ids: map[int32]int32{}, names: map[string]fly{}}
}

func aTile(r *rand.Rand) tile {
	return tile{X: float32(r.IntN(4)) / 3, Layer: uint32(r.IntN(4)), Secret: r.IntN(2) == 0}
}

func aName(r *rand.Rand) string {
	return strings.Repeat(string(rune('a'+r.IntN(5))), r.IntN(nameMost+1))
}

// step makes one change to the containers and the model.
func (x *shelf) step(t testing.TB, r *rand.Rand, h *held) {
	f := fly{At: r.Uint64()}
	switch r.IntN(16) {
	case 0, 1:
		if x.flies.Push(f) {
			h.flies = append(h.flies, f)
		}
		require.Equal(t, len(h.flies), x.flies.Len())
	case 2:
		if n := len(h.flies); n != 0 {
			i := r.IntN(n)
			x.flies.RemoveSwap(i)
			h.flies[i] = h.flies[n-1]
			h.flies = h.flies[:n-1]
		}
	case 3, 4:
		if v := int32(f.At); x.line.PushBack(v) {
			h.line = append(h.line, v)
		}
	case 5:
		if v := int32(f.At); x.line.PushFront(v) {
			h.line = slices.Insert(h.line, 0, v)
		}
	case 6:
		if _, ok := x.line.PopFront(); ok {
			h.line = slices.Delete(h.line, 0, 1)
		}
	case 7:
		if _, ok := x.line.PopBack(); ok {
			h.line = h.line[:len(h.line)-1]
		}
	case 8, 9:
		if k := aTile(r); x.tiles.Set(k, f) {
			h.tiles[k] = f
		}
	case 10:
		k := aTile(r)
		k.Y = float32(math.Copysign(0, -1)) // which is 0
		x.tiles.Delete(k)
		delete(h.tiles, k)
	case 11, 12:
		if k := int32(r.IntN(2 * idsMost)); x.ids.Set(k, int32(f.At)) {
			h.ids[k] = int32(f.At)
		}
	case 13:
		k := int32(r.IntN(2 * idsMost))
		x.ids.Delete(k)
		delete(h.ids, k)
	case 14:
		k := aName(r)
		_, known := h.names[k]
		if x.names.Set(k, f) == nil {
			h.names[k] = f
			if !known {
				if last := len(h.freed) - 1; last >= 0 {
					h.order[h.freed[last]], h.freed = k, h.freed[:last]
				} else {
					h.order = append(h.order, k)
				}
			}
		}
	case 15:
		k := aName(r)
		if x.names.Delete(k) {
			i := slices.Index(h.order, k)
			h.order[i], h.freed = hole, append(h.freed, i)
			delete(h.names, k)
		}
		if r.IntN(40) == 0 {
			x.flies.Clear()
			x.line.Clear()
			x.tiles.Clear()
			x.names.Clear()
			h.flies, h.line, h.order, h.freed = nil, nil, nil, nil
			clear(h.tiles)
			clear(h.names)
		}
	}
	x.room.Tick++
}

// is requires the containers to equal the model.
func (x *shelf) is(t testing.TB, h *held) {
	got := newHeld()
	for _, f := range x.flies.All() {
		got.flies = append(got.flies, *f)
	}
	for _, v := range x.line.All() {
		got.line = append(got.line, *v)
	}
	for k, v := range x.tiles.All() {
		got.tiles[k] = *v
		require.Same(t, v, x.tiles.Get(k))
	}
	for k, v := range x.ids.All() {
		got.ids[k] = *v
		require.Same(t, v, x.ids.Get(k))
	}
	for k, v := range x.names.All() {
		k = strings.Clone(k)
		got.names[k] = *v
		got.order = append(got.order, k)
		require.Same(t, v, x.names.Get(k))
	}
	want := h.clone()
	want.order, want.freed = slices.DeleteFunc(want.order, func(k string) bool { return k == hole }), nil
	require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
	require.Equal(t, []int{len(h.flies), len(h.line), len(h.tiles), len(h.ids), len(h.names)},
		[]int{x.flies.Len(), x.line.Len(), x.tiles.Len(), x.ids.Len(), x.names.Len()})
}

// TestContainersAreState: after Restore the containers are as they were at Take.
func TestContainersAreState(t *testing.T) {
	const places = 4
	x := newShelf(t, open(t, pondPlan()), places)
	r := rand.New(rand.NewPCG(7, 7))
	h := newHeld()
	var taken [places]held
	for number := range taken {
		require.NoError(t, x.ring.Take(uint64(number)))
		taken[number] = h.clone()
	}
	for range step.Pick(60, 400, 4000) {
		for range r.IntN(30) {
			x.step(t, r, &h)
		}
		x.is(t, &h)
		if number := r.IntN(places); r.IntN(2) == 0 {
			require.NoError(t, x.ring.Restore(t.Context(), uint64(number)))
			h = taken[number].clone()
			x.is(t, &h)
		} else {
			require.NoError(t, x.ring.Take(uint64(number)))
			taken[number] = h.clone()
			image := save.Image(x.ring, uint64(number))
			require.NoError(t, save.Hold(x.ring, uint64(number), image), "what play leaves passes")
		}
	}
}

// TestHashOfContainers: the hash is the same in each process and build, and after playing again.
func TestHashOfContainers(t *testing.T) {
	x := newShelf(t, open(t, pondPlan()), 4)
	h := newHeld()
	play := func(seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		for range 300 {
			x.step(t, r, &h)
		}
	}
	play(1)
	require.NoError(t, x.ring.Take(1))
	was := h.clone()
	play(2)
	require.NoError(t, x.ring.Take(2))
	assert.Equal(t, uint64(0xfeed7125f828b4bb), hash(t, x.ring, 1))
	assert.Equal(t, uint64(0x5adc31b9d45f66ae), hash(t, x.ring, 2))
	require.NoError(t, x.ring.Restore(t.Context(), 1))
	h = was
	play(2)
	require.NoError(t, x.ring.Take(3))
	assert.Equal(t, hash(t, x.ring, 2), hash(t, x.ring, 3))
}

// TestContainersGoElsewhere: a file and a delta bring containers to another process.
func TestContainersGoElsewhere(t *testing.T) {
	here, there := newShelf(t, open(t, pondPlan()), 3), newShelf(t, open(t, pondPlan()), 3)
	r := rand.New(rand.NewPCG(3, 3))
	h, others := newHeld(), newHeld()
	for range 500 {
		here.step(t, r, &h)
		there.step(t, r, &others)
	}
	require.NoError(t, here.ring.Take(1))
	var file bytes.Buffer
	require.NoError(t, here.ring.Write(&file, 1))
	number, err := there.ring.Read(&file)
	require.NoError(t, err)
	require.NoError(t, there.ring.Restore(t.Context(), number))
	there.is(t, &h)
	for range 500 {
		here.step(t, r, &h)
	}
	require.NoError(t, here.ring.Take(2))
	delta, err := here.ring.Delta(nil, 1, 2)
	require.NoError(t, err)
	number, err = there.ring.Apply(delta)
	require.NoError(t, err)
	require.NoError(t, there.ring.Restore(t.Context(), number))
	there.is(t, &h)
	for range 100 {
		there.step(t, r, &h)
	}
	there.is(t, &h)
}

// TestHostileContainers: a forged container is refused with the place, and nothing changes.
func TestHostileContainers(t *testing.T) {
	x := newShelf(t, open(t, pondPlan()), 3)
	for i := range int32(5) {
		x.flies.Push(fly{At: uint64(i)})
		x.line.PushFront(i)
		x.ids.Set(i, i)
		require.NoError(t, x.names.Set(fmt.Sprint("name ", i), fly{}))
	}
	x.ids.Set(5, 5)
	x.ids.Delete(2)
	require.NoError(t, x.ring.Take(1))
	tenants := save.Tenants(x.ring)
	require.Equal(t, []string{"container.List[save_test.fly]", "container.Deque[int32]",
		"container.Map[save_test.tile,save_test.fly]", "container.Map[int32,int32]",
		"container.StringMap[save_test.fly]"}, save.TenantNames(x.ring))
	var image []byte
	word := func(at int) *uint32 { return (*uint32)(unsafe.Pointer(&image[at])) }
	list, deque, ids, names := tenants[0][0], tenants[1][0], tenants[3][0], tenants[4][0]
	const used, most = 16, 20 // of a map's words, the seed first; its cells follow them
	const noCell = "no cell leads to entry"
	const idCells, nameCells = 32, 16
	idOrder, nameOrder := ids+24+8*idCells, names+24+8*nameCells
	idKeys := idOrder + 8*idsMost
	nameSizes := nameOrder + 8*namesMost
	nameBytes := nameSizes + 8*namesMost + 16*namesMost
	cell := func(of, cells int, nth int) int { // a cell in use
		for i := range cells {
			if at := of + 24 + 8*i; *word(at + 4) != 0 {
				if nth--; nth < 0 {
					return at
				}
			}
		}
		t.Fatal("no such cell")
		return 0
	}
	empty := func(of, cells int) int {
		for i := range cells {
			if at := of + 24 + 8*i; *word(at + 4) == 0 {
				return at
			}
		}
		t.Fatal("no empty cell")
		return 0
	}
	for _, test := range []struct {
		what   string
		change func()
		says   string
	}{
		{"a list of more", func() { *word(list) = linesMost + 1 },
			"container.List[save_test.fly]: 10 values, of 9 at most"},
		{"a list of very many", func() { *word(list + 4) = 1 << 31 }, "container.List"},
		{"a deque of more", func() { *word(deque + 8) = linesMost + 1 },
			"container.Deque[int32]: 10 values from place 4 on, in a ring of 9"},
		{"a deque from beyond", func() { *word(deque) = linesMost },
			"5 values from place 9 on, in a ring of 9"},
		{"a deque from far", func() { *word(deque + 4) = 1 << 31 }, "container.Deque"},
		{"another seed", func() { *word(ids)++ }, "container.Map[int32,int32]: " + noCell},
		{"another seed's other word", func() { *word(names + 8)++ },
			"container.StringMap[save_test.fly]: " + noCell},
		{"a map of more", func() { *word(ids + used) = idsMost + 1 }, "25 keys, of 24 at most"},
		{"a map of very many", func() { *word(ids + used) = math.MaxUint32 }, "keys, of 24 at most"},
		{"one key more", func() { *word(ids + used)++ }, "6 keys, and 5 cells with one"},
		{"one key less", func() { *word(ids + used)-- }, "4 keys, and 5 cells with one"},
		{"no keys", func() { *word(ids + used) = 0 }, "0 keys, and 5 cells"},
		{"fewer at most", func() { *word(ids + most) = 4 }, "a peak of 4 keys, and 5 now, of at most 24"},
		{"more at most", func() { *word(ids + most) = idsMost + 1 }, "a peak of 25 keys, and 5 now, of at most 24"},
		{"a key that All doesn't show", func() { *word(ids + most) = 5 }, "a key has entry 5, past a peak of 5 keys"},
		{"an order beyond", func() { *word(idOrder) = idsMost },
			"entry 24 of 24 is out of range"},
		{"an order far beyond", func() { *word(idOrder) = math.MaxUint32 },
			"is out of range"},
		{"an entry twice", func() { *word(idOrder) = *word(idOrder + 8) }, "or twice in the order"},
		{"a rank twice", func() { *word(idOrder + 4) = *word(idOrder + 12) }, "or twice in the order"},
		{"ranks that change places", func() {
			a, b := word(idOrder+4), word(idOrder+12)
			*a, *b = *b, *a
		}, "or twice in the order"},
		{"a free entry as a live one", func() { // in the order and in its rank
			live, free := *word(idOrder), *word(idOrder + 8*(idsMost-1))
			*word(idOrder), *word(idOrder + 8*(idsMost-1)) = free, live
			*word(idOrder + 8*int(free) + 4) = 0
			*word(idOrder + 8*int(live) + 4) = idsMost - 1
		}, noCell},
		{"a cell beyond", func() { *word(cell(ids, idCells, 0) + 4) = idsMost + 1 }, noCell},
		{"a cell far beyond", func() { *word(cell(ids, idCells, 0) + 4) = math.MaxUint32 }, noCell},
		{"a cell that is empty", func() { *word(cell(ids, idCells, 0) + 4) = 0 },
			"is empty and has the hash"},
		{"a cell less", func() { clear(image[cell(ids, idCells, 0):][:8]) }, "5 keys, and 4 cells"},
		{"cells with one", func() {
			*word(cell(ids, idCells, 0) + 4) = *word(cell(ids, idCells, 1) + 4)
		}, noCell},
		{"another hash", func() { *word(cell(ids, idCells, 0))++ }, noCell},
		{"an empty cell's hash", func() { *word(empty(ids, idCells)) = 1 },
			"is empty and has the hash 0x1"},
		{"a cell where its hash isn't", func() {
			from, to := cell(ids, idCells, 0), empty(ids, idCells)
			for i := range idCells { // one that is not a neighbour's
				at := ids + 24 + 8*i
				before := ids + 24 + 8*((i+idCells-1)%idCells)
				if *word(at + 4) == 0 && *word(before + 4) == 0 {
					to = at
				}
			}
			copy(image[to:to+8], image[from:from+8])
			clear(image[from : from+8])
		}, noCell},
		{"an index that is full", func() {
			for i := range idCells {
				*word(ids + 24 + 8*i + 4) = 1
			}
		}, "and 32 cells with one"},
		{"another key", func() { *word(idKeys) += 100 }, noCell},
		{"a key twice", func() { *word(idKeys) = *word(idKeys + 4) }, noCell},
		{"a key of more bytes", func() { *word(nameSizes) = nameMost + 1 },
			"a key of 11 bytes, of 10 at most"},
		{"a free key of very many", func() { *word(nameSizes + 8*(namesMost-1)) = math.MaxUint32 },
			"bytes, of 10 at most"},
		{"another name", func() { image[nameBytes]++ }, noCell},
		{"a shorter name", func() { *word(nameSizes)-- }, noCell},
	} {
		image = save.Image(x.ring, 1)
		require.NoError(t, save.Hold(x.ring, 2, image), test.what) // the control
		before := save.Image(x.ring, 1)
		test.change()
		err := save.Hold(x.ring, 2, image)
		require.ErrorContains(t, err, test.says, test.what)
		require.ErrorContains(t, err, "region level, byte 0x", test.what)
		require.Equal(t, before, save.Image(x.ring, 2), test.what)
	}
}

// TestHostileContainerImages: if changed bytes of containers pass, play goes on in bounds and
// leaves a state that passes, and the containers hold each key once.
func TestHostileContainerImages(t *testing.T) {
	x := newShelf(t, open(t, pondPlan()), 4)
	r := rand.New(rand.NewPCG(5, 5))
	h := newHeld()
	var good [6][]byte
	for i := range good {
		for range i * 60 {
			x.step(t, r, &h)
		}
		require.NoError(t, x.ring.Take(1))
		good[i] = save.Image(x.ring, 1)
	}
	tenants := save.Tenants(x.ring)
	passed, rounds := 0, step.Pick(3000, 20000, 200000)
	for range rounds {
		image := bytes.Clone(good[r.IntN(len(good))])
		for range 1 + r.IntN(3) {
			of := tenants[r.IntN(len(tenants))]
			from, to := of[0], of[1]
			if r.IntN(2) == 0 {
				to = min(to, from+24+8*16) // words and cells
			}
			switch at := from + r.IntN(to-from); r.IntN(3) {
			case 0:
				image[at] ^= 1 << r.IntN(8)
			case 1:
				binary.LittleEndian.PutUint32(image[at&^3:], uint32(r.IntN(40)))
			default:
				copy(image[at&^7:][:8], image[from+r.IntN(to-from)&^7:])
			}
		}
		if save.Hold(x.ring, 2, image) != nil {
			continue
		}
		passed++
		require.NoError(t, x.ring.Restore(t.Context(), 2))
		x.survives(t, r)
	}
	assert.Greater(t, passed, rounds/20)
	assert.Less(t, passed, rounds*19/20)
}

// survives plays from any containers, and checks the state that it leaves.
func (x *shelf) survives(t testing.TB, r *rand.Rand) {
	before := x.counts()
	require.Equal(t, before, [5]int{count(x.flies.All()), count(x.line.All()), count(x.tiles.All()),
		count(x.ids.All()), count(x.names.All())})
	for k := range x.ids.All() {
		require.NotNil(t, x.ids.Get(k))
	}
	h := newHeld() // of another history; only the containers count
	for range 40 {
		func() {
			defer func() {
				if v := recover(); v != nil {
					require.IsType(t, "", v, "the model's own: %v", v)
				}
			}()
			h.flies, h.line = make([]fly, x.flies.Len()), make([]int32, x.line.Len())
			h.order, h.freed = nil, nil
			for k := range x.names.All() {
				h.order = append(h.order, strings.Clone(k))
			}
			x.step(t, r, &h)
		}()
	}
	require.NoError(t, x.ring.Take(3))
	require.NoError(t, save.Hold(x.ring, 3, save.Image(x.ring, 3)), "what play leaves passes")
}

func (x *shelf) counts() [5]int {
	return [5]int{x.flies.Len(), x.line.Len(), x.tiles.Len(), x.ids.Len(), x.names.Len()}
}

func count[K, V any](all func(func(K, V) bool)) (n int) {
	all(func(K, V) bool { n++; return true })
	return n
}

// TestKeysThatCollide: an image with very many keys of one hash doesn't take forever.
func TestKeysThatCollide(t *testing.T) {
	const n = 1 << 13
	plan := pondPlan()
	plan.Regions[0].Size = 4 * budget.MiB
	b := open(t, plan)
	r := b.Region("level")
	type key [4]uint64
	var ring *save.Ring
	var ids container.Map[key, uint8]
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, roomMaker)
		ids = container.NewMap(s, scope.Plain[key](), byteMaker, n)
		ring = save.NewRing(s, 2, state)
	})
	require.NoError(t, ring.Take(1))
	seed := binary.LittleEndian.Uint64(save.Image(ring, 1)[save.Tenants(ring)[0][0]+8:])
	fill := func(keys uint64) error {
		for i := range keys {
			// such keys can be chosen if the seed is known
			require.True(t, ids.Set(key{seed, i}, 1))
		}
		require.NoError(t, ring.Take(1))
		return save.Hold(ring, 2, save.Image(ring, 1))
	}
	require.NoError(t, fill(1000))
	require.ErrorContains(t, fill(n), "keys that collide too often; play with another Seed")
	ids.Clear()
	ids.Seed(1)
	require.NoError(t, fill(n))
}

// TestWhatKeptRefuses: a container's types are checked like those of pools, and a Builder can't be
// in a state.
func TestWhatKeptRefuses(t *testing.T) {
	type gap struct {
		A uint8
		B uint32
	}
	gaps := scope.Plain[gap]()
	addresses := scope.Plain[scope.Addr[fly]]()
	b := open(t, pondPlan())
	r := b.Region("level")
	refused := func(says string, in func(s scope.Scope)) {
		t.Helper()
		defer func() {
			t.Helper()
			assert.ErrorContains(t, recover().(error), says)
		}()
		load(t, b, "level", func(_ budget.Region, s scope.Scope) {
			state, _ := save.Begin(r, s, roomMaker)
			in(s)
			save.NewRing(s, 1, state)
		})
	}
	const padding = "3 bytes of padding after gap.A"
	refused(padding, func(s scope.Scope) { container.NewList(s, gaps, 1) })
	refused("in a container.Deque[save_test.gap", func(s scope.Scope) {
		container.NewDeque(s, gaps, 1)
	})
	refused(padding, func(s scope.Scope) { container.NewMap(s, gaps, flyMaker, 1) })
	refused(padding, func(s scope.Scope) { container.NewMap(s, countMaker, gaps, 1) })
	refused("means nothing in another process", func(s scope.Scope) {
		container.NewStringMap(s, addresses, 1, 1)
	})
	refused("save: BUG: a Builder is at work in region level, and its values are in no state yet: "+
		"call Done before NewRing", func(s scope.Scope) {
		flies := flyMaker.Build(s)
		flies.Push(fly{})
	})
}

// TestKeptThatWentBack: a container of a failed constructor or a closed scope is in no state.
func TestKeptThatWentBack(t *testing.T) {
	b := open(t, pondPlan())
	r := b.Region("level")
	var ring *save.Ring
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, roomMaker)
		require.NoError(t, s.Do("child", func(s scope.Scope) error {
			container.NewList(s, flyMaker, 3)
			return nil
		}))
		_, err := flyMaker.Make(s, func(*fly) error {
			container.NewDeque(s, flyMaker, 3)
			return context.Canceled
		})
		require.ErrorIs(t, err, context.Canceled)
		container.NewMap(s, countMaker, flyMaker, 3)
		ring = save.NewRing(s, 1, state)
		container.NewList(s, flyMaker, 3) // after the state
	})
	assert.Equal(t, []string{"container.Map[int32,save_test.fly]"}, save.TenantNames(ring))
}

// TestSeed: the program can set the seed, but only of an empty map.
func TestSeed(t *testing.T) {
	hashes := map[uint64]uint64{}
	for _, seed := range []uint64{0, 1, 1 << 63} {
		for range 2 {
			b := open(t, pondPlan())
			r := b.Region("level")
			var ring *save.Ring
			load(t, b, "level", func(_ budget.Region, s scope.Scope) {
				state, _ := save.Begin(r, s, roomMaker)
				m := container.NewMap(s, countMaker, countMaker, 3)
				if seed != 0 {
					m.Seed(seed)
				}
				m.Set(1, 1)
				assert.PanicsWithError(t, "scope: BUG: Seed of a map that has 1 keys: seed it first",
					func() { m.Seed(0) })
				ring = save.NewRing(s, 1, state)
			})
			require.NoError(t, ring.Take(1))
			if was, known := hashes[seed]; known {
				assert.Equal(t, was, hash(t, ring, 1))
			}
			hashes[seed] = hash(t, ring, 1)
		}
	}
	assert.NotEqual(t, hashes[0], hashes[1])
	assert.NotEqual(t, hashes[1], hashes[1<<63])
}

// TestPtrToAKeptValue: an arena.Ptr may lead to a container's value, not to its words.
func TestPtrToAKeptValue(t *testing.T) {
	type root struct{ First arena.Ptr[fly] }
	b := open(t, pondPlan())
	r := b.Region("level")
	var ring *save.Ring
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		state, root := save.Begin(r, s, scope.Plain[root]())
		flies := container.NewList(s, flyMaker, 3)
		flies.Push(fly{})
		root.First = arena.PtrTo(r.Base(), flies.At(0))
		ring = save.NewRing(s, 2, state)
	})
	require.NoError(t, ring.Take(1))
	image := save.Image(ring, 1)
	require.NoError(t, save.Hold(ring, 2, image))
	at := save.ControlOf(ring).From
	binary.LittleEndian.PutUint64(image[at:], binary.LittleEndian.Uint64(image[at:])-8)
	require.ErrorContains(t, save.Hold(ring, 2, image),
		"over container.List[save_test.fly], and not in one live block of it")
}

// aMapOf loads a state with one map of n entries, and takes snapshot 1.
func aMapOf[K comparable, V any](t *testing.T, n int, rest int) (*save.Ring, *container.Map[K, V]) {
	b := open(t, pondPlan())
	r := b.Region("level")
	var ring *save.Ring
	var made *container.Map[K, V]
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, roomMaker)
		m := container.NewMap(s, scope.Plain[K](), scope.Plain[V](), n)
		made = &m
		byteMaker.Slice(s, rest) // so that the sizes are equal
		ring = save.NewRing(s, 3, state)
	})
	require.NoError(t, ring.Take(1))
	return ring, made
}

func fileOf(t *testing.T, r *save.Ring, number uint64) []byte {
	var file bytes.Buffer
	require.NoError(t, r.Write(&file, number))
	return file.Bytes()
}

// TestFilesOfContainers: a file is refused by the name of a container with another type or
// capacity, also if the sizes are equal. A description that no ring writes is refused, too.
func TestFilesOfContainers(t *testing.T) {
	ring, _ := aMapOf[int32, fly](t, 8, 100)
	_, err := ring.Read(bytes.NewReader(fileOf(t, ring, 1)))
	require.NoError(t, err)
	wide, _ := aMapOf[int32, [4]int32](t, 8, 100)
	_, err = ring.Read(bytes.NewReader(fileOf(t, wide, 1)))
	require.ErrorContains(t, err, "container 0 of region level: container.Map[int32,save_test.fly] here, "+
		"and container.Map[int32,[4]int32] in the file")
	fewer, _ := aMapOf[int32, fly](t, 7, 128)
	_, err = ring.Read(bytes.NewReader(fileOf(t, fewer, 1)))
	require.ErrorContains(t, err, "8 keys of int32 at ")
	require.ErrorContains(t, err, "7 keys of int32 at ")

	for what, change := range map[string]func(k *save.KeptLayout){
		"a name":         func(k *save.KeptLayout) { k.Name = "\x1b" },
		"an offset":      func(k *save.KeptLayout) { k.Offset = 1 << 40 },
		"a size":         func(k *save.KeptLayout) { k.Size = 1 << 40 },
		"a type":         func(k *save.KeptLayout) { k.Values[0].Type = "nothing" },
		"what":           func(k *save.KeptLayout) { k.Values[0].What = "\x1b" },
		"before":         func(k *save.KeptLayout) { k.Values[0].Offset = k.Offset - 4 },
		"behind":         func(k *save.KeptLayout) { k.Values[1].Offset = k.Offset + k.Size + 4 },
		"too many":       func(k *save.KeptLayout) { k.Values[1].Count = 9 },
		"very many":      func(k *save.KeptLayout) { k.Values[1].Count = 1 << 63 },
		"of no size":     func(k *save.KeptLayout) { k.Values[1].Type = "struct {}" },
		"another offset": func(k *save.KeptLayout) { k.Offset -= 8; k.Values = nil },
	} {
		file := save.WithKept(fileOf(t, ring, 1), ring, change)
		_, err := ring.Read(bytes.NewReader(file))
		require.Error(t, err, what)
		if what != "another offset" {
			require.Error(t, save.Show(new(bytes.Buffer), bytes.NewReader(file)), what)
			require.ErrorContains(t, err, `region "level"`, what)
		}
	}
	var shown bytes.Buffer
	require.NoError(t, save.Show(&shown, bytes.NewReader(fileOf(t, ring, 1))))
	require.Contains(t, shown.String(), "container.Map[int32,save_test.fly]")
}

// TestDiffOfContainers: Diff names values and keys by their container.
func TestDiffOfContainers(t *testing.T) {
	ring, m := aMapOf[int32, fly](t, 8, 100)
	m.Set(5, fly{At: 1})
	m.Set(7, fly{At: 1})
	differs := func(change func()) string {
		t.Helper()
		require.NoError(t, ring.Take(1))
		change()
		require.NoError(t, ring.Take(2))
		d, differ, err := ring.Diff(1, 2)
		require.NoError(t, err)
		require.True(t, differ)
		return d.String()
	}
	assert.Contains(t, differs(func() { m.Get(7).At = 2 }),
		"region level: values of container.Map[int32,save_test.fly][1].At: 1 in A, 2 in B (uint64 of save_test.fly; ")
	assert.Contains(t, differs(func() { m.Set(9, fly{}) }),
		"region level: words of container.Map[int32,save_test.fly]: 02 00 00 00 02 00 00 00 in A, 03 00 00 00")
}

// TestContainersInAView: a function of State.Verify sees the containers of the snapshot.
func TestContainersInAView(t *testing.T) {
	b := open(t, pondPlan())
	r := b.Region("level")
	var ring *save.Ring
	x := &shelf{}
	seen := ""
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, roomMaker)
		x.flies = container.NewList(s, flyMaker, 2)
		x.line = container.NewDeque(s, countMaker, 2)
		x.ids = container.NewMap(s, countMaker, countMaker, 2)
		x.names = container.NewStringMap(s, flyMaker, 2, 4)
		state.Verify(func(v save.View) error {
			flies, line, ids, names := x.flies.In(v), x.line.In(v), x.ids.In(v), x.names.In(v)
			seen = fmt.Sprint(flies.Len(), flies.At(0).At, line.Len(), *line.At(0), ids.Len(), *ids.Get(5),
				names.Len(), names.Get("ada").At)
			if flies.At(0).At > 5 {
				return context.Canceled
			}
			return nil
		})
		ring = save.NewRing(s, 2, state)
	})
	x.flies.Push(fly{At: 1})
	x.line.PushFront(2)
	x.ids.Set(5, 3)
	require.NoError(t, x.names.Set("ada", fly{At: 4}))
	require.NoError(t, ring.Take(1))
	file := fileOf(t, ring, 1)
	x.flies.At(0).At = 6
	require.NoError(t, ring.Take(1))
	wrong := fileOf(t, ring, 1)
	x.flies.Clear()
	x.line.Clear()
	x.ids.Clear()
	x.names.Clear()
	_, err := ring.Read(bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, "1 1 1 2 1 3 1 4", seen)
	require.Zero(t, x.flies.Len())
	_, err = ring.Read(bytes.NewReader(wrong))
	require.ErrorIs(t, err, context.Canceled)
}
