package bench

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

type object [8]uint64

var (
	objects = scope.Plain[object]()
	closing = scope.Object[object](func(*object) error { return nil })
)

const count = 1000

func open(b *testing.B) scope.Pad {
	m, err := budget.Open(budget.Plan{Name: "bench", Regions: []budget.Region{{Name: "level", Size: budget.MiB}},
		Pads: budget.Pads{Workers: 1, Size: budget.MiB}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close() })
	return m.Pad(0, 0)
}

// perUnit reports the time of one of `units` in each iteration.
func perUnit(b *testing.B, units int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(units), "ns/unit")
}

// A: 1000 zeroed objects of 64 bytes, then a rewind.

func BenchmarkA_Objects_Floor(b *testing.B) {
	block := arena.NewBlock(budget.MiB, 64)
	l := arena_c.LinearInit(unsafe.Pointer(&block[0]), budget.MiB)
	for b.Loop() {
		floorObjects(l, count)
	}
	perUnit(b, count)
}

func BenchmarkA_Objects_Upfront(b *testing.B) {
	pad := open(b)
	for b.Loop() {
		s := pad.Open("objects")
		for i := range uint64(count) {
			objects.New(s)[0] = i
		}
		_ = s.Close()
	}
	perUnit(b, count)
}

func BenchmarkA_Objects_CgoEach(b *testing.B) {
	block := arena.NewBlock(budget.MiB, 64)
	l := arena_c.LinearInit(unsafe.Pointer(&block[0]), budget.MiB)
	for b.Loop() {
		for i := range uint64(count) {
			p := (*object)(cgoObject(l))
			*p = object{}
			p[0] = i
		}
		l.Cursor = l.Start
	}
	perUnit(b, count)
}

func BenchmarkA_Objects_GoHeap(b *testing.B) {
	var keep [count]*object
	for b.Loop() {
		for i := range uint64(count) {
			keep[i] = new(object)
			keep[i][0] = i
		}
	}
	perUnit(b, count)
}

// C: get and put of a chunk of 64 bytes, last in first out.

func BenchmarkC_Pool_Floor(b *testing.B) {
	block := arena.NewBlock(budget.MiB, 64)
	p := arena_c.PoolMake(unsafe.Pointer(&block[0]), budget.MiB, 64, 8)
	for b.Loop() {
		floorPool(p, count)
	}
	perUnit(b, count)
}

func BenchmarkC_Pool_Upfront(b *testing.B) {
	s := open(b).Open("pool")
	pool := objects.Pool(s, count)
	for b.Loop() {
		for i := range uint64(count) {
			x := pool.Get()
			x[0] = i
			pool.Put(x)
		}
	}
	perUnit(b, count)
}

func BenchmarkC_Pool_SyncPool(b *testing.B) {
	pool := sync.Pool{New: func() any { return new(object) }}
	for b.Loop() {
		for i := range uint64(count) {
			x := pool.Get().(*object)
			*x = object{}
			x[0] = i
			pool.Put(x)
		}
	}
	perUnit(b, count)
}

// D: four nested scopes, each with 8 objects and 2 finalizers; the unit is a scope.

func BenchmarkD_Scopes_Floor(b *testing.B) {
	plan := []arena_c.Arena{{Kind: arena_c.KindPad, Size: budget.MiB}}
	size := arena_c.MapSize(plan, 64, 1, 0)
	block := arena.NewBlock(int(size), arena_c.Edge)
	row := arena_c.MapInit(unsafe.Pointer(&block[0]), size, plan, 64, 1, 0).Row(0)
	for b.Loop() {
		floorNest(row, 4)
	}
	perUnit(b, 4)
}

func BenchmarkD_Scopes_Upfront(b *testing.B) {
	pad := open(b)
	for b.Loop() {
		nest(pad, 4)
	}
	perUnit(b, 4)
}

func nest(pad scope.Pad, depth int) {
	if depth == 0 {
		return
	}
	s := pad.Open("nest")
	for range 8 {
		objects.New(s)
	}
	closing.New(s)
	closing.New(s)
	nest(pad, depth-1)
	_ = s.Close()
}

func BenchmarkD_Scopes_Empty(b *testing.B) {
	pad := open(b)
	for b.Loop() {
		s := pad.Open("empty")
		_ = s.Close()
	}
	perUnit(b, 1)
}
