package conformance

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/conformance/bindings"
)

// rowTwins are two maps of two rows. The programs run on the second row. Headers and records are
// compared word by word with all other bytes.
type rowTwins struct {
	*twins
	a, b   *arena_c.Row
	inside []inside // the contents of the near end's scopes, newest last
	given  []uint64 // the generations of all scopes, of either end
}

// inside is a pool or a temporary scope of the near scope at a depth.
type inside struct {
	depth, pool, temp uint64
	isPool            bool
}

func newRowTwins(t *testing.T) *rowTwins {
	arenas := []arena_c.Arena{{Kind: arena_c.KindRegion, Size: 1000},
		{Kind: arena_c.KindScratch, Size: 2*arena_c.Edge + 40}}
	const slots, pools = 5, 3
	size := bindings.MapSize(arenas, slots, pools, 0)
	w := newTwins(t, int(size), arena_c.Edge)
	a := arena_c.MapInit(at(w.a), size, arenas, slots, pools, 0)
	b := arena_c.MapInit(at(w.b), size, arenas, slots, pools, 0)
	require.NotNil(t, a)
	require.Equal(t, unsafe.Pointer(bindings.Row(a, 1)), unsafe.Pointer(a.Row(1)))
	start, end := bindings.Bounds(a, a.Row(1))
	require.Equal(t, []uint64{start, end}, []uint64{a.Start(1), a.End(1)})
	return &rowTwins{twins: w, a: a.Row(1), b: b.Row(1)}
}

func TestGoAndCAgreeOnScopes(t *testing.T) {
	w := newRowTwins(t)
	// As many steps as the controls need: by chance, one run of sixty opens too few temporaries.
	for n := 0; n < rounds()/2 || w.a.Arena.Next < 20 || w.a.Temp.Next < 10; n++ {
		require.Less(t, n, 20*rounds(), "a control: %d scopes and %d temporaries were opened",
			w.a.Arena.Next, w.a.Temp.Next)
		w.rowStep()
		w.step++
		w.sameReads()
	}
	for w.a.Arena.Depth > 0 {
		w.close()
	}
	require.Zero(t, w.a.Used())
}

// sameReads compares the small reads of the headers.
func (w *rowTwins) sameReads() {
	require.Equal(w.t, bindings.Used(w.a), w.a.Used())
	for _, h := range []*arena_c.Scopes{&w.a.Arena, &w.a.Temp} {
		require.Equal(w.t, unsafe.Pointer(bindings.RowOf(h)), unsafe.Pointer(h.Row()))
		require.Equal(w.t, bindings.Address(h, h.Cursor), h.At(h.Cursor))
		require.Equal(w.t, bindings.Place(h, h.At(h.Limit)), h.Offset(h.At(h.Limit)))
		for depth := range h.Slots + 1 {
			require.Equal(w.t, unsafe.Pointer(bindings.Record(h, depth)), unsafe.Pointer(h.Record(depth)))
		}
	}
	for i := range w.a.Pools {
		require.Equal(w.t, unsafe.Pointer(bindings.Pool(w.a, i)), unsafe.Pointer(w.a.Pool(i)))
	}
}

func (w *rowTwins) rowStep() {
	if w.a.Arena.Depth == 0 {
		w.fast(&w.a.Arena, &w.b.Arena)
		w.open()
		return
	}
	frozen := w.a.Arena.Gen == 0
	switch k := w.random.IntN(24); {
	case k == 0 && !frozen && w.a.Arena.Depth < w.a.Arena.Slots:
		w.open()
	case k == 1:
		w.close()
	case k == 2 && w.random.IntN(4) == 0:
		w.a.Arena.Freeze()
		w.b.Arena.Gen = 0
		w.sameBytes("Freeze")
	case k == 3:
		w.openTemp()
	case k == 4:
		w.openPool()
	case k < 8:
		w.getAndPut()
	case k < 12:
		w.fast(&w.a.Temp, &w.b.Temp)
	case k == 12:
		w.cut()
	default:
		w.fast(&w.a.Arena, &w.b.Arena)
	}
}

// gen returns the generation of the topmost scope, mostly; otherwise a former or a future one.
func (w *rowTwins) gen(h *arena_c.Scopes) uint64 {
	if top := h.Top().Gen; top != 0 && w.random.IntN(8) != 0 {
		return top
	}
	if len(w.given) == 0 || w.random.IntN(4) == 0 {
		return h.Next + 1 + w.random.Uint64N(100)
	}
	return w.given[w.random.IntN(len(w.given))]
}

