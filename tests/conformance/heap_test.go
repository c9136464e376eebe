package conformance

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

func openHeap(block []byte) (machine, model, error) { return openHeapOf(block, 0) }

func openParkingHeap(block []byte) (machine, model, error) { return openHeapOf(block, 3) }

// openHeapOf's check walks, and compares every block and every count with the model. An empty heap
// is one free block.
func openHeapOf(block []byte, parks uint64) (machine, model, error) {
	a, err := arena.NewHeap(block, parks)
	if err != nil {
		return machine{}, nil, err
	}
	start, end := bounds(block)
	m, h := newHeapModel(start, end, parks), (*arena_c.Heap)(at(block))
	h.SetPlain()
	walked := make([]arena_c.Block, len(block)/32)
	check := func() error {
		count, code := h.Walk(walked)
		if code != arena_c.OK || count != uint64(len(m.pieces)) || m.lives+m.parked == 0 && count != 1 {
			return fmt.Errorf("the walk says %v of %d blocks, want %d, of which %d live",
				code, count, len(m.pieces), m.lives)
		}
		for i, p := range m.pieces {
			want := arena_c.Block{Offset: p.at - start, Size: p.size, Align: 16}
			if p.live {
				want.Asked, want.Align, want.Live = p.asked, p.align, 1
			}
			if p.parked {
				want.Live = arena_c.HeapParked
			}
			if walked[i] != want {
				return fmt.Errorf("block %d is %+v, want %+v", i, walked[i], want)
			}
		}
		have, want := [7]uint64{h.Used, h.Phase, h.Live, h.Parked, h.Failed, h.Bounded, h.Largest()},
			[7]uint64{m.used, m.peak, m.lives, m.parked, m.failed, m.bounded, m.largest()}
		if have != want {
			return fmt.Errorf("used, peak, live, parked, failed, bounded, largest are %d, want %d", have, want)
		}
		return nil
	}
	return machine{alloc: a.Alloc, release: a.Free, reset: a.Reset, resize: a.Realloc, check: check}, m, nil
}

func FuzzHeap(f *testing.F) { fuzz(f, openHeap, 4096) }

func FuzzParkingHeap(f *testing.F) { fuzz(f, openParkingHeap, 4096) }

// wrongHeap uses a model with a bug as the machine.
func wrongHeap(bug string) opener {
	return func(block []byte) (machine, model, error) {
		start, end := bounds(block)
		wrong := newHeapModel(start, end, 3)
		wrong.wrong = bug
		return modelled(block, wrong, func(at uint64) uint64 { return wrong.pieces[wrong.index(at)].asked }),
			newHeapModel(start, end, 3), nil
	}
}

// modelled uses a model as the machine. has returns the bytes of a live block that its owner may
// use.
func modelled(block []byte, m interface {
	model
	resizer
}, has func(at uint64) uint64) machine {
	start, _ := bounds(block)
	pointer := func(at uint64, a answer) unsafe.Pointer {
		if a != given {
			return nil
		}
		return unsafe.Add(unsafe.Pointer(unsafe.SliceData(block)), at-start)
	}
	return machine{
		alloc: func(size, align uint64) unsafe.Pointer {
			at, _, a := m.alloc(size, align)
			if a == refused {
				panic("refused")
			}
			return pointer(at, a)
		},
		release: func(p unsafe.Pointer) error {
			if !m.release(address(p)) {
				return errors.New("no block")
			}
			return nil
		},
		resize: func(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
			old := has(address(p))
			to, a := m.resized(address(p), size)
			if a == refused {
				return nil, errors.New("bad argument")
			}
			q := pointer(to, a)
			if q != nil && q != p {
				copy(unsafe.Slice((*byte)(q), size), unsafe.Slice((*byte)(p), old))
			}
			return q, nil
		},
		reset: m.reset,
	}
}
