package scope_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

// quiet is a closer, and objects makes objects, without any cost of their own.
type quiet struct{}

func (*quiet) Close() error { return nil }

var (
	objects = scope.Object[point](func(*point) error { return nil })
	quieter = &quiet{}
	nothing = func() {}
	nobody  = func() error { return nil }
	fine    = func(*point) error { return nil }

	twoPoints = []point{{1, 2}, {3, 4}}
	fourBytes = []byte("newt")
)

// steady lists work that a program does a million times. Each gets an open scope and leaves it as
// it was, or allocates in it: the test empties the scope from time to time.
var steady = []struct {
	name string
	work func(s scope.Scope)
}{
	{"open and close", func(s scope.Scope) { _ = s.Open("inner").Close() }},
	{"New", func(s scope.Scope) { points.New(s) }},
	{"TryNew", func(s scope.Scope) { points.TryNew(s) }},
	{"Slice", func(s scope.Scope) { points.Slice(s, 4) }},
	{"Alloc", func(s scope.Scope) { s.AllocUnzeroed(16, 16) }},
	{"Object.New", func(s scope.Scope) { objects.New(s) }},
	{"Object.Make", func(s scope.Scope) { _, _ = objects.Make(s, fine) }},
	{"Own", func(s scope.Scope) { s.Own(quieter) }},
	{"Defer of a static function", func(s scope.Scope) { s.Defer(nothing) }},
	{"Keep", func(s scope.Scope) { s.Keep(quieter) }},
	{"Own and Cancel", func(s scope.Scope) { s.Own(quieter).Cancel() }},
	{"Own and CloseNow", func(s scope.Scope) { _ = s.Own(quieter).CloseNow() }},
	{"Label", func(s scope.Scope) { _ = scope.Label(s, "sound", nobody) }},
	{"Temp", func(s scope.Scope) { temp := s.Temp(64); points.New(temp); _ = temp.Close() }},
	{"a pool, Get and Put", func(s scope.Scope) {
		inner := s.Open("inner")
		pool := points.Pool(inner, 4)
		pool.Put(pool.Get())
		_ = inner.Close()
	}},
	{"a pool with handles, Get, At and Put", func(s scope.Scope) {
		inner := s.Open("inner")
		pool := points.HandlePool(inner, 4)
		_, h := pool.Get()
		pool.At(h)
		pool.Put(h)
		_ = inner.Close()
	}},
	{"Append", func(s scope.Scope) {
		list := points.Append(s, nil, point{1, 2})
		list = points.Append(s, list, point{3, 4})
		s.AllocUnzeroed(1, 1)
		points.Append(s, list, list...)
	}},
	{"a builder", func(s scope.Scope) {
		list := points.Build(s)
		list.Push(point{1, 2})
		list.Done()
	}},
	{"Clone", func(s scope.Scope) { points.Clone(s, twoPoints) }},
	{"Make", func(s scope.Scope) { _, _ = points.Make(s, fine) }},
	{"a text", func(s scope.Scope) {
		text := s.Text()
		text.Add("frog ").AddInt(3)
		var room [32]byte
		_, _ = text.Write(strconv.AppendFloat(room[:0], 123456789.987654321, 'f', 2, 64))
		_, _ = text.Write(text.Bytes())
		text.Reset().Add("toad ").AddBytes(fourBytes)
	}},
	{"RefTo and Get", func(s scope.Scope) { scope.RefTo(s, points.New(s)).Get() }},
}

func TestNoGoAllocation(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' checks allocate: go test ./scope runs it")
	}
	scratch := budgettest.Open(t,
		budget.Plan{Name: "steady", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
			Scratch: budget.ScratchPlan{Workers: 1, Size: budget.MiB}, Limits: budget.Limits{Owned: 1024}}).Scratch(0,
		0)
	for _, c := range steady {
		t.Run(c.name, func(t *testing.T) {
			s := scratch.Open("steady")
			assert.Zero(t, testing.AllocsPerRun(100, func() { c.work(s) }))
			assert.NoError(t, s.Close())
		})
	}
	b := open(t)
	base, scratches := b.Base(), b.Scratches(0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s := scratches.Pick().Open("names")
		name := scope.StringOf(s, base, fourBytes)
		scope.StringOf(s, base, name.Get(base))
		_ = s.Close()
	}), "texts, of bytes too")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		out := scratches.Pick().Open("out")
		beside := scratches.Pick(out).Open("beside")
		_ = scratches.Scratch(1).Do("do", func(s scope.Scope) error { s.Bytes(100); return nil })
		_, _ = beside.Close(), out.Close()
	}), "a worker's own Pick, Open, Do and Close")
	shared := points.SharedPool(scratches.Pick().Open("a"), 2)
	assert.Zero(t, testing.AllocsPerRun(100, func() { shared.Put(shared.Get()); shared.Live() }), "a shared pool")
	// a control: the test sees an allocation
	var text string
	assert.NotZero(t, testing.AllocsPerRun(100, func() { text += strconv.Itoa(len(text)) }))
}
