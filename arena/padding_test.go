package arena_test

import (
	"math/rand"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
)

// TestStackPadding frees in every way, and compares Padding with a plain sum over the live blocks.
func TestStackPadding(t *testing.T) {
	for seed := range int64(20) {
		random := rand.New(rand.NewSource(seed))
		s, err := arena.NewStack(arena.NewBlock(4096, 64))
		require.NoError(t, err)
		type live struct {
			p    unsafe.Pointer
			mark arena.Mark // the position before it
			size uint64
		}
		var blocks []live
		for range 400 {
			switch n := len(blocks); random.Intn(8) {
			case 0:
				if n > 0 {
					require.NoError(t, s.Free(blocks[n-1].p))
					blocks = blocks[:n-1]
				}
			case 1:
				if n > 0 && random.Intn(3) == 0 {
					keep := random.Intn(n)
					require.NoError(t, s.Rewind(blocks[keep].mark))
					blocks = blocks[:keep]
				}
			case 2:
				if n > 1 {
					require.Error(t, s.Free(blocks[0].p), "not the last")
				}
			case 3:
				if random.Intn(20) == 0 {
					s.Reset()
					blocks = nil
				}
			case 4:
				s.Far().Alloc(uint64(random.Intn(50)), 16) // the other end has a count of its own
			default:
				b := live{mark: s.Mark(), size: uint64(random.Intn(100))}
				if b.p = s.Alloc(b.size, 1<<random.Intn(8)); b.p != nil {
					blocks = append(blocks, b)
				}
			}
			asked := uint64(0)
			for _, b := range blocks {
				asked += b.size
			}
			require.Equal(t, s.Stats().Used-asked, s.Padding(), "seed %d", seed)
			require.GreaterOrEqual(t, s.Padding(), 16*uint64(len(blocks)))
			near, far := s.Stats(), s.Far().Stats()
			require.Equal(t, near.Size, near.Used+near.Free+far.Used)
			require.Equal(t, [2]uint64{near.Size, near.Free}, [2]uint64{far.Size, far.Free})
		}
	}
}

// TestStatsKnow: Stats has no field that only some arenas fill.
func TestStatsKnow(t *testing.T) {
	_, has := reflect.TypeFor[arena.Stats]().FieldByName("Padding")
	assert.False(t, has)
}
