package save_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/flow"
	"github.com/upfront-mem/upfront/tests/conformance/bindings"
)

// roomsRoot has links into blocks of the allocators in its state.
type roomsRoot struct {
	Tick     uint64
	Instance flow.Instance
	Cell     arena.Ptr[cell] // in the heap
	Page     arena.Slice[cell]
	Kept     arena.Handle[cell]
}

type cell struct {
	Count, Spare uint64
	IsOpen       bool
	_            [7]byte
}

// rooms is a load whose state has an allocator of each kind.
type rooms struct {
	region budget.Region
	state  *save.State
	ring   *save.Ring
	root   *roomsRoot
	blocks map[string][]byte
	heap   arena.Heap
	buddy  arena.Buddy
	queue  arena.Ring
	linear arena.Linear
	stack  arena.Stack
	frame  arena.Frame
	cells  arena.BlockPool[cell]
	held   *arena_c.Pool         // with handles, as a flow has
	paged  arena.BlockPool[cell] // in a block of the buddy
	graph  *flow.Graph
}

var (
	roomsMaker = scope.Plain[roomsRoot]()
	roomsHost  = flow.NewHost[struct{}]()
	_          = flow.NewEvent[struct{ HasKey bool }](roomsHost, "line.used")
	roomsGraph = flow.Source{Name: "door",
		Variables: []flow.Variable{{Name: "has key", Type: flow.Bool}},
		Nodes: []flow.Node{
			{Name: "used", Type: "event", Of: "line.used", Key: 12,
				Out:  []flow.Output{{Name: "has_key", Variable: "has key"}},
				List: []flow.List{{Name: "then", Links: []flow.Link{{Node: "wait"}}}}},
			{Name: "wait", Type: "delay", In: []flow.Input{{Name: "ticks", Constant: 5}}},
		}}
)

const roomSize = 4096

// newRooms loads rooms. more runs in the load before the state ends.
func newRooms(t testing.TB, places int, more func(r *rooms, s scope.Scope)) *rooms {
	b := open(t, budget.Plan{Name: "rooms", Regions: []budget.RegionPlan{
		{Name: "level", Size: 4 * budget.MiB, State: true}}})
	data, _, err := flow.Compile(roomsGraph, roomsHost.Vocabulary())
	require.NoError(t, err)
	r := &rooms{region: b.Region("level"), blocks: map[string][]byte{}}
	_, err = budget.Load(context.Background(), r.region, func(s scope.Scope) (*rooms, error) {
		var err error
		if r.graph, err = roomsHost.Load(s, data, make([]byte, blob.ScratchSize(data))); err != nil {
			return nil, err
		}
		r.state, r.root = save.Begin(r.region, s, roomsMaker)
		block := func(name string) []byte {
			align := uint64(64)
			if name == "buddy" {
				align = roomSize
			}
			r.blocks[name] = s.BytesUnzeroed(roomSize, align)
			return r.blocks[name]
		}
		var errs [8]error
		r.heap, errs[0] = arena.NewHeap(block("heap"), 16)
		r.buddy, errs[1] = arena.NewBuddy(block("buddy"), 64)
		r.queue, errs[2] = arena.NewRing(block("ring"))
		r.linear, errs[3] = arena.NewLinear(block("linear"))
		r.stack, errs[4] = arena.NewStack(block("stack"))
		r.frame, errs[5] = arena.NewFrame(block("frame"), 3)
		r.cells, errs[6] = arena.NewBlockPool[cell](block("pool"))
		room := arena_c.RoomOf(arena_c.RoomPool, unsafe.Pointer(&block("handles")[0]), roomSize)
		r.held = arena_c.PoolMake(room.Chunks(reflect.TypeFor[cell](), nil), uint64(unsafe.Sizeof(cell{})), 8, true)
		page := r.buddy.Alloc(1024, 64)
		r.paged, errs[7] = arena.NewBlockPool[cell](unsafe.Slice((*byte)(page), 1024))
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
		r.heap.MayLive() // these tests need states with live blocks
		r.buddy.MayLive()
		r.graph.Instances(4)
		if more != nil {
			more(r, s)
		}
		r.ring = save.NewRing(s, places, r.state)
		return r, nil
	})
	require.NoError(t, err)
	return r
}

