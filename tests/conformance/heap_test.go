package conformance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

func openHeap(block []byte) (machine, model, error) {
	h, err := arena.NewHeap(block)
	if err != nil {
		return machine{}, nil, err
	}
	start, end := bounds(block)
	return machine{alloc: h.Alloc, release: h.Free, reset: h.Reset}, newHeapModel(start, end), nil
}

// heapSession is the suite's session with a realloc, and with a walk after every step.
type heapSession struct {
	*session
	model   *heapModel
	resized func(p unsafe.Pointer, size uint64) (unsafe.Pointer, error)
	header  *arena_c.Heap // nil: nothing to walk
	walked  []arena_c.HeapRange
}

func newHeapSession(block []byte) (*heapSession, error) {
	h, err := arena.NewHeap(block)
	if err != nil {
		return nil, err
	}
	m, mod, err := openHeap(block)
	return &heapSession{newSession(block, m, mod), mod.(*heapModel), h.Realloc, (*arena_c.Heap)(at(block)),
		make([]arena_c.HeapRange, len(block)/32)}, err
}

// newWrongHeapSession has for its machine the model with a bug.
func newWrongHeapSession(block []byte, bug string) *heapSession {
	start, end := bounds(block)
	wrong, right := newHeapModel(start, end), newHeapModel(start, end)
	wrong.wrong = bug
	pointer := func(at uint64, a answer) unsafe.Pointer {
		if a == refused {
			panic("refused")
		}
		if a == full {
			return nil
		}
		return unsafe.Add(unsafe.Pointer(unsafe.SliceData(block)), at-start)
	}
	m := machine{
		alloc: func(size, align uint64) unsafe.Pointer {
			at, _, a := wrong.alloc(size, align)
			return pointer(at, a)
		},
		release: func(p unsafe.Pointer) error {
			if !wrong.release(address(p)) {
				return errors.New("no block")
			}
			return nil
		},
		reset: wrong.reset,
	}
	resized := func(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
		old := wrong.pieces[wrong.index(address(p))].asked
		to, a := wrong.resized(address(p), size)
		q := pointer(to, a)
		if q != nil && !badArgument(size, 1) {
			copy(unsafe.Slice((*byte)(q), size), unsafe.Slice((*byte)(p), old))
		}
		return q, nil
	}
	return &heapSession{newSession(block, m, right), right, resized, nil, nil}
}

// resize gives a live block another size; its contents must go along.
func (s *heapSession) resize(which int, size uint64) error {
	if len(s.spans) == 0 {
		return nil
	}
	n := &s.spans[which%len(s.spans)]
	to, want := s.model.resized(n.at, size)
	p, have := s.guardedRealloc(n.p, size)
	if have != want {
		return fmt.Errorf("realloc to %d: answer %d, want %d", size, have, want)
	}
	if want != given {
		return s.intact()
	}
	if address(p) != to {
		return fmt.Errorf("Realloc to %d: at %d, want %d", size, address(p)-s.base, to-s.base)
	}
	old := n.size
	n.p, n.at, n.size = p, to, min(size, old)
	if err := s.intact(); err != nil {
		return err
	}
	n.size = size
	for i := old; i < size; i++ {
		n.bytes()[i] = n.fill
	}
	return s.intact()
}

func (s *heapSession) guardedRealloc(p unsafe.Pointer, size uint64) (q unsafe.Pointer, a answer) {
	defer func() {
		if recover() != nil {
			a = refused
		}
	}()
	q, err := s.resized(p, size)
	switch {
	case err != nil:
		return nil, refused
	case q == nil:
		return nil, full
	}
	return q, given
}

