package tests

import (
	"bytes"
	"errors"
	"math"
	"sort"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena/blob"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
	"github.com/upfront-mem/upfront/scope/container"
	"github.com/upfront-mem/upfront/scope/flow"
)

var (
	sizedPonds = scope.Plain[uint64]()
	sizedFrogs = scope.Object(func(*frog) error { return nil })
	errNone    = errors.New("none")
	asked      = `asked for \d+ bytes`
)

// some returns an error for nil.
func some[P any](p *P) error {
	if p == nil {
		return errNone
	}
	return nil
}

// one returns an error for false.
func one(ok bool) error {
	if !ok {
		return errNone
	}
	return nil
}

// filled returns an error for a nil block, and fills any other.
func filled(p unsafe.Pointer, size uint64) error {
	if p == nil {
		return errNone
	}
	for i := range size {
		*(*byte)(unsafe.Add(p, i)) = 7
	}
	return nil
}

func made[A any](a A, err error) A {
	if err != nil {
		panic(err)
	}
	return a
}

// sizesOfArenas returns the rows of packages arena and blob.
func sizesOfArenas() (rows []sized) {
	block := func() []byte { return arena.NewBlock(8192, 1<<20) }
	heap := func() arena.Heap { return made(arena.NewHeap(block(), 0)) }
	for name, fresh := range map[string]func() arena.Allocator{
		"Buddy":       func() arena.Allocator { return made(arena.NewBuddy(block(), 64)) },
		"Frame":       func() arena.Allocator { return made(arena.NewFrame(block(), 2)) },
		"FrameHandle": func() arena.Allocator { return made(arena.NewFrame(block(), 2)).Now() },
		"Heap":        func() arena.Allocator { return heap() },
		"Linear":      func() arena.Allocator { return made(arena.NewLinear(block())) },
		"LinearFar":   func() arena.Allocator { return made(arena.NewLinear(block())).Far() },
		"Proxy":       func() arena.Allocator { return arena.NewProxy("sizes", heap()) },
		"Ring":        func() arena.Allocator { return made(arena.NewRing(block())) },
		"Shared":      func() arena.Allocator { return made(heap().Shared()) },
		"Stack":       func() arena.Allocator { return made(arena.NewStack(block())) },
		"StackFar":    func() arena.Allocator { return made(arena.NewStack(block())).Far() },
	} {
		alloc := func(size uint64) error { return filled(fresh().Alloc(size, 8), size) }
		rows = append(rows,
			fitting("arena: "+name+".Alloc size", 0, "^none$", alloc),
			powers("arena: "+name+".Alloc align", 1, 1024, "^none$|aligned to #:",
				func(n uint64) error { return filled(fresh().Alloc(8, n), 8) }))
		if _, can := fresh().(arena.Reallocator); can {
			realloc := func(size uint64) error {
				a := fresh().(arena.Reallocator)
				p, err := a.Realloc(a.Alloc(8, 8), size)
				return errors.Join(err, filled(p, size))
			}
			rows = append(rows, fitting("arena: "+name+".Realloc size", 0, "^none$", realloc))
		}
	}
	overwrite := func(size, align uint64) error {
		ring := made(arena.NewRing(block()))
		ring.Alloc(4096, 8)
		return filled(ring.Overwrite(size, align), size)
	}
	octets := arena.HeapOf[byte](nil)
	rewind := func(far bool) func(m arena.Mark) error {
		return func(m arena.Mark) error {
			l := made(arena.NewLinear(block()))
			if far {
				return l.Far().Rewind(m)
			}
			return l.Rewind(m)
		}
	}
	pool := made(arena.NewBlockPool[frog](block()))
	array := blob.Array[frog]{}
	start, end := made(arena.NewLinear(block())).Mark(), made(arena.NewLinear(block())).Far().Mark()
	base, top := made(arena.NewStack(block())).Mark(), made(arena.NewStack(block())).Far().Mark()
	return append(rows,
		powers("arena: NewBlock align", 64, 1<<20, "aligned to #", func(n int) error {
			arena.NewBlock(1, n)
			return nil
		}),
		numbers("arena: NewBlock size", 0, 1<<16, "NewBlock of # bytes", func(n int) error {
			if n > 1<<16 && n <= 1<<38 { // memory of the Go heap
				return errors.New("NewBlock of " + sizeText(n) + " bytes")
			}
			arena.NewBlock(n, 64)
			return nil
		}),
		powers("arena: NewBuddy smallest", 64, 4096, "not #|block of #,", func(n uint64) error {
			_, err := arena.NewBuddy(block(), n)
			return err
		}),
		numbers("arena: NewFrame buffers", 1, 8, "not #", func(n int) error {
			_, err := arena.NewFrame(block(), n)
			return err
		}),
		all("arena: NewHeap parked", func(n uint64) error {
			h, err := arena.NewHeap(block(), n)
			for range 9 {
				err = errors.Join(err, h.Free(h.Alloc(100, 16)))
			}
			return err
		}),
		all("arena: Heap.Reserve bytes", func(n uint64) error {
			h := heap()
			h.Reserve(n)
			if size := h.Stats().Size; n >= size && h.Alloc(64, 16) != nil {
				return errors.New("a reserved byte was allocated")
			}
			h.Reserve(0)
			return filled(h.Alloc(64, 16), 64)
		}),
		all("arena: Buddy.Reserve bytes", func(n uint64) error {
			y := made(arena.NewBuddy(block(), 64))
			y.Reserve(n)
			if size := y.Stats().Size; n >= size && y.Alloc(64, 16) != nil {
				return errors.New("a reserved byte was allocated")
			}
			y.Reserve(0)
			return filled(y.Alloc(64, 16), 64)
		}),
		numbers("arena: BuddySize bytes", 0, 1<<38, "^none$", func(n uint64) error {
			return one(arena.BuddySize(n, 64) > n)
		}),
		powers("arena: BuddySize smallest", 64, 1<<20, "^none$", func(n uint64) error {
			return one(arena.BuddySize(100, n) > 100)
		}),
		numbers("arena: BaseAt size", uint64(unsafe.Sizeof(array)), math.MaxUint64, "outside its base of # bytes",
			func(n uint64) error {
				at := arena.BaseAt(unsafe.Pointer(&array), n)
				if p := arena.PtrTo(at, &array); p.Get(at) != &array {
					return errors.New("another address")
				}
				return nil
			}),
		all("arena: BlockPool.At i", func(n int) error {
			if pool.At(n) != nil {
				return errors.New("a value in an empty pool")
			}
			return nil
		}),
		fitting("arena: HeapMaker.Slice n", 0, "^none$|to # ", func(n int) error {
			return some(unsafe.SliceData(octets.Slice(heap(), n)))
		}),
		fitting("arena: HeapMaker.Grow n", 1, "^none$|to # ", func(n int) error {
			h := heap()
			list, err := octets.Grow(h, octets.Slice(h, 1), n)
			return errors.Join(err, some(unsafe.SliceData(list)))
		}),
		numbers("arena: Linear.Resize old", 64, 64, "newest|bad argument", func(n uint64) error {
			l := made(arena.NewLinear(block()))
			_, err := l.Resize(l.Alloc(64, 8), n, 80)
			return err
		}),
		fitting("arena: Linear.Resize size", 0, "^none$", func(n uint64) error {
			l := made(arena.NewLinear(block()))
			p := l.Alloc(64, 8)
			if ok, err := l.Resize(p, 64, n); err != nil || !ok {
				return errors.Join(err, errNone)
			}
			return filled(p, n)
		}),
		numbers("arena: Linear.Rewind m", start, start, "Linear", rewind(false)),
		numbers("arena: LinearFar.Rewind m", end, end, "LinearFar", rewind(true)),
		numbers("arena: Stack.Rewind m", base, base, "Stack", func(m arena.Mark) error {
			return made(arena.NewStack(block())).Rewind(m)
		}),
		numbers("arena: StackFar.Rewind m", top, top, "StackFar", func(m arena.Mark) error {
			return made(arena.NewStack(block())).Far().Rewind(m)
		}),
		fitting("arena: Ring.Overwrite size", 0, "^none$", func(n uint64) error { return overwrite(n, 8) }),
		powers("arena: Ring.Overwrite align", 1, 4096, "^none$|aligned to #:", func(n uint64) error {
			return overwrite(8, n)
		}),
		chosen("arena/blob: At i", nil, func(int) bool { return false }, "At # of an Array of 0", func(n int) error {
			blob.At(array, n)
			return nil
		}),
	)
}

