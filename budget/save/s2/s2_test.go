package s2_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/budget/save/s2"
	"github.com/upfront-mem/upfront/scope"
)

type Room struct {
	Tick  uint64
	Frogs [500]struct{ X, Y int32 }
}

var roomMaker = scope.Plain[Room]()

// openRoom loads a room, with a ring of two snapshots.
func openRoom(b *budget.Budget) (*Room, *save.Ring, error) {
	var ring *save.Ring
	level := b.Region("level")
	loaded, err := budget.Load(context.Background(), level, func(s scope.Scope) (*Room, error) {
		state, room := save.Begin(level, s, roomMaker)
		ring = save.NewRing(s, 2, state)
		return room, nil
	})
	return loaded.Get(), ring, err
}

func roomPlan() budget.Plan {
	level := budget.RegionPlan{Name: "level", Size: 64 * budget.KiB, State: true}
	return budget.Plan{Name: "pond", Regions: []budget.RegionPlan{level}}
}

// One side plays, and sends the other the changes of a tick.
func Example() {
	var rooms [2]*Room
	var rings [2]*save.Ring
	for i := range rooms {
		b, err := budget.Open(roomPlan())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer b.Close()
		if rooms[i], rings[i], err = openRoom(b); err == nil {
			err = rings[i].Take(0)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	rooms[0].Tick = 1
	for i := range rooms[0].Frogs {
		rooms[0].Frogs[i].X += 5
	}
	_ = rings[0].Take(1)
	delta, err := rings[0].Delta(nil, 0, 1)
	packed := s2.Compress(nil, delta)
	fmt.Println(len(delta), len(packed) < len(delta)/10, err)

	delta, err = s2.Decompress(nil, packed, 2*rings[1].Size()+64)
	if err == nil {
		_, err = rings[1].Apply(delta)
	}
	if err == nil {
		err = rings[1].Restore(context.Background(), 1)
	}
	fmt.Println(rooms[1].Tick, rooms[1].Frogs[499].X, err)
	// Output:
	// 1567 true <nil>
	// 1 5 <nil>
}

// deltas returns bytes like those of deltas, of many sizes.
func deltas() (all [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 7, 31, 32, 33, 1000, 65_535, 65_536, 300_000} {
		for _, dense := range []int{0, 1, 30, 100} {
			delta := make([]byte, size)
			for i := range delta {
				if r.IntN(100) < dense {
					delta[i] = byte(r.Uint32())
				}
			}
			all = append(all, delta)
		}
	}
	return all
}

func TestBothWays(t *testing.T) {
	for _, delta := range deltas() {
		packed := s2.Compress([]byte("before"), delta)
		require.Equal(t, "before", string(packed[:6]))
		got, err := s2.Decompress([]byte("also"), packed[6:], len(delta))
		require.NoError(t, err)
		require.Equal(t, "also", string(got[:4]))
		require.True(t, bytes.Equal(delta, got[4:]))
		if len(delta) > 0 {
			got, err = s2.Decompress([]byte("also"), packed[6:], len(delta)-1)
			require.ErrorContains(t, err, "and the caller allows")
			require.Equal(t, "also", string(got))
		}
	}
}

// TestBomb: a few bytes that claim a huge size take no memory.
func TestBomb(t *testing.T) {
	for _, says := range []uint64{1001, 1 << 31, 1<<32 - 1, 1 << 32, 1<<64 - 1} {
		packed := append(binary.AppendUvarint(nil, says), 0xfe, 1, 2)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := s2.Decompress(nil, packed, 1000)
		runtime.ReadMemStats(&after)
		require.Error(t, err)
		require.Nil(t, got)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), says)
	}
}

// TestDamaged: changed bits and missing ends give an error, or bytes within the allowed size.
func TestDamaged(t *testing.T) {
	packed := s2.Compress(nil, bytes.Repeat([]byte("a frog, a fly, "), 20))
	refused := 0
	try := func(damaged []byte) {
		got, err := s2.Decompress([]byte("before"), damaged, 1000)
		if err != nil {
			require.ErrorContains(t, err, "save/s2: ")
			require.Equal(t, "before", string(got))
			refused++
		}
		require.LessOrEqual(t, len(got), 1006)
	}
	for bit := range 8 * len(packed) {
		damaged := bytes.Clone(packed)
		damaged[bit/8] ^= 1 << (bit % 8)
		try(damaged)
	}
	for end := range packed {
		try(packed[:end])
	}
	assert.GreaterOrEqual(t, refused, len(packed), "no end may be missing")
}

func TestNoAllocations(t *testing.T) {
	delta := bytes.Repeat([]byte("a frog, a fly, "), 500)
	packed, got := make([]byte, 0, len(delta)*7/6+32), make([]byte, 0, len(delta))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		packed = s2.Compress(packed[:0], delta)
		got, _ = s2.Decompress(got[:0], packed, len(delta))
	}))
	assert.Equal(t, delta, got)
}

func FuzzDecompress(f *testing.F) {
	for _, delta := range deltas()[:20] {
		f.Add(s2.Compress(nil, delta))
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		got, err := s2.Decompress(nil, packed, 10_000)
		if err == nil {
			again, err := s2.Decompress(nil, s2.Compress(nil, got), len(got))
			require.NoError(t, err)
			require.True(t, bytes.Equal(got, again))
		}
		require.LessOrEqual(t, len(got), 10_000)
	})
}

func BenchmarkCompress(b *testing.B) {
	delta := deltas()[37]
	var packed []byte
	b.SetBytes(int64(len(delta)))
	for b.Loop() {
		packed = s2.Compress(packed[:0], delta)
	}
	b.ReportMetric(float64(len(packed))/float64(len(delta)), "packed/delta")
}
