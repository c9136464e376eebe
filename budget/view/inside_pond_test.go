package view_test

import (
	"errors"
	"io"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// The program of testdata/inside.svg has an object of each kind. The line directive keeps its line
// numbers when the text above changes.

//line pond.go:1
type (
	Frog  struct{ X, Y, Age int32 }
	Sound struct{ Samples, Rate, Channel, Volume uint64 }
	Lily  struct{ Leaves [5]uint64 }
)

var (
	frogs  = scope.Plain[Frog]()
	bytes_ = scope.Plain[byte]()
	sounds = scope.Object(func(*Sound) error { return nil })
)

// loadPond makes the pond, and calls look while its temporaries exist.
func loadPond(s scope.Scope, look func(...arena.Inner) error) error {
	name := bytes_.Slice(s, 13)
	copy(name, "pond by night")
	frogs.Slice(s, 8)
	sounds.New(s)
	s.Own(file{})
	err := scope.Label(s, "frogs", func() error {
		pool := frogs.Pool(s, 12)
		var got []*Frog
		for range 7 {
			got = append(got, pool.Get())
		}
		pool.Put(got[2])
		pool.Put(got[5])
		frogs.New(s)
		return nil
	})
	if err != nil {
		return err
	}
	inner := s.Open("night")
	_, err = sounds.Make(inner, func(x *Sound) error {
		bytes_.Slice(inner, 50)
		sounds.Slice(inner, 3)
		return nil
	})
	if err != nil {
		return err
	}
	heap, err := arena.NewHeap(inner.BytesUnzeroed(1152, 64), 0)
	if err != nil {
		return err
	}
	heap.MayLive()
	first := heap.Alloc(80, 16)
	heap.Alloc(48, 16)
	heap.Alloc(112, 16)
	inner.Defer(func() {})
	inner.Keep(first)
	err = heap.Free(first)
	temp := inner.Temp(200)
	bytes_.Slice(temp, 120)
	return errors.Join(err, look(heap), inner.Close())
}

type file struct{ io.Closer }

func (file) Close() error { return nil }

var pondPlan = budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 4 * budget.KiB}}}