// sizesOfScopes returns the rows of package scope.
func sizesOfScopes(b *budget.Budget) []sized {
	in := func(fn func(s scope.Scope)) error {
		return b.Scratch(0, 0).Do("sizes", func(s scope.Scope) error { fn(s); return nil })
	}
	size := int(sizesScratch)
	wordsIn := size / 8
	pooled := func(open func(s scope.Scope, n int) int) func(n int) error {
		return func(n int) error {
			return in(func(s scope.Scope) {
				if c := open(s, n); c != n {
					panic("another number of chunks")
				}
			})
		}
	}
	handles := func(use func(p scope.HandlePool[uint64], h arena.Handle[uint64])) func(h arena.Handle[uint64]) error {
		return func(h arena.Handle[uint64]) error {
			return in(func(s scope.Scope) { use(sizedPonds.HandlePool(s, 3), h) })
		}
	}
	length := func(make func(s scope.Scope, n int) int) func(n int) error { return pooled(make) }
	return []sized{
		numbers("scope: Maker.Slice n", 0, wordsIn, asked+"|of #", length(func(s scope.Scope, n int) int {
			return len(sizedPonds.Slice(s, n))
		})),
		numbers("scope: Maker.TrySlice n", 0, wordsIn, asked+"|of #", func(n int) error {
			return in(func(s scope.Scope) { _ = sizedPonds.TrySlice(s, n) })
		}),
		numbers("scope: Maker.SliceCap n", 0, 9, "of # elements", length(func(s scope.Scope, n int) int {
			return len(sizedPonds.SliceCap(s, n, 9))
		})),
		numbers("scope: Maker.SliceCap capacity", 2, wordsIn, asked+"|room for #",
			length(func(s scope.Scope, n int) int { return cap(sizedPonds.SliceCap(s, 2, n)) })),
		numbers("scope: Maker.SliceAligned n", 0, wordsIn, asked+"|of #", length(func(s scope.Scope, n int) int {
			return len(sizedPonds.SliceAligned(s, n, 8))
		})),
		powers("scope: Maker.SliceAligned align", 1, 1<<16, asked+"|#", func(n uint64) error {
			return in(func(s scope.Scope) { sizedPonds.SliceAligned(s, 1, n) })
		}),
		fitting("scope: Maker.Pool n", 0, asked+"|of #", pooled(func(s scope.Scope, n int) int {
			return sizedPonds.Pool(s, n).Cap()
		})),
		fitting("scope: Maker.HandlePool n", 0, asked+"|of #", pooled(func(s scope.Scope, n int) int {
			return sizedPonds.HandlePool(s, n).Cap()
		})),
		fitting("scope: Maker.SharedPool n", 0, asked+"|of #", pooled(func(s scope.Scope, n int) int {
			sizedPonds.SharedPool(s, n)
			return n
		})),
		fitting("scope: ObjectMaker.Pool n", 0, asked+"|of #", pooled(func(s scope.Scope, n int) int {
			return sizedFrogs.Pool(s, n).Cap()
		})),
		fitting("scope: ObjectMaker.Slice n", 0, asked+"|of #", length(func(s scope.Scope, n int) int {
			return len(sizedFrogs.Slice(s, n))
		})),
		fitting("scope: ObjectHandles n", 0, asked+"|of #", pooled(func(s scope.Scope, n int) int {
			p, _ := scope.ObjectHandles(s, sizedFrogs, n)
			return p.Cap()
		})),
		all("scope: Pool.At i", func(n int) error {
			return in(func(s scope.Scope) {
				if sizedPonds.Pool(s, 3).At(n) != nil {
					panic("a value in an empty pool")
				}
			})
		}),
		all("scope: ObjectPool.At i", func(n int) error {
			return in(func(s scope.Scope) {
				if sizedFrogs.Pool(s, 3).At(n) != nil {
					panic("a value in an empty pool")
				}
			})
		}),
		all("scope: HandlePool.At h", handles(func(p scope.HandlePool[uint64], h arena.Handle[uint64]) {
			if p.At(h) != nil {
				panic("a value in an empty pool")
			}
		})),
		all("scope: HandlePool.Index h", handles(func(p scope.HandlePool[uint64], h arena.Handle[uint64]) {
			if p.Index(h) != -1 {
				panic("a value in an empty pool")
			}
		})),
		chosen("scope: HandlePool.Put h", nil, func(arena.Handle[uint64]) bool { return false }, "Put of a handle of",
			handles(func(p scope.HandlePool[uint64], h arena.Handle[uint64]) { p.Put(h) })),
		numbers("scope: ReadAt size", 0, size, asked+"|of #|of 65536 bytes", func(n int) error {
			return b.Scratch(0, 0).Do("sizes", func(s scope.Scope) error {
				_, err := scope.ReadAt(s, bytes.NewReader(make([]byte, size)), 0, n)
				return err
			})
		}),
		numbers("scope: ReadAt offset", 0, 8, "at offset #", func(n int64) error {
			return b.Scratch(0, 0).Do("sizes", func(s scope.Scope) error {
				_, err := scope.ReadAt(s, bytes.NewReader(make([]byte, 16)), n, 8)
				return err
			})
		}),
		numbers("scope: Scope.AllocUnzeroed size", 0, uint64(size), asked, func(n uint64) error {
			return in(func(s scope.Scope) { _ = filled(s.AllocUnzeroed(n, 8), n) })
		}),
		powers("scope: Scope.AllocUnzeroed align", 1, uint64(64), "a power of two up to 64", func(n uint64) error {
			return in(func(s scope.Scope) { s.AllocUnzeroed(8, n) })
		}),
		numbers("scope: Scope.AllocUnzeroedAs size", 0, uint64(size), asked, func(n uint64) error {
			return in(func(s scope.Scope) { _ = filled(s.AllocUnzeroedAs(n, scope.Align8), n) })
		}),
		all("scope: Scope.AllocUnzeroedAs mask", func(n int) error {
			return in(func(s scope.Scope) { s.AllocUnzeroedAs(8, scope.AlignMask(n)) })
		}),
		numbers("scope: Scope.TryAllocUnzeroed size", 0, uint64(size), asked, func(n uint64) error {
			return in(func(s scope.Scope) { _ = filled(s.TryAllocUnzeroed(n, 8), n) })
		}),
		powers("scope: Scope.TryAllocUnzeroed align", 1, uint64(64), "a power of two up to 64", func(n uint64) error {
			return in(func(s scope.Scope) { s.TryAllocUnzeroed(8, n) })
		}),
		numbers("scope: Scope.Bytes n", 0, size, asked+"|of #", length(func(s scope.Scope, n int) int {
			return len(s.Bytes(n))
		})),
		numbers("scope: Scope.BytesUnzeroed n", 0, size, asked+"|of #", length(func(s scope.Scope, n int) int {
			return len(s.BytesUnzeroed(n, 8))
		})),
		powers("scope: Scope.BytesUnzeroed align", 1, uint64(1<<16), asked+"|#", func(n uint64) error {
			return in(func(s scope.Scope) { s.BytesUnzeroed(1, n) })
		}),
		numbers("scope: Scope.Temp n", 0, size-64, asked+"|of #", func(n int) error {
			return in(func(s scope.Scope) { s.Temp(n) })
		}),
		numbers("scope: Scratches.Scratch which", 0, 1, "scratch #", func(n int) error {
			b.Scratches(0).Scratch(n)
			return nil
		}),
		all("scope: Text.AddInt i", func(n int64) error {
			return in(func(s scope.Scope) {
				text := s.Text()
				if text.AddInt(n); string(text.Bytes()) != sizeText(n) {
					panic(string(text.Bytes()))
				}
			})
		}),
	}
}

