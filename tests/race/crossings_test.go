package race

import (
	"context"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

type frog struct{ Age, X int32 }

var (
	frogs   = scope.Plain[frog]()
	living  = scope.Object(func(*frog) error { return nil })
	numbers = scope.Plain[int32]()
	onHeap  = arena.HeapOf[frog](nil)
	ctx     = context.Background()
)

func openBudget(t *testing.T) *budget.Budget {
	t.Helper()
	b, err := budget.Open(budget.Plan{Name: "race",
		Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 3, Size: 256 * budget.KiB}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// rounds is the number of times that each operation runs. A scope that stays open has room for
// them.
const rounds = 20

// crossings returns the number of calls into C that do makes in all rounds.
func crossings(do func()) int64 {
	before := runtime.NumCgoCall()
	for range rounds {
		do()
	}
	return runtime.NumCgoCall() - before
}

func skipWhereHitsCross(t *testing.T) {
	t.Helper()
	if arena_c.Crossing {
		t.Skip("with -asan or -tags checked each fast path crosses into C: go test ./tests/race runs it")
	}
}

// TestEverydayOperationsDoNotCross: a call into C costs more than the operations of a tick
// together, and hides races from the detector.
func TestEverydayOperationsDoNotCross(t *testing.T) {
	skipWhereHitsCross(t)
	b := openBudget(t)
	scratch, s := b.Scratch(0, 0), b.Scratch(0, 1).Open("a")
	for name, do := range everyday(t, b, s) {
		assert.Zero(t, crossings(do), name)
	}
	for name, work := range inScope() {
		assert.Zero(t, crossings(func() {
			s := scratch.Open("b")
			work(s)
			_ = s.Close()
		}), "in a scope: %s", name)
	}
}

// everyday has the operations of a tick.
func everyday(t *testing.T, b *budget.Budget, s scope.Scope) map[string]func() {
	pool, objects, handles, shared := frogs.Pool(s, 4), living.Pool(s, 2*rounds), frogs.HandlePool(s, 4),
		frogs.SharedPool(s, 4)
	level := b.Region("level")
	loaded, err := budget.Load(ctx, level, func(s scope.Scope) (*frog, error) { return frogs.New(s), nil })
	require.NoError(t, err)
	reader := level.Reader("worker")
	ref, held, temp := scope.RefTo(s, frogs.New(s)), s.Keep(t), s.Temp(4096)
	_, h := frogs.HandlePool(s, 1).Get()
	noPools := openBudget(t)
	noPools.Scratch(0, 0).Open("a")
	return map[string]func(){
		"New":         func() { frogs.New(s); frogs.TryNew(s); living.New(s) },
		"temporaries": func() { frogs.New(temp); frogs.TrySlice(temp, 3) },
		"Alloc": func() {
			s.AllocUnzeroed(8, 8)
			s.TryAllocUnzeroed(8, 64)
			s.Bytes(3)
			s.BytesUnzeroed(64, 64)
		},
		"Slice": func() {
			frogs.Slice(s, 3)
			frogs.TrySlice(s, 3)
			frogs.SliceCap(s, 1, 3)
			frogs.Clone(s, nil)
		},
		"Frame":             func() { frogs.New(b.Frame()) },
		"NextFrame":         func() { frogs.New(noPools.Frame()); _ = noPools.NextFrame() },
		"Scratch":           func() { b.Scratch(1, 0).Depth() },
		"Lease and Release": func() { l, _ := b.Lease(ctx); l.Pick().Open("c"); _ = l.Release() },
		"Pool":              func() { x := pool.Get(); pool.At(0); pool.Live(); each(pool); pool.Put(x) },
		"ObjectPool.Get":    func() { objects.Get(); objects.At(0) },
		"HandlePool":        func() { _, h := handles.Get(); handles.At(h); handles.Put(h) },
		"SharedPool":        func() { shared.Put(shared.Get()) },
		"Ref":               func() { ref.Get(); scope.RefTo(s, frogs.New(s)) },
		"Handle":            func() { handles.At(h) },
		"Owned":             func() { held.Value(); s.Keep(t).Cancel(); _ = s.Own(io.NopCloser(nil)).CloseNow() },
		"Loaded":            func() { loaded.Get() },
		"Reader":            func() { reader.Pin(); reader.Unpin() },
		"Published":         func() { b.Published() },
	}
}

func each(pool scope.Pool[frog]) {
	for range pool.All() {
		continue
	}
}

// inScope has the operations in a scope of a scratch arena.
func inScope() map[string]func(scope.Scope) {
	return map[string]func(scope.Scope){
		"finalizers": func(s scope.Scope) { living.New(s); living.Slice(s, 3); s.Defer(func() {}) },
		"nested": func(s scope.Scope) {
			_ = s.Open("c").Close()
			_ = s.Do("d", func(scope.Scope) error { return nil })
		},
		"Make":       func(s scope.Scope) { _, _ = frogs.Make(s, func(*frog) error { return nil }) },
		"Make fails": func(s scope.Scope) { _, _ = frogs.Make(s, func(*frog) error { return io.EOF }) },
		"Label":      func(s scope.Scope) { _ = scope.Label(s, "fish", func() error { return nil }) },
		"Append":     func(s scope.Scope) { frogs.Append(s, frogs.Append(s, nil, frog{}), frog{}, frog{}) },
		"Builder":    func(s scope.Scope) { x := frogs.Build(s); x.Push(frog{}); x.TryPush(frog{}); x.Done() },
		"List":       func(s scope.Scope) { l := container.NewList(s, frogs, 4); l.Push(frog{}); l.Pop(); l.Clear() },
		"Deque": func(s scope.Scope) {
			d := container.NewDeque(s, frogs, 4)
			d.PushFront(frog{})
			d.PopBack()
			d.Clear()
		},
		"Map": func(s scope.Scope) {
			m := container.NewMap(s, numbers, frogs, 4)
			m.Set(7, frog{})
			m.Get(7)
			m.Delete(7)
			m.Clear()
		},
		"StringMap": func(s scope.Scope) {
			m := container.NewStringMap(s, frogs, 4, 8)
			_ = m.Set("7", frog{})
			m.Get("7")
			m.Delete("7")
			m.Clear()
		},
		"Text": func(s scope.Scope) {
			x := s.Text()
			_ = x.Add("a").AddInt(7).String()
			x.Reset()
			scope.Sprintf(s, "%d", 7)
		},
		"full": func(s scope.Scope) { _ = frogs.TrySlice(s, 1<<20); _ = s.Err() },
	}
}

// TestTheArenasHitsDoNotCross is the same for package arena: allocation doesn't cross; freeing does
// where the list says so.
func TestTheArenasHitsDoNotCross(t *testing.T) {
	skipWhereHitsCross(t)
	l, err := arena.NewLinear(arena.NewBlock(4096, 64))
	require.NoError(t, err)
	s, err := arena.NewStack(arena.NewBlock(4096, 64))
	require.NoError(t, err)
	f, err := arena.NewFrame(arena.NewBlock(4096, 64), 2)
	require.NoError(t, err)
	r, err := arena.NewRing(arena.NewBlock(4096, 64))
	require.NoError(t, err)
	pool, err := arena.NewBlockPool[frog](arena.NewBlock(4096, 64))
	require.NoError(t, err)
	for name, do := range map[string]func(){
		"Linear": func() { l.Mark(); l.Alloc(8, 8); l.Far().Mark(); l.Far().Alloc(8, 8) },
		"Stack":  func() { s.Mark(); s.Alloc(8, 8); s.Far().Alloc(8, 8) },
		"Frame":  func() { f.Alloc(8, 8); f.Now().Alloc(8, 8) },
		"Ring":   func() { p := r.Alloc(8, 8); r.Oldest(); _ = r.Free(p) },
		"Pool":   func() { x := pool.Get(); pool.At(0); _ = pool.Put(x) },
	} {
		assert.Zero(t, crossings(do), name)
	}
}

// TestWhatCrosses is the control, and the list of operations that cross into C during play. The
// races around them are reported nevertheless: the programs between/*.
func TestWhatCrosses(t *testing.T) {
	skipWhereHitsCross(t)
	b := openBudget(t)
	s := b.Scratch(0, 1).Open("a")
	pool, objects := frogs.Pool(s, 4), living.Pool(s, 4)
	l, err := arena.NewLinear(s.BytesUnzeroed(4096, 64))
	require.NoError(t, err)
	st, err := arena.NewStack(s.BytesUnzeroed(4096, 64))
	require.NoError(t, err)
	f, err := arena.NewFrame(s.BytesUnzeroed(4096, 64), 2)
	require.NoError(t, err)
	h, err := arena.NewHeap(s.BytesUnzeroed(4096, 64), 0)
	require.NoError(t, err)
	pages, err := arena.NewBuddy(s.BytesUnzeroed(4096, 64), 64)
	require.NoError(t, err)
	x := pool.Get()
	inner := func(work func(scope.Scope)) func() {
		scratch := b.Scratch(0, 0)
		return func() {
			s := scratch.Open("b")
			work(s)
			_ = s.Close()
		}
	}
	for name, do := range map[string]func(){
		// One crossing for each pool that is open on the frame, or on a scratch arena used by
		// number.
		"NextFrame beside a pool":    func() { _ = b.NextFrame() },
		"a pool and its end":         inner(func(s scope.Scope) { frogs.Pool(s, 2) }),
		"temporaries and their end":  inner(func(s scope.Scope) { frogs.New(s.Temp(64)) }),
		"Pool.Index":                 func() { pool.Index(x) },
		"Pool.Peak":                  func() { pool.Peak() },
		"ObjectPool.Put":             func() { _ = objects.Put(objects.Get()) },
		"Linear.Rewind of the arena": func() { _ = l.Rewind(l.Mark()) },
		"Stack.Free of the arena":    func() { _ = st.Free(st.Alloc(8, 8)) },
		"Stack.Rewind of the arena":  func() { _ = st.Rewind(st.Mark()) },
		"Frame.Next of the arena":    func() { f.Next() },
		"Heap of the arena":          func() { _ = onHeap.Delete(h, onHeap.New(h)) },
		"Buddy of the arena":         func() { _ = pages.Free(pages.Alloc(8, 8)) },
	} {
		assert.GreaterOrEqual(t, crossings(do), int64(rounds), name)
	}
}