// fast runs one fast path on both headers.
func (w *rowTwins) fast(a, b *arena_c.Scopes) {
	gen := w.gen(a)
	switch w.random.IntN(15) {
	case 0:
		newIn[byte](w, a, b, gen)
	case 1:
		newIn[uint64](w, a, b, gen)
	case 2:
		newIn[[100]byte](w, a, b, gen)
	case 3:
		newIn[struct {
			A byte
			B uint32
		}](w, a, b, gen)
	case 4:
		newIn[struct{}](w, a, b, gen)
	case 5:
		newIn[[20000]byte](w, a, b, gen)
	case 6, 7:
		size, mask := w.random.Uint64N(200), uint64(7)<<w.random.IntN(4)|7
		p := a.Node(gen, size, mask)
		w.same("Node", p, bindings.Node(b, gen, size, mask))
		if p != nil {
			class := w.random.Uint64N(1 << 24)
			a.Link(p, class)
			bindings.Link(b, b.At(a.Offset(p)), class)
			w.sameBytes("Link")
		}
	case 8:
		if a.Chain == a.Top().Chain {
			return
		}
		p, node := a.Newest(a.Chain)
		a.Unlink()
		q, class := bindings.Unlink(b)
		require.Equal(w.t, class, node/arena_c.NodeClass, "seed %d", w.seed)
		w.same("Unlink", p, q)
	case 9:
		size := w.amount()
		from := a.Cursor
		p, ok := a.Grow(gen, from, size)
		require.Equal(w.t, p != nil, ok)
		w.same("Grow", p, bindings.GrowIn(b, gen, from, size))
	case 10, 11:
		size, mask := w.amount(), w.mask()&(arena_c.LineSize-1) // larger ones take Bump
		p := w.either(a, gen, func() unsafe.Pointer { return a.Alloc(gen, size, mask+1) },
			func() unsafe.Pointer { return a.TryAlloc(gen, size, mask+1) })
		w.same("Alloc", p, bindings.BumpIn(b, gen, size, mask))
	case 12:
		size, mask := w.amount(), w.mask()&(arena_c.LineSize-1)
		p := w.either(a, gen, func() unsafe.Pointer { return a.AllocMask(gen, size, mask) },
			func() unsafe.Pointer { return a.TryAlloc(gen, size, mask+1) })
		w.same("AllocMask", p, bindings.BumpIn(b, gen, size, mask))
	default:
		size, mask := w.amount(), w.mask()
		p, ok := a.Bump(gen, size, mask)
		require.Equal(w.t, p != nil, ok)
		w.same("Bump", p, bindings.BumpIn(b, gen, size, mask))
	}
}

// either calls must, which panics with a Refusal, or try, which returns nil.
func (w *rowTwins) either(a *arena_c.Scopes, gen uint64, must, try func() unsafe.Pointer) (p unsafe.Pointer) {
	if w.random.IntN(2) == 0 {
		return try()
	}
	defer func() {
		if v := recover(); v != nil {
			require.Equal(w.t, arena_c.Refusal{Arena: a, Gen: gen}, v)
		}
	}()
	return must()
}

// newIn runs New or TryNew on one side, and bump and zero on the other.
func newIn[T any](w *rowTwins, a, b *arena_c.Scopes, gen uint64) {
	size := uint64(unsafe.Sizeof(*new(T)))
	x := w.either(a, gen, func() unsafe.Pointer { return unsafe.Pointer(arena_c.New[T](a, gen)) },
		func() unsafe.Pointer { return unsafe.Pointer(arena_c.TryNew[T](a, gen)) })
	y := bindings.BumpIn(b, gen, size, arena_c.AlignOf[T]()-1)
	if y != nil {
		arena_c.Zero(y, uintptr(size))
	}
	w.same("New", x, y)
}

func (w *rowTwins) open() {
	gen := w.a.Arena.Open()
	require.Equal(w.t, gen, bindings.Open(&w.b.Arena))
	w.given = append(w.given, gen)
	w.sameBytes("Open")
}

// close ends the contents of the topmost scope, as its owner would, and closes it.
func (w *rowTwins) close() {
	a, b := &w.a.Arena, &w.b.Arena
	for n := len(w.inside); n > 0 && w.inside[n-1].depth == a.Depth; n-- {
		if it := w.inside[n-1]; it.isPool {
			w.a.Pool(it.pool).Close()
			w.b.Pool(it.pool).Close()
		} else {
			w.closeTemp(it.temp)
		}
		w.inside = w.inside[:n-1]
	}
	a.Chain, b.Chain = a.Top().Chain, b.Top().Chain
	a.Close(a.Top())
	bindings.Close(b)
	w.sameBytes("Close")
}