// sizesOfContainers returns the rows of packages container and cache.
func sizesOfContainers(b *budget.Budget) []sized {
	in := func(fn func(s scope.Scope) error) error { return b.Scratch(0, 0).Do("sizes", fn) }
	onHeap := func(fn func(h arena.Heap) bool) error {
		return one(fn(made(arena.NewHeap(arena.NewBlock(1<<16, 64), 0))))
	}
	is := func(n, capacity int) error {
		if n != capacity {
			return errors.New("another capacity")
		}
		return nil
	}
	bytesOf := func(s scope.Scope) *cache.Bytes { return cache.NewBytes(s, 32<<10, cache.Options{}) }
	option := func(set func(o *cache.Options, n int)) func(n int) error {
		return func(n int) error {
			return in(func(s scope.Scope) error {
				o := cache.Options{}
				set(&o, n)
				return cache.NewBytes(s, 32<<10, o).Set([]byte("key"), []byte("value"))
			})
		}
	}
	resize := func(n int) error {
		return in(func(s scope.Scope) error { bytesOf(s).Resize(n); return nil })
	}
	least := sort.Search(32<<10, func(n int) bool { return called(func() error { return resize(n) }) == nil })
	full := asked + "|of # "
	return []sized{
		fitting("scope/container: NewList n", 0, full, func(n int) error {
			return in(func(s scope.Scope) error { l := container.NewList(s, sizedPonds, n); return is(n, l.Cap()) })
		}),
		fitting("scope/container: NewDeque n", 0, full, func(n int) error {
			return in(func(s scope.Scope) error { d := container.NewDeque(s, sizedPonds, n); return is(n, d.Cap()) })
		}),
		fitting("scope/container: NewMap n", 0, full, func(n int) error {
			return in(func(s scope.Scope) error {
				m := container.NewMap(s, sizedPonds, sizedPonds, n)
				return is(n, m.Cap())
			})
		}),
		fitting("scope/container: NewStringMap n", 0, full, func(n int) error {
			return in(func(s scope.Scope) error {
				m := container.NewStringMap(s, sizedPonds, n, 8)
				return is(n, m.Cap())
			})
		}),
		fitting("scope/container: NewStringMap k", 0, full, func(n int) error {
			return in(func(s scope.Scope) error { container.NewStringMap(s, sizedPonds, 8, n); return nil })
		}),
		fitting("scope/container: NewListOn n", 0, "^none$|of # ", func(n int) error {
			return onHeap(func(h arena.Heap) bool { _, ok := container.NewListOn(h, sizedPonds, n); return ok })
		}),
		fitting("scope/container: NewMapOn n", 0, "^none$|of # ", func(n int) error {
			return onHeap(func(h arena.Heap) bool {
				_, ok := container.NewMapOn(h, sizedPonds, sizedPonds, n)
				return ok
			})
		}),
		fitting("scope/container: NewStringMapOn n", 0, "^none$|of # ", func(n int) error {
			return onHeap(func(h arena.Heap) bool { _, ok := container.NewStringMapOn(h, sizedPonds, n, 8); return ok })
		}),
		fitting("scope/container: NewStringMapOn k", 0, "^none$|of # ", func(n int) error {
			return onHeap(func(h arena.Heap) bool { _, ok := container.NewStringMapOn(h, sizedPonds, 8, n); return ok })
		}),
		numbers("scope/container: List.At i", 0, 1, "out of range .#", func(n int) error {
			return in(func(s scope.Scope) error {
				l := container.NewList(s, sizedPonds, 4)
				_, _ = l.Push(1), l.Push(2)
				return some(l.At(n))
			})
		}),
		numbers("scope/container: List.RemoveSwap i", 0, 1, "out of range .#", func(n int) error {
			return in(func(s scope.Scope) error {
				l := container.NewList(s, sizedPonds, 4)
				_, _ = l.Push(1), l.Push(2)
				l.RemoveSwap(n)
				return nil
			})
		}),
		numbers("scope/container: Deque.At i", 0, 1, "out of range .#", func(n int) error {
			return in(func(s scope.Scope) error {
				d := container.NewDeque(s, sizedPonds, 4)
				_, _ = d.PushBack(1), d.PushBack(2)
				return some(d.At(n))
			})
		}),
		all("scope/container: Map.Seed number", func(n uint64) error {
			return in(func(s scope.Scope) error {
				m := container.NewMap(s, sizedPonds, sizedPonds, 4)
				m.Seed(n)
				return one(m.Set(1, 2))
			})
		}),
		all("scope/container: StringMap.Seed number", func(n uint64) error {
			return in(func(s scope.Scope) error {
				m := container.NewStringMap(s, sizedPonds, 4, 8)
				m.Seed(n)
				return m.Set("a", 2)
			})
		}),
		fitting("scope/cache: NewBytes size", 4096, asked+"|NewBytes of # bytes", func(n int) error {
			return in(func(s scope.Scope) error { cache.NewBytes(s, n, cache.Options{}); return nil })
		}),
		all("scope/cache: Bytes.Advance now", func(n int64) error {
			return in(func(s scope.Scope) error { bytesOf(s).Advance(n); return nil })
		}),
		all("scope/cache: Bytes.SetUntil until", func(n int64) error {
			return in(func(s scope.Scope) error { return bytesOf(s).SetUntil([]byte("a"), []byte("b"), n) })
		}),
		numbers("scope/cache: Bytes.Resize size", least, 32<<10, "to # bytes", resize),
		chosen("scope/cache: Options.Shards", []int{8}, func(n int) bool { return n >= 0 && n <= 8 && n&(n-1) == 0 },
			"NewBytes with # shards|Options.Shards is #",
			option(func(o *cache.Options, n int) { o.Shards = n })),
		numbers("scope/cache: Options.Entry", 0, 1024, "Options.Entry of #",
			option(func(o *cache.Options, n int) { o.Entry = n })),
		all("scope/cache: Options.Seed", option(func(o *cache.Options, n int) { o.Seed = uint64(n) })),
		fitting("scope/cache: New n", 1, full, func(n int) error {
			return in(func(s scope.Scope) error { cache.New(s, sizedPonds, sizedPonds, n); return nil })
		}),
		fitting("scope/cache: NewObjects n", 1, full, func(n int) error {
			return in(func(s scope.Scope) error { cache.NewObjects(s, sizedPonds, sizedFrogs, n); return nil })
		}),
		all("scope/cache: Of.At h", func(h arena.Handle[uint64]) error {
			return in(func(s scope.Scope) error {
				if cache.New(s, sizedPonds, sizedPonds, 9).At(h) != nil {
					return errors.New("a value in an empty cache")
				}
				return nil
			})
		}),
		numbers("scope/cache: Of.Resize m", 1, 9, "to # values", func(n int) error {
			return in(func(s scope.Scope) error { return cache.New(s, sizedPonds, sizedPonds, 9).Resize(n) })
		}),
	}
}

