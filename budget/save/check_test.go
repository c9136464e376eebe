package save_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestHostileImage: forged words of the program's own are refused by name, and nothing changes.
func TestHostileImage(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 3)
	for i := range uint64(60) {
		p.step(i)
	}
	require.NoError(t, p.ring.Take(1))
	const live, free = arena_c.ChunkLive, arena_c.ChunkFree
	c := save.ControlOf(p.ring)
	require.Len(t, c.Pools, 2)
	require.Len(t, c.Nodes, 3) // two pools and a label
	frogs, flies := c.Pools[0], c.Pools[1]
	image := save.Image(p.ring, 1)
	state := func(pool save.ControlPool, index int) *byte { return &image[pool.Chunks-1-index] }
	chunk := func(pool save.ControlPool, is byte, nth int) int {
		for i := range pool.Count {
			if *state(pool, i) == is {
				if nth--; nth < 0 {
					return i
				}
			}
		}
		t.Fatalf("there is no chunk %d of state %d: play on", nth, is)
		return 0
	}
	add := func(at int, n uint32) {
		binary.LittleEndian.PutUint32(image[at:], binary.LittleEndian.Uint32(image[at:])+n)
	}
	clearChunk := func(pool save.ControlPool, i int) {
		clear(image[pool.Chunks+i*pool.Stride:][:pool.Stride])
	}
	fresh := func(pool save.ControlPool) int {
		return bytes.Count(image[pool.States:pool.Chunks], []byte{arena_c.ChunkFresh})
	}
	putChunk := frogs.Chunks + frogs.Stride*chunk(frogs, free, 0)
	list := frogs.Numbers + 4*fresh(frogs) // of freed chunks
	for _, test := range []struct {
		what   string
		change func()
		says   string
	}{
		{"the chain", func() { image[c.Nodes[0]]++ }, "the scope's chain, which aren't zeros"},
		{"the pool of a node", func() { image[c.Nodes[2]+8]++ },
			"the scope's chain, which aren't zeros"},
		{"the line of a label", func() { image[c.Nodes[1]+8]++ },
			"the scope's chain, which aren't zeros"},
		{"the end of a label", func() { image[c.Nodes[1]+39]++ },
			"the scope's chain, which aren't zeros"},
		{"one more free", func() { add(c.Words[0], 1) }, "free and 0 retired by its words"},
		{"one less free", func() { add(c.Words[1], 1<<32-1) }, "free and 0 retired by its words"},
		{"one retired", func() { add(c.Words[0]+4, 1) }, "free and 1 retired by its words"},
		{"all free", func() { add(c.Words[0], 1<<31) }, "by its words"},
		{"no state", func() { *state(frogs, 0) = 5 }, "1 chunks of unknown state"},
		{"leaving", func() { *state(frogs, 0) = arena_c.ChunkLeaving }, "1 chunks of unknown state"},
		{"what marks a chunk", func() { *state(frogs, 0) |= 0x80 }, "1 chunks of unknown state"},
		{"live, not counted", func() { *state(flies, chunk(flies, free, 0)) = live }, "by the states"},
		{"free, not counted", func() {
			i := chunk(flies, live, 0)
			*state(flies, i) = arena_c.ChunkFree
			clearChunk(flies, i)
		}, "by the states of its chunks"},
		{"retired without handles", func() {
			i := chunk(flies, live, 0)
			*state(flies, i) = arena_c.ChunkRetired
			clearChunk(flies, i)
			add(c.Words[1]+4, 1)
		}, "1 chunks retired, but it has no handles"},
		{"fresh and free change places", func() {
			i := chunk(frogs, free, 0)
			*state(frogs, i), *state(frogs, frogs.Count-1) = arena_c.ChunkFresh, arena_c.ChunkFree
		}, "never used comes before one that was"},
		{"two fresh change places", func() {
			add(frogs.Numbers, 1<<32-1)
			add(frogs.Numbers+4, 1)
		}, "which was never used"},
		{"out of range", func() { add(list, 1000) }, "its list of free chunks has chunk 10"},
		{"out of range by far", func() { add(list, 1<<31) }, "free chunks has chunk 21474836"},
		{"a live one", func() {
			binary.LittleEndian.PutUint32(image[list:], uint32(chunk(frogs, live, 0)))
		}, "which isn't free"},
		{"twice", func() {
			copy(image[list+4:list+8], image[list:])
		}, "or is listed twice"},
		{"another's generation", func() { image[frogs.Generations+3] ^= 4 }, "which this pool can't create"},
		{"no generation", func() { clear(image[frogs.Generations:][:4]) }, "generation 0x0 of chunk 0"},
		{"the last one's", func() { clear(image[frogs.Generations+4*39:][:4]) }, "0x0 of chunk 39"},
		{"something put", func() { image[putChunk+9] = 1 }, "bytes other than zeros"},
		{"something fresh", func() { image[frogs.Chunks+frogs.Stride*40-1] = 1 }, "bytes other than zeros"},
		{"the end", func() { image[c.To] = 1 }, "the padding after it isn't zeros"},
	} {
		image = save.Image(p.ring, 1)
		require.NoError(t, save.Hold(p.ring, 2, image), test.what) // the control
		before := holding(t, p, 1, 2)
		test.change()
		err := save.Hold(p.ring, 2, image)
		require.ErrorContains(t, err, test.says, test.what)
		require.ErrorContains(t, err, "region level, byte 0x", test.what)
		require.Equal(t, before, holding(t, p, 1, 2), test.what)
	}
}