// step leaves live blocks in each allocator.
func (r *rooms) step(n uint64) {
	r.root.Tick++
	if i := r.root.Instance; i != 0 && r.graph.Live(i) {
		r.graph.Free(i)
	}
	r.root.Instance = r.graph.New()
	base := r.region.Base()
	if c := r.root.Cell.Get(base); c != nil {
		_ = r.heap.Free(unsafe.Pointer(c))
		r.root.Cell = arena.Ptr[cell]{}
	}
	if p := r.heap.Alloc(uint64(unsafe.Sizeof(cell{}))+n%40, 16); p != nil {
		*(*cell)(p) = cell{Count: n}
		r.root.Cell = arena.PtrTo(base, (*cell)(p))
	}
	if p := r.heap.Alloc(n%100, 16); p != nil && n%3 == 0 {
		_ = r.heap.Free(p)
	}
	if s := r.root.Page.Get(base); len(s) != 0 {
		_ = r.buddy.Free(unsafe.Pointer(&s[0]))
		r.root.Page = arena.Slice[cell]{}
	}
	if p := r.buddy.Alloc(120, 8); p != nil {
		cells := unsafe.Slice((*cell)(p), 5)
		clear(cells)
		r.root.Page = arena.SliceOf(base, cells)
	}
	r.queue.Overwrite(n%300, 8)
	if r.linear.Alloc(n%200, 8) == nil {
		r.linear.Reset()
	}
	r.linear.Far().Alloc(n%50, 16)
	if r.stack.Alloc(n%100, 16) == nil {
		r.stack.Reset()
	}
	r.stack.Far().Alloc(n%30, 16)
	r.frame.Alloc(n%100, 8)
	r.frame.Next()
	for _, p := range []arena.BlockPool[cell]{r.cells, r.paged} {
		if c := p.At(int(n % 5)); c != nil && n%2 == 0 {
			_ = p.Put(c)
		}
		if c := p.Get(); c != nil {
			c.Count, c.IsOpen = n, n%2 == 0
		}
	}
	if kept := uint64(r.root.Kept); r.held.At(r.held.Gen, kept) != nil {
		r.held.PutHandle(r.held.Gen, kept)
	}
	if c, h := r.held.TakeHandle(r.held.Gen); c != nil {
		*(*cell)(c) = cell{} // zeroed, as by scope.HandlePool
		r.root.Kept = arena.Handle[cell](h)
	}
}

// sent returns a delta of a state that change wrote to, after several steps.
func (r *rooms) sent(t testing.TB, change func()) []byte {
	t.Helper()
	require.NoError(t, r.ring.Take(1))
	change()
	require.NoError(t, r.ring.Take(2))
	delta, err := r.ring.Delta(nil, 1, 2)
	require.NoError(t, err)
	require.NoError(t, r.ring.Restore(t.Context(), 1))
	require.NoError(t, r.ring.Take(2))
	return delta
}

// word returns a word of a block.
func (r *rooms) word(block string, at uintptr) *uint64 {
	return (*uint64)(unsafe.Pointer(&r.blocks[block][at]))
}

