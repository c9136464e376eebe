package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// The proof that a ring never hands out live memory: all programs of seven operations, and with them all shorter ones, on
// rings of a few bytes. It has no model: it knows of each block only where it lies and what was written there. The other
// half, that the ring gives all that it could, is openRing's model, below.

// queue is a ring as that proof sees it: alloc gives an offset in the room, false for full.
type queue struct {
	alloc func(size int) (at int, ok bool)
	pop   func(at int) bool // of the oldest
}

// blockOf is a live block of a queue.
type blockOf struct {
	at, size int
	fill     byte
}

var errOverlap = errors.New("overlaps a live block")

// ringProgram runs one program, whose steps are indices into sizes, or len(sizes) for a free of the oldest. room is the
// bytes that blocks may lie in.
func ringProgram(room []byte, q queue, sizes, program []int) error {
	var store [8]blockOf
	live := store[:0]
	for step, op := range program {
		if op == len(sizes) {
			if len(live) > 0 {
				if !q.pop(live[0].at) {
					return errors.New("the oldest can't be freed")
				}
				live = live[1:]
			}
		} else if at, ok := q.alloc(sizes[op]); ok {
			n := blockOf{at, sizes[op], byte(step + 1)}
			if n.at < 0 || n.at+n.size > len(room) {
				return errors.New("outside the room")
			}
			for _, other := range live {
				if n.at < other.at+other.size && other.at < n.at+n.size {
					return errOverlap
				}
			}
			for i := range n.size {
				room[n.at+i] = n.fill
			}
			live = append(live, n)
		} else if len(live) == 0 && sizes[op]+8 <= len(room) {
			return errors.New("empty, and yet full")
		}
		for _, n := range live {
			for _, b := range room[n.at : n.at+n.size] {
				if b != n.fill {
					return errors.New("a live block has changed")
				}
			}
		}
	}
	return nil
}

// allRingPrograms finds the first program that goes wrong.
func allRingPrograms(t *testing.T, steps int, sizes []int, open func() ([]byte, queue)) error {
	program := make([]int, steps)
	for programs := 1; ; programs++ {
		room, q := open()
		if err := ringProgram(room, q, sizes, program); err != nil {
			return fmt.Errorf("%v of %v: %w", program, sizes, err)
		}
		i := 0
		for ; i < steps; i++ {
			if program[i]++; program[i] <= len(sizes) {
				break
			}
			program[i] = 0
		}
		if i == steps {
			t.Logf("%d programs on a ring of %d bytes", programs, len(room))
			return nil
		}
	}
}

func exhaustiveSteps() int {
	if !thorough() {
		return 5
	}
	return 7
}

// rightQueue is the core's ring, on a block that it may have used before.
func rightQueue(t *testing.T, size int) func() ([]byte, queue) {
	block := heapBlock(t, 2*arena_c.LineSize+size+8, 64)[:2*arena_c.LineSize+size] // an address at its end is of the same Go object
	room := block[2*arena_c.LineSize:]
	start := address(at(room))
	return func() ([]byte, queue) {
		r, err := arena.NewRing(block)
		require.NoError(t, err)
		return room, queue{
			alloc: func(size int) (int, bool) {
				p := r.Alloc(uint64(size), 1)
				return int(address(p) - start), p != nil
			},
			pop: func(offset int) bool {
				return r.Free(unsafe.Add(unsafe.Pointer(unsafe.SliceData(room)), offset)) == nil
			},
		}
	}
}

func TestNoShortProgramMakesARingOverlap(t *testing.T) {
	for _, c := range []struct {
		size  int
		sizes []int
	}{
		{64, []int{1, 8, 16, 24, 40, 56}},
		{72, []int{0, 8, 17, 24, 48, 64}},
		{96, []int{1, 16, 24, 40, 72, 88}},
		{101, []int{3, 13, 21, 40, 61, 93}},
	} {
		require.NoError(t, allRingPrograms(t, exhaustiveSteps(), c.sizes, rightQueue(t, c.size)))
	}
}

// TestAllShortProgramsOfARing compares with the model, which knows when a ring is full, and adds what is to be refused.
func TestAllShortProgramsOfARing(t *testing.T) {
	block := heapBlock(t, 2*arena_c.LineSize+112, 64)
	ops := []func(s *session) error{
		func(s *session) error { return s.alloc(0, 1) },
		func(s *session) error { return s.alloc(17, 1) },
		func(s *session) error { return s.alloc(40, 32) },
		(*session).fillUp,
		func(s *session) error { return s.release(0, 0) },
		func(s *session) error { return s.release(1, 0) },
		(*session).reset,
	}
	program := make([]int, exhaustiveSteps())
	for i := 0; i < len(program); {
		m, mod, err := openRing(block)
		require.NoError(t, err)
		s := newSession(block, m, mod)
		for _, op := range program {
			require.NoError(t, ops[op](s), "%v", program)
		}
		for i = 0; i < len(program); i++ {
			if program[i]++; program[i] < len(ops) {
				break
			}
			program[i] = 0
		}
	}
}