// TestRetired: a snapshot holds retired chunks, whose generations are used up, and play goes on
// from it.
func TestRetired(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 2)
	_, h := p.frogs.Get()
	p.frogs.Put(h)
	require.NoError(t, p.ring.Take(1))
	image := save.Image(p.ring, 1)
	last := save.ControlOf(p.ring).Pools[0].Generations
	generation := binary.LittleEndian.Uint32(image[last:]) | p.frogGenerations()
	binary.LittleEndian.PutUint32(image[last:], generation)
	require.NoError(t, save.Hold(p.ring, 2, image))
	require.NoError(t, p.ring.Restore(context.Background(), 2))
	_, h = p.frogs.Get()
	p.frogs.Put(h)
	require.NoError(t, p.ring.Take(3))
	require.NoError(t, save.Hold(p.ring, 4, save.Image(p.ring, 3)))
	require.NoError(t, p.ring.Restore(context.Background(), 4))
	got := 0
	for f, _ := p.frogs.Get(); f != nil; f, _ = p.frogs.Get() {
		got++
	}
	assert.Equal(t, frogsMost-1, got)
	require.NoError(t, p.ring.Take(5))
	require.NoError(t, save.Hold(p.ring, 6, save.Image(p.ring, 5)))
}

// frogGenerations returns the bits of a generation that count, for 64 planned pools.
func (p *pond) frogGenerations() uint32 { return 1<<26 - 1 }

// hostile plays from those hostile images of a pond that pass, and then the pools must hold. In
// between it plays from a good snapshot, with the same result as ever.
type hostile struct {
	*pond
	good [8][]byte
	want uint64
	held int // images that passed
}

func newHostile(t testing.TB) *hostile {
	h := &hostile{pond: newPond(t, open(t, pondPlan()), "level", 3)}
	for i := range h.good {
		for range i * i {
			h.step(uint64(i))
		}
		require.NoError(t, h.ring.Take(1))
		h.good[i] = save.Image(h.ring, 1)
	}
	h.want = h.play(t, 3)
	return h
}

// play plays from the good snapshot.
func (h *hostile) play(t testing.TB, ticks int) uint64 {
	require.NoError(t, h.ring.Restore(t.Context(), 1))
	for range ticks {
		h.step(9)
	}
	require.NoError(t, h.ring.Take(2))
	return hash(t, h.ring, 2)
}

// try changes an image by a program: the first byte selects the image, and each further three bytes
// are a position and a value to XOR.
func (h *hostile) try(t testing.TB, program []byte) {
	if len(program) == 0 {
		return
	}
	image := bytes.Clone(h.good[int(program[0])%len(h.good)])
	for program = program[1:]; len(program) >= 3; program = program[3:] {
		image[int(binary.LittleEndian.Uint16(program))%len(image)] ^= program[2]
	}
	h.tryImage(t, image)
}

func (h *hostile) tryImage(t testing.TB, image []byte) {
	before := bytes.Clone(image)
	if save.Hold(h.ring, 3, image) != nil {
		return
	}
	h.held++
	require.True(t, bytes.Equal(before, save.Image(h.ring, 3)))
	if err := h.ring.Restore(t.Context(), 3); err != nil {
		require.ErrorIs(t, err, errHostile)
	} else {
		for i := range uint64(50) {
			h.step(i)
		}
		for all := 0; all <= frogsMost; all++ { // each live frog once
			if f, _ := h.frogs.Get(); f == nil {
				require.Equal(t, frogsMost, h.frogs.Live()+h.retired())
				break
			}
			require.Less(t, all, frogsMost)
		}
		require.NoError(t, h.ring.Take(4))
		require.NoError(t, save.Hold(h.ring, 3, save.Image(h.ring, 4)), "what play leaves passes")
	}
	require.NoError(t, save.Hold(h.ring, 1, h.good[len(h.good)-1]))
	require.Equal(t, h.want, h.play(t, 3))
}

// retired returns the number of retired frogs.
func (h *hostile) retired() int {
	require.NoError(nil, h.ring.Take(4))
	pool := save.ControlOf(h.ring).Pools[0]
	return bytes.Count(save.Image(h.ring, 4)[pool.States:pool.Chunks], []byte{arena_c.ChunkRetired})
}

// TestHostileImages is FuzzImage with random programs, mostly for the pools' words.
func TestHostileImages(t *testing.T) {
	h := newHostile(t)
	c := save.ControlOf(h.ring)
	r := rand.New(rand.NewPCG(9, 9))
	rounds := step.Pick(500, 3000, 3000)
	for range rounds {
		program := []byte{byte(r.Uint32())}
		for range 1 + r.IntN(3) {
			pool := c.Pools[r.IntN(len(c.Pools))]
			at := pool.Numbers + r.IntN(pool.Chunks-pool.Numbers)
			if r.IntN(3) == 0 {
				at = r.IntN(c.To)
			}
			program = append(program, byte(at), byte(at>>8), 1<<r.IntN(8))
		}
		h.try(t, program)
	}
	assert.Greater(t, h.held, rounds/10)
	assert.Less(t, h.held, rounds*9/10)
}