// TestRoomsFromOutside: a snapshot of a state with an allocator of each kind is taken as play left
// it, and refused with any forged word.
func TestRoomsFromOutside(t *testing.T) {
	r := newRooms(t, 4, nil)
	for n := range uint64(300) {
		r.step(n * 7)
		require.NoError(t, r.ring.Take(3))
		if n%10 != 0 {
			continue
		}
		delta := r.sent(t, func() { r.step(n) })
		_, err := r.ring.Apply(delta)
		require.NoError(t, err)
		require.NoError(t, r.ring.Restore(t.Context(), 2))
		_, err = r.ring.Read(bytes.NewReader(written(t, r.ring, 2)))
		require.NoError(t, err)
	}
	for _, test := range []struct {
		block string
		at    uintptr
		says  string
	}{
		{"heap", unsafe.Offsetof(arena_c.Heap{}.End), "arena.Heap: word 1 of its header is"},
		{"heap", unsafe.Offsetof(arena_c.Heap{}.Bits), "arena.Heap: its blocks, lists and counts"},
		{"heap", unsafe.Offsetof(arena_c.Heap{}.Busy), "arena.Heap: its words say that a call is running"},
		{"heap", unsafe.Offsetof(arena_c.Heap{}.Epoch), "arena.Heap: "},
		{"heap", unsafe.Offsetof(arena_c.Heap{}.Most), "arena.Heap: impossible figures for "},
		{"buddy", unsafe.Offsetof(arena_c.Buddy{}.Low), "arena.Buddy: word 3 of its header is"},
		{"buddy", unsafe.Offsetof(arena_c.Buddy{}.Used), "arena.Buddy: its blocks and counts"},
		{"buddy", unsafe.Offsetof(arena_c.Buddy{}.Busy), "arena.Buddy: its words say that a call is running"},
		{"ring", unsafe.Offsetof(arena_c.Ring{}.End), "arena.Ring: word 9 of its header is"},
		{"ring", unsafe.Offsetof(arena_c.Ring{}.Cursor), "arena.Ring: its blocks and words"},
		{"linear", unsafe.Offsetof(arena_c.Ends{}.End), "arena.Linear: word 8 of its header is"},
		{"linear", unsafe.Offsetof(arena_c.Ends{}.Limit), "arena.Linear: its ends or marks"},
		{"linear", unsafe.Offsetof(arena_c.Ends{}.Last), "arena.Linear: it has a last block"},
		{"stack", unsafe.Offsetof(arena_c.Stack{}.Start), "arena.Stack: word 7 of its header is"},
		{"stack", unsafe.Offsetof(arena_c.Stack{}.Last), "arena.Stack: the words before its blocks"},
		{"frame", unsafe.Offsetof(arena_c.Frame{}.Size), "arena.Frame: word 10 of its header is"},
		{"frame", unsafe.Offsetof(arena_c.Frame{}.Current), "arena.Frame: its current buffer"},
		{"pool", unsafe.Offsetof(arena_c.Pool{}.Chunks), "pool on a block: word 2 of its header is"},
		{"pool", unsafe.Offsetof(arena_c.Pool{}.Count), "pool on a block: its count, kind or handles"},
		{"pool", unsafe.Offsetof(arena_c.Pool{}.Free), "pool on a block: "},
		{"handles", unsafe.Offsetof(arena_c.Pool{}.Kind), "pool on a block: its count, kind or handles"},
	} {
		delta := r.sent(t, func() { *r.word(test.block, test.at) ^= 0x20 | 1<<40 })
		_, err := r.ring.Apply(delta)
		require.ErrorContains(t, err, test.says)
		require.ErrorContains(t, err, "region level, byte 0x")
	}
	delta := r.sent(t, func() { // the pool's block
		page := unsafe.Pointer(r.paged.Block())
		require.NoError(t, r.buddy.Free(page))
	})
	_, err := r.ring.Apply(delta)
	require.ErrorContains(t, err, "isn't in one live block of it, and must be")
	delta = r.sent(t, func() { *(*byte)(unsafe.Add(r.paged.Block(), 0)) = 2 })
	_, err = r.ring.Apply(delta)
	require.ErrorContains(t, err, "arena.Buddy: at its byte 0x")
}

// TestValuesInRooms: a bool in a chunk of a pool on a block, and in a graph's instance, is 0 or 1.
func TestValuesInRooms(t *testing.T) {
	r := newRooms(t, 4, nil)
	for n := range uint64(9) {
		r.step(n)
	}
	c := r.cells.Get()
	delta := r.sent(t, func() { *(*byte)(unsafe.Pointer(&c.IsOpen)) = 200 })
	_, err := r.ring.Apply(delta)
	require.ErrorContains(t, err, "bool")
	require.NoError(t, r.cells.Put(c))
}

// TestRoomsAfterNewRing: no allocator can be made on a state's bytes after NewRing.
func TestRoomsAfterNewRing(t *testing.T) {
	var block []byte
	r := newRooms(t, 1, func(r *rooms, s scope.Scope) { block = s.BytesUnzeroed(1024, 64) })
	_, err := arena.NewHeap(block, 0)
	require.ErrorContains(t, err, "region level: BUG: an arena.Heap of 1024 bytes in its state, at offset 0x")
	require.ErrorContains(t, err, "make it before save.NewRing")
	_, errs := arena.NewBlockPool[cell](block)
	require.ErrorContains(t, errs, "a pool on a block of 1024 bytes")
	_, errs = r.heap.Shared()
	require.ErrorContains(t, errs, "an arena.Shared of")
	assert.Zero(t, r.heap.Stats().Live)
	require.NoError(t, r.region.Rewind(t.Context()))
}