func (w *rowTwins) closeTemp(depth uint64) {
	require.Equal(w.t, depth, w.a.Temp.Depth)
	for _, h := range []*arena_c.Scopes{&w.a.Temp, &w.b.Temp} {
		h.Chain = h.Top().Chain
		h.TempClose()
	}
	w.sameBytes("TempClose")
}

// cut frees a part of the topmost scope without a node.
func (w *rowTwins) cut() {
	a := &w.a.Arena
	from := max(a.Top().Mark, a.Chain)
	if w.a.Arena.Depth == 0 || a.Chain != a.Top().Chain {
		return
	}
	if n := len(w.inside); n > 0 && w.inside[n-1].depth == a.Depth || from > a.Cursor {
		return
	}
	to := from + w.random.Uint64N(a.Cursor-from+1)
	a.Cut(to)
	bindings.Cut(&w.b.Arena, to)
	w.sameBytes("Cut")
}

func (w *rowTwins) openTemp() {
	gen, size := w.gen(&w.a.Arena), w.random.Uint64N(arena_c.Edge)
	got := w.a.Arena.TempOpen(gen, size)
	require.Equal(w.t, got, w.b.Arena.TempOpen(gen, size))
	w.sameBytes("TempOpen")
	if got != 0 {
		w.given = append(w.given, got)
		w.inside = append(w.inside, inside{depth: w.a.Arena.Depth, temp: w.a.Temp.Depth})
	}
}

func (w *rowTwins) openPool() {
	gen, count, handles := w.gen(&w.a.Arena), w.random.Uint64N(30), w.random.IntN(2) == 0
	p, code := w.a.Arena.PoolOpen(gen, 24, 8, count, 5, handles)
	q, codeC := w.b.Arena.PoolOpen(gen, 24, 8, count, 5, handles)
	require.Equal(w.t, code, codeC)
	w.same("PoolOpen", unsafe.Pointer(p), unsafe.Pointer(q))
	for i := range w.a.Pools {
		if w.a.Pool(i) == p {
			w.inside = append(w.inside, inside{depth: w.a.Arena.Depth, pool: i, isPool: true})
		}
	}
}

func (w *rowTwins) getAndPut() {
	i := w.random.Uint64N(w.a.Pools)
	a, b := w.a.Pool(i), w.b.Pool(i)
	if a.Gen == 0 {
		return
	}
	first, numbers := a.Bases()
	if a.Handles != 0 {
		q, want := bindings.GetHandle(b, b.Gen)
		if q != nil {
			arena_c.Zero(q, 24)
		}
		var x unsafe.Pointer
		var handle uint64
		if a.Free%2 != 0 {
			p, h := arena_c.GetHandle[[3]uint64](a, a.Gen, first, numbers)
			x, handle = unsafe.Pointer(p), h
		} else if x, handle = a.TakeHandle(a.Gen); x != nil {
			arena_c.Zero(x, 24)
		}
		require.Equal(w.t, want, handle)
		w.same("a chunk with a handle", x, q)
	} else {
		p, q := unsafe.Pointer(arena_c.Get[[3]uint64](a, a.Gen, first, numbers)), bindings.Get(b, b.Gen)
		if q != nil {
			arena_c.Zero(q, 24)
		}
		w.same("Get", p, q)
	}
	if a.Count == 0 {
		return
	}
	chunk := w.random.Uint64N(uint64(a.Count))
	if a.Handles != 0 {
		handle := a.Handle(chunk)
		w.same("At", a.At(a.Gen, handle), bindings.At(b, b.Gen, handle))
		if w.random.IntN(4) == 0 { // the handle of another pool, or a stale one
			handle += (1 + w.random.Uint64N(1<<32-1)) << 32
		}
		require.Equal(w.t, bindings.PutHandle(b, b.Gen, handle), a.PutHandle(a.Gen, handle))
		w.sameBytes("PutHandle")
		return
	}
	put := arena_c.Put(a, a.Gen, first, numbers, (*[3]uint64)(a.Chunk(chunk)))
	require.Equal(w.t, bindings.Put(b, b.Gen, b.Chunk(chunk)), put)
	w.sameBytes("Put")
}
