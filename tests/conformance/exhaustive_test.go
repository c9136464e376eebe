package conformance

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/step"
)

// every are the possible steps of a program: small sizes, one larger than the block, each way to
// free.
var every = []struct {
	name string
	do   func(s *session) error
}{
	{"alloc 0", func(s *session) error { return s.alloc(0, 1) }},
	{"alloc 17", func(s *session) error { return s.alloc(17, 1) }},
	{"alloc 8 by 64", func(s *session) error { return s.alloc(8, 64) }},
	{"alloc 2^64-1", func(s *session) error { return s.alloc(1<<64-1, 8) }},
	{"fill up", (*session).fillUp},
	{"free the last", func(s *session) error { return s.release(0, 0) }},
	{"free the one before", func(s *session) error { return s.release(1, 0) }},
	{"free past the start", func(s *session) error { return s.release(0, 8) }},
	{"mark", func(s *session) error { s.mark(); return nil }},
	{"rewind", func(s *session) error { return s.rewind(0, 0) }},
	{"rewind to an older mark", func(s *session) error { return s.rewind(1, 0) }},
	{"alloc 40 by 32", func(s *session) error { return s.alloc(40, 32) }},
	{"reset", (*session).reset},
	{"alloc 100", func(s *session) error { return s.alloc(100, 1) }},
	{"alloc 200", func(s *session) error { return s.alloc(200, 1) }},
	{"resize the first to 150", func(s *session) error { return s.resize(0, 150) }},
	{"resize the first to 1", func(s *session) error { return s.resize(0, 1) }},
}

// TestAllShortPrograms runs each program of seven steps, and with it all shorter ones, on a stack
// of 192 bytes, on a ring of 112 and on frames; each of six on a linear arena of 96 and on both
// ends; and each of eight on a pool of three chunks.
func TestAllShortPrograms(t *testing.T) {
	steps := step.Pick(4, 6, 6)
	t.Run("stack", func(t *testing.T) {
		allPrograms(t, heapBlock(t, 128+192, 64), openStack, steps+1, []int{0, 1, 2, 4, 5, 6, 8, 9})
	})
	t.Run("pool", func(t *testing.T) {
		allPrograms(t, heapBlock(t, 64+3*(24+besideChunk)+8, 64), openPool[[3]uint64], steps+2, []int{0, 5, 6, 7})
	})
	t.Run("ring", func(t *testing.T) {
		allPrograms(t, heapBlock(t, 128+112, 64), openRing, steps+1, []int{0, 1, 11, 4, 5, 6, 12})
	})
	for buffers := 2; buffers <= 3; buffers++ {
		t.Run(fmt.Sprintf("frame of %d", buffers), func(t *testing.T) {
			allPrograms(t, heapBlock(t, arena_c.LineSize*(2+2*buffers), 64), openFrame(buffers), steps+1,
				[]int{0, 1, 2, 4, 12})
		})
	}
	t.Run("linear, both ends", func(t *testing.T) {
		allPrograms(t, heapBlock(t, 128+192, 64), openLinearEnds, steps,
			[]int{1, 4, 8, 9, far + 1, far + 4, far + 8, far + 9})
	})
	t.Run("stack, both ends", func(t *testing.T) {
		ops := []int{1, 4, 5, 8, 9, far + 1, far + 4, far + 5, far + 8, far + 9}
		allPrograms(t, heapBlock(t, 128+192, 64), openStackEnds, steps, ops)
	})
	t.Run("buddy", func(t *testing.T) { // 7 smallest blocks, the first at an odd multiple
		block := heapBlock(t, 2048, 2048)[128:]
		allPrograms(t, block[:192+7*64], openBuddy(64), steps, []int{0, 2, 13, 14, 5, 6, 15, 16})
	})
	t.Run("linear", func(t *testing.T) {
		allPrograms(t, heapBlock(t, 128+96, 64), openLinear, steps, []int{0, 1, 2, 3, 4, 8, 9, 10})
	})
}

// far is added to an operation of the far end.
const far = 100

func allPrograms(t *testing.T, block []byte, open opener, steps int, ops []int) {
	program := make([]int, steps)
	programs := 0
	for {
		m, mod, err := open(block)
		require.NoError(t, err)
		s := newSession(block, m, mod)
		for i, op := range program {
			s.turn(ops[op] / far)
			if err := s.checked(every[ops[op]%far].do(s)); err != nil {
				var names []string
				for _, op := range program[:i+1] {
					names = append(names, fmt.Sprint(ops[op]/far, " ", every[ops[op]%far].name))
				}
				t.Fatalf("%q: %v", names, err)
			}
		}
		if err := s.intact(); err != nil {
			t.Fatalf("%v: %v", program, err)
		}
		programs++
		i := 0
		for ; i < steps; i++ {
			if program[i]++; program[i] < len(ops) {
				break
			}
			program[i] = 0
		}
		if i == steps {
			break
		}
	}
	t.Logf("%d programs", programs)
}