// TestLibrariesInStates: a library's data in a state can't be checked. It works in its process; a
// snapshot from outside is taken only after Authenticated.
func TestLibrariesInStates(t *testing.T) {
	for _, test := range []struct {
		name, says string
		more       func(r *rooms, s scope.Scope)
	}{
		{"shared", "arena.Shared: the library's data in it", func(r *rooms, _ scope.Scope) {
			shared, err := r.heap.Shared()
			require.NoError(t, err)
			shared.Alloc(10, 8)
		}},
		{"c", "arena.Heap: a C library's data in it", func(_ *rooms, s scope.Scope) {
			block := s.BytesUnzeroed(1024, 64)
			_, err := arena.NewHeap(block, 0)
			require.NoError(t, err)
			require.Equal(t, arena_c.OK, bindings.NoteRoom(arena_c.RoomHeap, unsafe.Pointer(&block[0]), 1024))
		}},
	} {
		r := newRooms(t, 3, test.more)
		delta := r.sent(t, func() { r.root.Tick++ })
		_, err := r.ring.Apply(delta)
		require.ErrorContains(t, err, test.says, test.name)
		require.ErrorContains(t, err, "State.Authenticated", test.name)
		file := written(t, r.ring, 1)
		_, err = r.ring.Read(bytes.NewReader(file))
		require.ErrorContains(t, err, test.says, test.name)
		r.state.Authenticated()
		_, err = r.ring.Apply(delta)
		require.NoError(t, err, test.name)
		_, err = r.ring.Read(bytes.NewReader(file))
		require.NoError(t, err, test.name)
		delta = r.sent(t, func() { *r.word("heap", 8)++ })
		_, err = r.ring.Apply(delta)
		require.ErrorContains(t, err, "arena.Heap: word 1 of its header", test.name)
	}
}

// TestRoomsOfC: C's registration is checked against its allocator, and a failed registration is
// reported.
func TestRoomsOfC(t *testing.T) {
	refused := func(says string, more func(block []byte)) {
		t.Helper()
		b := open(t,
			budget.Plan{Name: "rooms", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB, State: true}}})
		_, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*roomsRoot, error) {
			state, root := save.Begin(b.Region("level"), s, roomsMaker)
			block := s.BytesUnzeroed(roomSize, 64)
			clear(block)
			more(block)
			for range 2 {
				err := panicked(func() { save.NewRing(s, 1, state) })
				require.ErrorContains(t, err, says)
			}
			return root, nil
		})
		require.NoError(t, err)
		require.NoError(t, b.Close())
	}
	note := func(kind arena_c.RoomKind, block []byte, size uint64) arena_c.Code {
		return bindings.NoteRoom(kind, unsafe.Pointer(&block[0]), size)
	}
	for kind := arena_c.RoomHeap; kind < arena_c.RoomShared; kind++ {
		refused("save: BUG: the state of region level, at byte 0x40: the "+kind.String()+" is damaged: its words",
			func(block []byte) {
				require.Equal(t, arena_c.OK, note(kind, block, roomSize))
			})
	}
	refused("C registered 16 bytes, which aren't all in the state", func(block []byte) {
		require.Equal(t, arena_c.OK, note(arena_c.RoomHeap, block, 16))
	})
	refused("C registered 1048576 bytes, which aren't all in the state", func(block []byte) {
		require.Equal(t, arena_c.OK, note(arena_c.RoomHeap, block, budget.MiB))
	})
	refused("C code made more than 256 arenas", func(block []byte) {
		for i := range arena_c.CRoomsMax {
			require.Equal(t, arena_c.OK, note(arena_c.RoomHeap, block[i:], 1))
		}
		require.Equal(t, arena_c.TableFull, note(arena_c.RoomHeap, block[roomSize-1:], 1))
	})
	assert.Equal(t, arena_c.BadArgument, note(arena_c.RoomShared, make([]byte, 8), 8))
}

// roomy is a chunk with room for an allocator.
type roomy struct{ Bytes [roomSize]byte }

var roomyMaker = scope.Plain[roomy]()

// TestRoomsInChunks: an allocator in a chunk of the region's own pool is refused, since a hostile
// handle could free that chunk.
func TestRoomsInChunks(t *testing.T) {
	b := open(t,
		budget.Plan{Name: "rooms", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB, State: true}}})
	_, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*roomsRoot, error) {
		state, root := save.Begin(b.Region("level"), s, roomsMaker)
		chunk := roomyMaker.HandlePool(s, 2)
		p, _ := chunk.Get()
		bytes := p.Bytes[-uintptr(unsafe.Pointer(p))%64:]
		_, err := arena.NewRing(bytes[:1024])
		require.NoError(t, err)
		for range 2 {
			err = panicked(func() { save.NewRing(s, 1, state) })
			require.ErrorContains(t, err,
				"arena.Ring: a pool of 2 chunks of 4096 bytes: it has an allocator in a chunk")
		}
		return root, nil
	})
	require.NoError(t, err)
}

// panicked returns the error that fn panics with, or nil.
func panicked(fn func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	fn()
	return nil
}
