// Package conformance runs one suite over every arena and every kind of block. model_test.go has
// the rules, and session_test.go the suite's steps. controls_test.go has wrong arenas, which the
// suite must catch.
package conformance

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/step"
)

// everywhere runs the check for every subject on every kind of block.
func everywhere(t *testing.T, size int, check func(t *testing.T, s *session)) {
	for _, sub := range subjects {
		for _, place := range blocks {
			t.Run(sub.name+"/"+place.name, func(t *testing.T) {
				block := place.take(t, max(size, sub.least))
				m, mod, err := sub.open(block)
				require.NoError(t, err)
				check(t, newSession(block, m, mod))
			})
		}
	}
}

func TestEveryArenaAligns(t *testing.T) {
	everywhere(t, 3*65536, func(t *testing.T, s *session) {
		for align := uint64(1); align <= 65536; align *= 2 {
			require.NoError(t, s.alloc(3, align))
		}
		require.NoError(t, s.intact())
	})
}

func TestEveryArenaFillsToTheLastByteAndIsUsableAgain(t *testing.T) {
	everywhere(t, 1000, func(t *testing.T, s *session) {
		for range 3 {
			taken := 0
			for have := given; have == given; taken++ {
				before := len(s.spans)
				require.NoError(t, s.alloc(max(24, s.size/100), 8))
				if len(s.spans) == before {
					have = full
				}
			}
			require.Positive(t, taken)
			require.NoError(t, s.fillUp())
			require.NoError(t, s.intact())
			require.NoError(t, s.giveBack())
			require.NoError(t, s.reset())
		}
	})
}

func TestEveryArenaRefusesWhatCannotBe(t *testing.T) {
	everywhere(t, 4096, func(t *testing.T, s *session) {
		require.NoError(t, s.alloc(0, 1))
		for _, size := range alarming {
			for _, align := range []uint64{1, 8, 65536} {
				require.NoError(t, s.alloc(size, align))
			}
		}
		for _, align := range []uint64{0, 3, 12, 1<<20 - 1, 1<<20 + 1, 1 << 21, 1 << 63, 1<<63 + 1, 1<<64 - 1} {
			require.NoError(t, s.alloc(8, align))
		}
		require.NoError(t, s.fillUp())
		require.NoError(t, s.intact())
	})
}

func TestRandomProgramsMatchTheModel(t *testing.T) {
	seed := rand.Uint64()
	rounds := step.Pick(4, 60, 60)
	everywhere(t, 2048, func(t *testing.T, s *session) {
		random := rand.New(rand.NewPCG(seed, 1))
		program := make([]byte, 3*200)
		for range rounds {
			for i := range program {
				program[i] = byte(random.Uint32())
			}
			require.NoError(t, s.run(program), "seed %d, program %x", seed, program)
			require.NoError(t, s.checked(s.giveBack()))
			require.NoError(t, s.reset())
		}
	})
}

func TestBlocksThatAreNone(t *testing.T) {
	window := arena.NewBlock(4096, 64)
	for _, sub := range subjects {
		if sub.name == "Scope" {
			continue // the test has its own block
		}
		for _, block := range [][]byte{nil, {}, window[:0], window[:1], window[:64], window[:79], window[1:],
			window[8:], window[32:4000]} {
			_, _, err := sub.open(block)
			assert.Error(t, err, "%s, a block of %d", sub.name, len(block))
			assert.NotContains(t, fmt.Sprint(err), "%!")
		}
	}
	assert.Equal(t, make([]byte, 4096), window, "a refusal changes nothing")
}

// A pool on a block hardly larger than its header has the chunks that fit: none or one, never 2^32.
func TestPoolsOnTinyBlocks(t *testing.T) {
	window := heapBlock(t, 1024, 64)
	for size := range 600 {
		_, mod, err := openPool[[100]byte](window[:size])
		if size < 128 || newPoolModel(64, uint64(size), 100, 1, besideChunk).count == 0 {
			assert.Error(t, err, "a block of %d", size)
			continue
		}
		require.NoError(t, err, "a block of %d", size)
		p, err := arena.NewBlockPool[[100]byte](window[:size])
		require.NoError(t, err)
		assert.EqualValues(t, mod.(*poolModel).count, p.Cap(), "a block of %d", size)
	}
}

func TestPutOfWhatIsNoChunk(t *testing.T) {
	p, err := arena.NewBlockPool[[3]uint64](heapBlock(t, 4096, 64))
	require.NoError(t, err)
	a, b := p.Get(), p.Get()
	require.NotNil(t, b)
	assert.ErrorContains(t, p.Put(nil), "not a chunk of this pool")
	assert.ErrorContains(t, p.Put(new([3]uint64)), "not a chunk of this pool")
	assert.ErrorContains(t, p.Put((*[3]uint64)(unsafe.Add(unsafe.Pointer(a), 8))), "inside a chunk")
	require.NoError(t, p.Put(a))
	assert.ErrorContains(t, p.Put(a), "put already")
	assert.Equal(t, []int{1, 2}, []int{p.Live(), p.Peak()})
}

// In race builds dead bytes are overwritten, so that a late read by another goroutine is reported:
// the move of a cursor alone conflicts with no access.
func TestRaceBuildsOverwriteWhatDies(t *testing.T) {
	if !arena_c.Race {
		t.Skip("only race builds do: go test -race ./tests/conformance runs it")
	}
	dead := bytes.Repeat([]byte{0xDB}, 100)
	for _, open := range []opener{openLinear, openStack} {
		m, _, err := open(heapBlock(t, 1024, 64))
		require.NoError(t, err)
		for _, end := range []func(mark uint64, p unsafe.Pointer){
			func(uint64, unsafe.Pointer) { m.reset() },
			func(mark uint64, _ unsafe.Pointer) { require.NoError(t, m.rewind(mark)) },
			func(_ uint64, p unsafe.Pointer) {
				if m.release == nil {
					m.reset()
					return
				}
				require.NoError(t, m.release(p))
			},
		} {
			mark, p := m.mark(), m.alloc(100, 16)
			clear(unsafe.Slice((*byte)(p), 100))
			end(mark, p)
			assert.Equal(t, dead, unsafe.Slice((*byte)(p), 100))
		}
	}
	w := newRowTwins(t)
	w.open()
	h := &w.a.Arena
	cursor := h.Cursor
	p, _ := h.Bump(h.Gen, 100, 0)
	h.Cut(cursor)
	assert.Equal(t, dead, unsafe.Slice((*byte)(p), 100), "a constructor that failed")
	require.NotZero(t, h.TempOpen(h.Gen, 100))
	p, _ = w.a.Temp.Bump(w.a.Temp.Gen, 100, 0)
	w.a.Temp.TempClose()
	assert.Equal(t, dead, unsafe.Slice((*byte)(p), 100), "temporaries")
}

func TestCodesHaveWords(t *testing.T) {
	seen := map[string]bool{}
	for code := arena_c.Corrupt; code <= arena_c.TableFull; code++ {
		assert.False(t, seen[code.String()], "two codes say %q", code)
		seen[code.String()] = true
	}
}
