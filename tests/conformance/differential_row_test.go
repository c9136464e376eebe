package conformance

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/conformance/mouth"
)

// rowTwins are two maps of two rows; the programs run on the second.
type rowTwins struct {
	*twins
	a, b  *arena_c.Row
	pools []uint64 // headers that are open, newest last, with the scope they lie in
	depth []uint64
}

func newRowTwins(t *testing.T) *rowTwins {
	arenas := []arena_c.Arena{{Kind: arena_c.KindRegion, Size: 1000}, {Kind: arena_c.KindPad, Size: 2*arena_c.Edge + 40}}
	const slots, pools = 5, 3
	size := arena_c.MapSize(arenas, slots, pools, 0)
	w := newTwins(t, int(size), arena_c.Edge)
	a := arena_c.MapInit(at(w.a), size, arenas, slots, pools, 0)
	b := arena_c.MapInit(at(w.b), size, arenas, slots, pools, 0)
	require.NotNil(t, a)
	require.Equal(t, unsafe.Pointer(mouth.Row(a, 1)), unsafe.Pointer(a.Row(1)))
	return &rowTwins{twins: w, a: a.Row(1), b: b.Row(1)}
}

func TestGoAndCAgreeOnRows(t *testing.T) {
	w := newRowTwins(t)
	n := rounds() / 4
	for range n {
		w.rowStep()
		require.Equal(t, mouth.Used(w.a), w.a.Used())
		require.Equal(t, mouth.Padding(w.a), w.a.Padding())
		sameCount(t, w.a.Slot(w.random.Uint64N(w.a.Slots+1)))
	}
	for w.a.Open > 0 {
		w.close()
	}
	for i := range w.a.Slots + 1 {
		require.Equal(t, i, w.a.Slot(i).Index())
		require.Equal(t, i, mouth.Index(w.a.Slot(i)))
		require.Equal(t, unsafe.Pointer(mouth.RowOf(w.a.Slot(i))), unsafe.Pointer(w.a.Slot(i).Row()))
	}
	for i := range w.a.Pools {
		require.Equal(t, unsafe.Pointer(mouth.Pool(w.a, i)), unsafe.Pointer(w.a.Pool(i)))
	}
}

// sameCount reads a header's count by either side.
func sameCount(t *testing.T, l *arena_c.Linear) {
	bytes, objects, padding := mouth.Counted(l)
	require.Equal(t, []uint64{bytes, objects, padding}, []uint64{l.Bytes(), l.Objects(), l.Padding()})
}

func (w *rowTwins) rowStep() {
	if w.a.Open == 0 {
		w.open()
		return
	}
	top := w.a.Open - 1
	frozen := w.a.Slot(top).Limit&arena_c.Offsets == 0
	switch k := w.random.IntN(20); {
	case k == 0 && !frozen && w.a.Open < w.a.Slots:
		w.open()
	case k == 1:
		w.close()
	case k == 2 && w.random.IntN(4) == 0:
		w.a.Slot(top).Freeze()
		mouth.Freeze(w.b.Slot(top))
		w.sameBytes("Freeze")
	case k == 3:
		w.growFar()
	case k == 4 && !frozen && len(w.pools) < 3:
		w.openPool(top)
	case k < 8 && len(w.pools) > 0:
		w.getAndPut()
	case k < 11 && w.a.FarOf != 0:
		linearStep(w.twins, w.a.Far(), w.b.Far(), w.a.Far().Tag())
	case k == 11: // covered, closed, or the topmost
		i := w.random.Uint64N(w.a.Slots)
		size := w.amount()
		p, _ := w.a.Slot(i).Bump(w.a.Slot(i).Tag()+size, size, 7)
		w.same("Bump in any slot", p, mouth.Bump(w.b.Slot(i), w.b.Slot(i).Tag()+size, size, 7))
	default:
		linearStep(w.twins, w.a.Slot(top), w.b.Slot(top), w.a.Slot(top).Tag())
	}
}

func (w *rowTwins) open() {
	slot, tag := w.a.OpenScope()
	require.Equal(w.t, tag, mouth.Open(w.b))
	w.same("OpenScope", unsafe.Pointer(slot), unsafe.Pointer(w.b.Slot(w.b.Open-1)))
}

func (w *rowTwins) close() {
	for n := len(w.pools); n > 0 && w.depth[n-1] == w.a.Open; n-- {
		w.a.Pool(w.pools[n-1]).Close()
		w.b.Pool(w.pools[n-1]).Close()
		w.pools, w.depth = w.pools[:n-1], w.depth[:n-1]
	}
	if w.a.FarOf == w.a.Open {
		w.a.FarClose()
		w.b.FarClose()
	}
	w.a.Slot(w.a.Open-1).Chain, w.b.Slot(w.b.Open-1).Chain = 0, 0
	w.a.CloseScope()
	mouth.Close(w.b)
	w.sameBytes("CloseScope")
}

func (w *rowTwins) growFar() {
	if w.a.FarOf == 0 {
		require.Equal(w.t, w.a.FarOpen(), w.b.FarOpen())
	}
	size, align := w.random.Uint64N(arena_c.Edge), w.mask()+1
	require.Equal(w.t, w.a.FarGrow(size, align), w.b.FarGrow(size, align))
	w.sameBytes("FarGrow")
}

func (w *rowTwins) openPool(top uint64) {
	count := w.random.Uint64N(30)
	p, code := w.a.Slot(top).PoolOpen(w.a.Slot(top).Tag(), 24, 8, count, 5)
	q, codeC := w.b.Slot(top).PoolOpen(w.b.Slot(top).Tag(), 24, 8, count, 5)
	require.Equal(w.t, code, codeC)
	w.same("PoolOpen", unsafe.Pointer(p), unsafe.Pointer(q))
	if p == nil {
		return
	}
	for i := range w.a.Pools {
		if w.a.Pool(i) == p {
			w.pools, w.depth = append(w.pools, i), append(w.depth, w.a.Open)
		}
	}
}

func (w *rowTwins) getAndPut() {
	i := w.pools[w.random.IntN(len(w.pools))]
	a, b := w.a.Pool(i), w.b.Pool(i)
	p, q := unsafe.Pointer(arena_c.Get[[3]uint64](a, a.Tag())), mouth.Get(b, b.Tag())
	if q != nil {
		arena_c.Zero(q, 24)
	}
	w.same("Get", p, q)
	if a.Count() == 0 {
		return
	}
	chunk := w.random.Uint64N(a.Count())
	require.Equal(w.t, mouth.Put(b, b.Tag(), b.Chunk(chunk)), a.Put(a.Tag(), a.Chunk(chunk)))
	w.sameBytes("Put")
}
