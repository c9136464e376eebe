package conformance

import (
	"errors"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// Types of one size on every target: no int, and 64-bit words at multiples of 8.
type (
	pinOdd   [3]byte
	pinPoint struct{ X, Y int32 }
	pinRefs  struct {
		Next  arena.Ptr[pinPoint]
		Name  arena.String
		List  arena.Slice[uint16]
		Count uint16
		_     [6]byte
	}
	pinAlone struct {
		Word  float64
		Owned scope.Owned
	}
)

var (
	pinOdds    = scope.Plain[pinOdd]()
	pinShorts  = scope.Plain[uint16]()
	pinPoints  = scope.Plain[pinPoint]()
	pinWords   = scope.Plain[uint64]()
	pinRefss   = scope.Plain[pinRefs]()
	pinAlones  = scope.Plain[pinAlone]()
	pinClosers = scope.Object(func(*pinPoint) error { return nil })
	pinFloats  = scope.Object(func(*float64) error { return nil })
)

func put[T any](p *T) []unsafe.Pointer { return []unsafe.Pointer{unsafe.Pointer(p)} }

func first[T any](list []T) []unsafe.Pointer { return put(unsafe.SliceData(list)) }

// pinnedThings are the requests of the program, each with the places of its objects.
var pinnedThings = []struct {
	what string
	make func(p *pinning, s scope.Scope) []unsafe.Pointer
}{
	{"New odd", func(_ *pinning, s scope.Scope) []unsafe.Pointer { return put(pinOdds.TryNew(s)) }},
	{"New point", func(_ *pinning, s scope.Scope) []unsafe.Pointer { return put(pinPoints.TryNew(s)) }},
	{"New word", func(_ *pinning, s scope.Scope) []unsafe.Pointer { return put(pinWords.TryNew(s)) }},
	{"New refs", func(_ *pinning, s scope.Scope) []unsafe.Pointer { return put(pinRefss.New(s)) }},
	{"New alone", func(_ *pinning, s scope.Scope) []unsafe.Pointer { return put(pinAlones.New(s)) }},
	{"Slice", func(p *pinning, s scope.Scope) []unsafe.Pointer { return first(pinShorts.TrySlice(s, p.random(200))) }},
	{"Slice of refs", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		return first(pinRefss.Slice(s, p.random(9)))
	}},
	{"SliceAligned", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		return first(pinPoints.SliceAligned(s, 1+p.random(9), 1<<p.random(9)))
	}},
	{"SliceCap and Append", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		list := pinOdds.SliceCap(s, 2, 4)
		longer := pinOdds.Append(s, list, make([]pinOdd, p.random(6))...)
		words := pinWords.Append(s, nil, 1)
		return append(append(first(list), first(longer)...), first(pinWords.Append(s, words, 2, 3))...)
	}},
	{"Alloc", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		return []unsafe.Pointer{s.TryAllocUnzeroed(uint64(p.random(300)), 1<<p.random(7))}
	}},
	{"Bytes", func(p *pinning, s scope.Scope) []unsafe.Pointer { return first(s.Bytes(p.random(50))) }},
	{"Sprintf", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		return put(unsafe.StringData(scope.Sprintf(s, "%d frogs", p.random(1000))))
	}},
	{"Text", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		t := s.Text()
		return first(t.Add("frogs: ").AddInt(int64(p.random(1000))).Add("0.250").Bytes())
	}},
	{"Temp", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		t := s.Temp(8 + p.random(600))
		defer t.Close() // so that a temporary s is the newest again
		return append(put(pinPoints.New(t)), first(pinWords.TrySlice(t, p.random(100)))...)
	}},
	{"Label", func(_ *pinning, s scope.Scope) (made []unsafe.Pointer) {
		_ = scope.Label(s, "sound", func() error { made = put(pinWords.New(s)); return nil })
		return made
	}},
	{"Object", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		return append(put(pinClosers.New(s)), first(pinFloats.Slice(s, p.random(5)))...)
	}},
	{"Make", func(_ *pinning, s scope.Scope) []unsafe.Pointer {
		x, _ := pinFloats.Make(s, func(*float64) error { pinOdds.New(s); return nil })
		_, err := pinClosers.Make(s, func(*pinPoint) error { pinWords.Slice(s, 10); return errors.New("no frog") })
		if errors.Is(err, scope.ErrFull) {
			panic(err)
		}
		return put(x)
	}},
	{"Defer and Keep", func(_ *pinning, s scope.Scope) []unsafe.Pointer {
		h := s.Defer(func() {})
		_ = h.CloseNow()
		s.Keep("frog").Cancel()
		return put(pinOdds.New(s))
	}},
	{"Pool", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		pool := pinPoints.Pool(s, 2+p.random(20))
		a, b := pool.Get(), pool.Get()
		pool.Put(a)
		return append(append(put(a), put(b)...), put(pool.Get())...)
	}},
	{"HandlePool", func(_ *pinning, s scope.Scope) []unsafe.Pointer {
		pool := pinAlones.HandlePool(s, 3)
		a, _ := pool.Get()
		b, h := pool.Get()
		pool.Put(h)
		return append(put(a), put(b)...)
	}},
	{"ObjectPool", func(_ *pinning, s scope.Scope) []unsafe.Pointer { return put(pinFloats.Pool(s, 5).Get()) }},
	{"SharedPool", func(_ *pinning, s scope.Scope) []unsafe.Pointer { return put(pinOdds.SharedPool(s, 5).Get()) }},
	{"Builder", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		b := pinRefss.Build(s)
		for range 1 + p.random(25) {
			b.TryPush(pinRefs{})
		}
		return first(b.Done())
	}},
	{"List and Deque", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		list, deque := container.NewList(s, pinWords, 1+p.random(9)), container.NewDeque(s, pinOdds, 1+p.random(9))
		list.Push(1)
		deque.PushFront(pinOdd{})
		return append(put(list.At(0)), put(deque.At(0))...)
	}},
	{"Map", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		m := container.NewMap(s, pinWords, pinShorts, 1+p.random(20))
		m.Set(1, 3)
		names := container.NewStringMap(s, pinOdds, 1+p.random(9), 1+p.random(30))
		_ = names.Set("f", pinOdd{})
		return append(put(m.Get(1)), put(names.Get("f"))...)
	}},
	{"Stack", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		k, err := arena.NewStack(s.BytesUnzeroed(700, 64))
		return inBlock(err, func() []unsafe.Pointer {
			a, b := k.Alloc(uint64(1+p.random(90)), 8), k.Alloc(40, 32)
			_ = k.Free(b)
			return []unsafe.Pointer{a, b, k.Alloc(9, 1), k.Far().Alloc(17, 4)}
		})
	}},
	{"Ring", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		r, err := arena.NewRing(s.BytesUnzeroed(600, 64))
		return inBlock(err, func() []unsafe.Pointer {
			a, b := r.Alloc(uint64(1+p.random(200)), 8), r.Alloc(100, 64)
			_ = r.Free(a)
			return []unsafe.Pointer{a, b, r.Alloc(200, 1), r.Alloc(60, 1)}
		})
	}},
	{"Heap", func(p *pinning, s scope.Scope) []unsafe.Pointer {
		block := s.BytesUnzeroed(6000, 64)
		h, err := arena.NewHeap(block, 0)
		return inBlock(err, func() []unsafe.Pointer {
			h.MayLive()
			(*arena_c.Heap)(at(block)).SetPlain()
			a, b := h.Alloc(uint64(1+p.random(400)), 8), h.Alloc(40, 128)
			_ = h.Free(a)
			c, _ := h.Realloc(b, uint64(50+p.random(900)))
			return []unsafe.Pointer{a, b, c, h.Alloc(64, 64)}
		})
	}},
}

// inBlock returns the places of objects in an arena, if its constructor succeeded.
func inBlock(err error, made func() []unsafe.Pointer) []unsafe.Pointer {
	if err != nil {
		panic(err)
	}
	return made()
}