// walk compares every block and every count with the model's.
func (s *heapSession) walk() error {
	if s.header == nil {
		return nil
	}
	count, code := s.header.Walk(s.walked)
	if code != arena_c.OK || count != uint64(len(s.model.pieces)) {
		return fmt.Errorf("the walk says %v of %d blocks, want %d", code, count, len(s.model.pieces))
	}
	for i, p := range s.model.pieces {
		want := arena_c.HeapRange{Offset: p.at - s.base, Size: p.size, Align: 16}
		if p.live {
			want.Asked, want.Align, want.Live = p.asked, p.align, 1
		}
		if s.walked[i] != want {
			return fmt.Errorf("block %d is %+v, want %+v", i, s.walked[i], want)
		}
	}
	h, m := s.header, s.model
	have, want := [6]uint64{h.Used, h.Peak, h.Live, h.Failed, h.Bounded, h.Largest()},
		[6]uint64{m.used, m.peak, m.lives, m.failed, m.bounded, m.largest()}
	if have != want {
		return fmt.Errorf("used, peak, live, failed, bounded, largest are %d, want %d", have, want)
	}
	return nil
}

func (s *heapSession) run(program []byte) error {
	for i := 0; i+2 < len(program); i += 3 {
		op, a, b := program[i], program[i+1], program[i+2]
		var err error
		switch op / 16 {
		case 0, 1, 2:
			err = s.resize(int(a), uint64(b)*uint64(op%16))
		case 3:
			err = s.resize(int(a), alarming[int(b)%len(alarming)])
		default:
			err = s.step(op, a, b)
		}
		if err == nil {
			err = s.walk()
		}
		if err != nil {
			return fmt.Errorf("step %d of %d, % x: %w", i/3, len(program)/3, program[i:i+3], err)
		}
	}
	return s.empty()
}

// empty gives everything back: the heap is one free block again.
func (s *heapSession) empty() error {
	for len(s.spans) > 0 {
		if err := s.release(0, 0); err != nil {
			return err
		}
	}
	if n := len(s.model.pieces); n != 1 {
		return fmt.Errorf("empty, in %d blocks", n)
	}
	return s.walk()
}

func TestRandomProgramsOnAHeap(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 3))
	rounds := 15
	if !thorough() {
		rounds = 1
	}
	program := make([]byte, 3*400)
	var bounded uint64
	for _, place := range blocks {
		for _, size := range []int{400, 4096, 9 * arena_c.Edge / 4} {
			s, err := newHeapSession(place.take(t, size))
			require.NoError(t, err)
			for range rounds {
				for i := range program {
					program[i] = byte(random.Uint32())
				}
				require.NoError(t, s.run(program), "%s, %d bytes, seed %d", place.name, size, seed)
			}
			bounded += s.model.bounded
		}
	}
	t.Logf("seed %d, %d refusals by the bound", seed, bounded)
}

func FuzzHeap(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte("\x01\x60\x20\x03\x60\x20\x05\x0f\x00\xff\x6a\x00\x00\x6a\x00\x00\x6a\x01\x00"))
	f.Add([]byte("\x13\x66\xff\x06\x66\x04\x0c\x66\x04\x00\x0a\x01\x00\x05\x00\xf0\x6a\x00\x00\x0f\x01\xff"))
	window := arena.NewBlock(4096+arena_c.Edge, arena_c.AlignMax)
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) == 0 || len(program) > 3000 {
			return
		}
		from := int(program[0]) * arena_c.LineSize
		s, err := newHeapSession(window[from : from+4096])
		require.NoError(t, err)
		require.NoError(t, s.run(program[1:]))
		arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(window)), uint64(len(window)))
	})
}

func TestTheSuiteCatchesWrongHeaps(t *testing.T) {
	block := arena.NewBlock(8192, 64)
	random := rand.New(rand.NewPCG(7, 7))
	program := make([]byte, 3*300)
	caught := func(bug string) (err error) {
		for range 20 {
			s := newWrongHeapSession(block, bug)
			for i := range program {
				program[i] = byte(random.Uint32())
			}
			if err = s.run(program); err != nil {
				return err
			}
		}
		return nil
	}
	for _, bug := range []string{"aligns to 8", "never its own class", "realloc forgets the alignment", "frees twice", "never melts",
		"splits too early"} {
		assert.Error(t, caught(bug), "the suite lets %q pass", bug)
	}
	assert.NoError(t, caught(""))
}