var (
	lily  = flow.NewHost[frog]()
	leaps = flow.NewEvent[struct{}](lily, "leap")
)

func leapsSource() flow.Source {
	return flow.Source{Name: "leaps", Variables: []flow.Variable{{Name: "age", Type: flow.Int}},
		Nodes: []flow.Node{{Name: "leap", Type: "event", Of: "leap", Key: 1}}}
}

// sizesOfFlow returns the rows of package flow.
func sizesOfFlow(t *testing.T, b *budget.Budget) []sized {
	data, _, err := flow.Compile(leapsSource(), lily.Vocabulary())
	require.NoError(t, err)
	scratch := make([]byte, blob.ScratchSize(data))
	in := func(instances int, fn func(s scope.Scope, g *flow.Graph) error) error {
		return b.Scratch(0, 0).Do("sizes", func(s scope.Scope) error {
			g, err := lily.Load(s, data, scratch)
			if err != nil {
				return err
			}
			if instances != 0 {
				g.Instances(instances)
			}
			return fn(s, g)
		})
	}
	at := func(fn func(g *flow.Graph, i flow.Instance) error) func(i flow.Instance) error {
		return func(i flow.Instance) error {
			return in(3, func(_ scope.Scope, g *flow.Graph) error { return fn(g, i) })
		}
	}
	run := func(fn func(r *flow.Runner, g *flow.Graph) error) error {
		return in(3, func(s scope.Scope, g *flow.Graph) error {
			r := lily.NewRunner(s, &frog{}, 9)
			r.Begin()
			defer r.End()
			return fn(r, g)
		})
	}
	none := func(flow.Instance) bool { return false }
	compiled := func(change func(s *flow.Source, v *flow.Vocabulary)) error {
		s, v := leapsSource(), lily.Vocabulary()
		change(&s, &v)
		if _, err := flow.HostOf(v); err != nil {
			return err
		}
		_, _, err := flow.Compile(s, v)
		return err
	}
	types := func(n int) bool { return n >= int(flow.Bool) && n <= int(flow.Handle) }
	return []sized{
		all("scope/flow: Source.Seed", func(n uint32) error {
			return compiled(func(s *flow.Source, _ *flow.Vocabulary) { s.Seed = n })
		}),
		all("scope/flow: Node.Key", func(n int32) error {
			return compiled(func(s *flow.Source, _ *flow.Vocabulary) { s.Nodes[0].Key = n })
		}),
		chosen("scope/flow: Variable.Type", nil, types, "type", func(n int) error {
			return compiled(func(s *flow.Source, _ *flow.Vocabulary) { s.Variables[0].Type = flow.Type(n) })
		}),
		chosen("scope/flow: Parameter.Type", nil, types, "type", func(n int) error {
			return compiled(func(_ *flow.Source, v *flow.Vocabulary) {
				list := []flow.Parameter{{Name: "a", Type: flow.Type(n)}}
				v.Events = append(v.Events, flow.Signature{Name: "croak", Parameters: list})
			})
		}),
		numbers("scope/flow: Size instances", 0, 1<<31, "with # instances", func(n int) error {
			size, err := flow.Size(data, scratch, n)
			if size < n {
				return errors.New("a size less than the instances")
			}
			return err
		}),
		fitting("scope/flow: Graph.Instances n", 0, asked+"|with # instances", func(n int) error {
			return in(0, func(_ scope.Scope, g *flow.Graph) error { g.Instances(n); return nil })
		}),
		fitting("scope/flow: Host.NewRunner steps", 1, asked+"|with # steps", func(n int) error {
			return in(0, func(s scope.Scope, _ *flow.Graph) error { lily.NewRunner(s, &frog{}, n); return nil })
		}),
		chosen("scope/flow: Graph.Free i", nil, none, "Free of an instance of graph .leaps", at(
			func(g *flow.Graph, i flow.Instance) error { g.Free(i); return nil })),
		chosen("scope/flow: Graph.Seed i", nil, none, "Seed of an instance of graph .leaps", at(
			func(g *flow.Graph, i flow.Instance) error { g.Seed(i, 1); return nil })),
		chosen("scope/flow: Graph.Value i", nil, none, "Value of an instance of graph .leaps", at(
			func(g *flow.Graph, i flow.Instance) error { g.Value(i, 0); return nil })),
		chosen("scope/flow: Graph.Live i", nil, none, "^none$", at(func(g *flow.Graph, i flow.Instance) error {
			if !g.Live(i) {
				return errNone
			}
			return nil
		})),
		all("scope/flow: Graph.Seed seed", func(n uint32) error {
			return in(3, func(_ scope.Scope, g *flow.Graph) error { g.Seed(g.New(), n); return nil })
		}),
		numbers("scope/flow: Graph.Value variable", 0, 0, "variable #", func(n int) error {
			return in(3, func(_ scope.Scope, g *flow.Graph) error { g.Value(g.New(), n); return nil })
		}),
		chosen("scope/flow: Event.Fire i", nil, none, "instance", func(i flow.Instance) error {
			return run(func(r *flow.Runner, g *flow.Graph) error { return leaps.Fire(r, g, i, 1, struct{}{}) })
		}),
		all("scope/flow: Event.Fire key", func(n int32) error {
			return run(func(r *flow.Runner, g *flow.Graph) error { return leaps.Fire(r, g, g.New(), n, struct{}{}) })
		}),
		chosen("scope/flow: Runner.FireNamed i", nil, none, "instance", func(i flow.Instance) error {
			return run(func(r *flow.Runner, g *flow.Graph) error { return r.FireNamed(g, i, "leap", 1) })
		}),
		all("scope/flow: Runner.FireNamed key", func(n int32) error {
			return run(func(r *flow.Runner, g *flow.Graph) error { return r.FireNamed(g, g.New(), "leap", n) })
		}),
		all("scope/flow: Runner.SendTo i", func(i flow.Instance) error {
			return run(func(r *flow.Runner, g *flow.Graph) error { r.SendTo(g, i); return nil })
		}),
	}
}