// foundationRing is the scratch allocator of Bitsquid's foundation, which Crown took over, without the allocator that it
// falls back to. Before each block lies a header of 4 bytes: what lies up to the next one, and whether it was freed. It
// asks whether the new cursor lies in live memory. A block that begins before all of that and ends behind it was handed
// out. repaired asks whether any of the new block does.
type foundationRing struct {
	room            []byte
	allocate, first int // first is what they call free: the oldest header
	live            int
	repaired        bool
}

func (r *foundationRing) header(at int) uint32       { return binary.LittleEndian.Uint32(r.room[at:]) }
func (r *foundationRing) setHeader(at int, h uint32) { binary.LittleEndian.PutUint32(r.room[at:], h) }

// inUse asks about the place of one cursor.
func (r *foundationRing) inUse(p int) bool {
	if r.first == r.allocate {
		return false
	}
	if r.first > r.allocate {
		return p >= r.first || p < r.allocate
	}
	return p >= r.first && p < r.allocate
}

// overlaps asks about all of [from, to).
func (r *foundationRing) overlaps(from, to int) bool {
	switch {
	case r.live == 0:
		return false
	case r.first < r.allocate:
		return from < r.allocate && r.first < to
	}
	return from < r.allocate || r.first < to
}

func (r *foundationRing) alloc(size int) (at int, ok bool) {
	size = (size + 3) / 4 * 4
	h := r.allocate
	p, skipped := h+4+size, -1
	if p > len(r.room) {
		skipped, h = h, 0
		p = 4 + size
	}
	if p > len(r.room) || !r.repaired && r.inUse(p) || r.repaired && (r.overlaps(h, p) || skipped >= 0 && skipped < r.first) {
		return 0, false
	}
	if skipped >= 0 && skipped < len(r.room) {
		r.setHeader(skipped, uint32(len(r.room)-skipped)|1<<31)
	}
	r.setHeader(h, uint32(p-h))
	r.allocate = p
	r.live++
	return h + 4, true
}

func (r *foundationRing) pop(at int) bool {
	h := at - 4
	r.setHeader(h, r.header(h)|1<<31)
	r.live--
	for laps := 0; r.first != r.allocate && laps < 2; { // it could go round for ever in a ring that overlaps
		if r.first > len(r.room)-4 {
			r.first = 0
			laps++
			continue
		}
		h := r.header(r.first)
		if h&(1<<31) == 0 {
			break
		}
		r.first += max(int(h&^(1<<31)), 4)
	}
	if r.live == 0 { // without it the empty ring would not take all that fits
		r.first, r.allocate = 0, 0
	}
	return true
}

func newFoundationRing(room []byte, repaired bool) queue {
	clear(room)
	r := &foundationRing{room: room, repaired: repaired}
	return queue{r.alloc, r.pop}
}

// TestTheExhaustiveTestCatchesBitsquidsFault: the same programs on the wrong ring, and on its repaired copy.
func TestTheExhaustiveTestCatchesBitsquidsFault(t *testing.T) {
	sizes, room := []int{1, 8, 16, 24, 40, 56}, make([]byte, 64)
	wrong := allRingPrograms(t, exhaustiveSteps(), sizes, func() ([]byte, queue) { return room, newFoundationRing(room, false) })
	t.Log(wrong)
	assert.ErrorIs(t, wrong, errOverlap)
	right := allRingPrograms(t, exhaustiveSteps(), sizes, func() ([]byte, queue) { return room, newFoundationRing(room, true) })
	assert.NoError(t, right)
}

// TestTheProgramThatShowedTheFault is the one that was published: 1024 bytes, 896, 96, free the first, 996.
func TestTheProgramThatShowedTheFault(t *testing.T) {
	sizes, program := []int{896, 96, 996}, []int{0, 1, 3, 2}
	room := make([]byte, 1024)
	assert.ErrorIs(t, ringProgram(room, newFoundationRing(room, false), sizes, program), errOverlap)
	assert.NoError(t, ringProgram(room, newFoundationRing(room, true), sizes, program))
	mine, q := rightQueue(t, 1024)()
	assert.NoError(t, ringProgram(mine, q, sizes, program))
}
