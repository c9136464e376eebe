package save_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// TestChanges: a delta of any two images turns one into the other.
func TestChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	holds := func(from, to []byte) int {
		t.Helper()
		changes := save.AppendChanges([]byte("before"), from, to)
		require.Equal(t, "before", string(changes[:6]))
		got := slices.Clone(from)
		at, what := save.ApplyChanges(got, changes[6:])
		require.Empty(t, what, at)
		require.True(t, bytes.Equal(to, got))
		return len(changes) - 6
	}
	for _, lines := range []int{0, 1, 2, 3, 4, 5, 63, 64, 65, 130} {
		from := make([]byte, lines*arena_c.LineSize)
		for i := range from {
			from[i] = byte(r.Uint32())
		}
		require.Zero(t, holds(from, from))
		if lines == 0 {
			continue
		}
		other := slices.Clone(from)
		for i := range other {
			other[i]++
		}
		require.Less(t, holds(from, other), len(from)+8)
		for at := range min(len(from), 700) { // each byte near both ends
			one := slices.Clone(from)
			one[at] ^= 1
			require.LessOrEqual(t, holds(from, one), 5)
			one[len(one)-1-at] ^= 3
			holds(from, one)
		}
		for range 200 { // runs, some adjacent
			to := slices.Clone(from)
			for range 1 + r.IntN(6) {
				begin := r.IntN(len(to))
				for i := begin; i < min(begin+r.IntN(100), len(to)); i++ {
					to[i] = byte(r.Uint32N(3))
				}
			}
			holds(from, to)
		}
	}
}

// TestDeltaSize: for 1.7 MB with 3,000 writes of 8 bytes, a delta has at most 40 KB.
func TestDeltaSize(t *testing.T) {
	from, to := scattered()
	assert.LessOrEqual(t, len(save.AppendChanges(nil, from, to))+save.DeltaHeader, 40_000)
}

// scattered returns two images of 1.7 MB that differ by 3,000 writes.
func scattered() (from, to []byte) {
	r := rand.New(rand.NewPCG(5, 6))
	from = make([]byte, 1_700_032)
	for i := 0; i < len(from); i += 8 {
		binary.LittleEndian.PutUint64(from[i:], r.Uint64())
	}
	to = slices.Clone(from)
	for range 3000 {
		binary.LittleEndian.PutUint64(to[8*r.IntN(len(to)/8):], r.Uint64())
	}
	return from, to
}

// TestSend: one pond plays and sends deltas; the other applies them, and plays on with the same
// result.
func TestSend(t *testing.T) {
	sender := newPond(t, open(t, pondPlan()), "level", 8)
	receiver := newPond(t, open(t, pondPlan()), "level", 8)
	require.NoError(t, sender.ring.Take(0))
	require.NoError(t, receiver.ring.Take(0))
	r := rand.New(rand.NewPCG(7, 8))
	var sent []byte
	for tick := uint64(1); tick < 300; tick++ {
		sender.step(r.Uint64())
		require.NoError(t, sender.ring.Take(tick))
		base := tick - 1 - r.Uint64N(min(tick, 5))
		delta, err := sender.ring.Delta(sent[:0], base, tick)
		require.NoError(t, err)
		sent = delta
		got, err := receiver.ring.Apply(delta)
		require.NoError(t, err)
		require.Equal(t, tick, got)
		require.Equal(t, save.Image(sender.ring, tick), save.Image(receiver.ring, tick))
		require.Equal(t, hash(t, sender.ring, tick), hash(t, receiver.ring, tick))
		if tick%20 == 0 { // it plays ahead, with the same result
			require.NoError(t, receiver.ring.Restore(context.Background(), tick))
			for i := range uint64(5) {
				sender.step(i)
				receiver.step(i)
			}
			require.NoError(t, sender.ring.Take(tick+1))
			require.NoError(t, receiver.ring.Take(tick+1))
			require.Equal(t, hash(t, sender.ring, tick+1), hash(t, receiver.ring, tick+1))
			require.NoError(t, sender.ring.Restore(context.Background(), tick))
		}
	}
}

// TestTheOldestGoes: a delta's snapshot may replace its base, another snapshot of its number, or
// itself.
func TestTheOldestGoes(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 2)
	require.NoError(t, p.ring.Take(1))
	p.step(1)
	require.NoError(t, p.ring.Take(2))
	want := save.Image(p.ring, 2)
	delta, err := p.ring.Delta(nil, 1, 2)
	require.NoError(t, err)
	again, err := p.ring.Delta(nil, 2, 2)
	require.NoError(t, err)
	_, err = p.ring.Apply(delta)
	require.NoError(t, err)
	assert.True(t, p.ring.Has(1) && p.ring.Has(2))
	_, err = p.ring.Apply(again)
	require.NoError(t, err)
	assert.Equal(t, want, save.Image(p.ring, 2))
	p.step(3)
	require.NoError(t, p.ring.Take(3))
	assert.False(t, p.ring.Has(1))
	_, err = p.ring.Apply(delta)
	require.ErrorContains(t, err, "byte 24: its base: save: region level: the ring of 2 doesn't hold snapshot 1")

	small := newPond(t, open(t, pondPlan()), "level", 1)
	require.NoError(t, small.ring.Take(1))
	_, err = small.ring.Apply(delta)
	require.NoError(t, err)
	assert.Equal(t, want, save.Image(small.ring, 2))
	assert.False(t, small.ring.Has(1))
}

// holding returns the ring's snapshots with these numbers, and the current state.
func holding(t *testing.T, p *pond, numbers ...uint64) (all [][]byte) {
	for _, n := range numbers {
		if p.ring.Has(n) {
			all = append(all, save.Image(p.ring, n))
		} else {
			all = append(all, nil)
		}
	}
	return append(all, save.Live(p.ring))
}

// TestDamagedDelta: a delta with one changed bit or a missing end makes no other snapshot than the
// right one; usually none, and nothing changes.
func TestDamagedDelta(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 3)
	for range 30 {
		p.step(1)
	}
	require.NoError(t, p.ring.Take(4))
	p.step(2)
	require.NoError(t, p.ring.Take(5))
	delta, err := p.ring.Delta(nil, 4, 5)
	require.NoError(t, err)
	want := save.Image(p.ring, 5)
	require.NoError(t, p.ring.Take(6))
	before := holding(t, p, 4, 5, 6)

	refused := 0
	try := func(damaged []byte, what string) {
		number, err := p.ring.Apply(damaged)
		if err == nil {
			require.Equal(t, uint64(5), number, what)
			require.Equal(t, want, save.Image(p.ring, 5), what)
			return
		}
		refused++
		require.Contains(t, err.Error(), "save: a delta for region level, byte ", what)
	}
	for bit := range 8 * len(delta) {
		damaged := bytes.Clone(delta)
		damaged[bit/8] ^= 1 << (bit % 8)
		try(damaged, fmt.Sprint("bit ", bit))
	}
	assert.Equal(t, 8*len(delta), refused, "a bit of a delta that says nothing")
	for end := range delta {
		try(delta[:end], fmt.Sprint("end ", end))
	}
	try(append(bytes.Clone(delta), 0), "longer")
	assert.Equal(t, 9*len(delta)+1, refused)
	assert.Equal(t, before, holding(t, p, 4, 5, 6))
	_, err = p.ring.Apply(delta) // the control
	require.NoError(t, err)
}

// TestRefusedDelta: an error names the byte of the delta, and nothing changes.
func TestRefusedDelta(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 2)
	require.NoError(t, p.ring.Take(1))
	p.step(1)
	require.NoError(t, p.ring.Take(2))
	good, err := p.ring.Delta(nil, 1, 2)
	require.NoError(t, err)
	uvarint := func(n ...uint64) (all []byte) {
		for _, n := range n {
			all = binary.AppendUvarint(all, n)
		}
		return all
	}
	changed := func(at int, value byte) []byte {
		d := bytes.Clone(good)
		d[at] = value
		return d
	}
	sealed := func(changes []byte) []byte { return save.Sealed(p.ring, 1, 8, changes) }
	size := uint64(p.ring.Size())
	for _, test := range []struct {
		delta []byte
		says  string
	}{
		{nil, "byte 0: it ends within its header of 64 bytes"},
		{changed(0, 'U'), "byte 0: it is no delta"},
		{changed(7, '2'), `byte 7: it has version "2", and this program reads "1"`},
		{changed(32, 9), "byte 56: the header is damaged"},
		{append(bytes.Clone(good), 1), "byte 16: "},
		{save.Sealed(p.ring, 7, 8, nil),
			"byte 24: its base: save: region level: the ring of 2 doesn't hold snapshot 7"},
		{sealed([]byte{0x80}), "byte 64: the number of bytes to skip is no varint"},
		{sealed(bytes.Repeat([]byte{0xff}, 20)), "byte 64: the number of bytes to skip is no varint"},
		{sealed([]byte{3}), "byte 65: the number of bytes that changed is no varint"},
		{sealed([]byte{3, 0}), "byte 65: a range of no bytes"},
		{sealed([]byte{3, 2, 1}), "byte 65: a range changes 2 bytes, and the delta has 1 more"},
		{sealed(uvarint(size, 1, 1)),
			fmt.Sprintf("byte 64: a range skips %d bytes and changes 1, and the snapshot has %[1]d", size)},
		{sealed(uvarint(1<<63, 1<<63, 1)), "byte 64: "},
		{sealed(uvarint(8, 1<<64-8, 1)), "byte 64: "},
		{sealed(uvarint(1, 1, 1, size-3, 2, 0, 0)), "byte 67: "},
		{sealed([]byte{0, 1, 1}), "byte 64: it makes a state that this program can't produce: region level, byte 0x"},
	} {
		before := holding(t, p, 1, 2, 8)
		_, err := p.ring.Apply(test.delta)
		require.ErrorContains(t, err, "save: a delta for region level, "+test.says)
		require.Equal(t, before, holding(t, p, 1, 2, 8), test.says)
	}

	other := newPond(t, open(t, pondPlan()), "level", 2)
	other.step(7)
	require.NoError(t, other.ring.Take(1))
	before := holding(t, other, 1)
	_, err = other.ring.Apply(good)
	require.ErrorContains(t, err, "byte 40: its base, snapshot 1, has hash 0x")
	require.ErrorContains(t, err, "the two games differ from then on")
	assert.Equal(t, before, holding(t, other, 1))

	dst, err := p.ring.Delta([]byte("as it was"), 1, 77)
	require.ErrorContains(t, err, "doesn't hold snapshot 77")
	assert.Equal(t, "as it was", string(dst))
	_, err = p.ring.Delta(nil, 77, 1)
	require.ErrorContains(t, err, "doesn't hold snapshot 77")
	_, err = p.ring.Apply(good) // the control
	require.NoError(t, err)
}

// TestDeltaOfOthers: Delta and Apply refuse a ring of another size, of a region that is no state
// region, and of a load that is over.
func TestDeltaOfOthers(t *testing.T) {
	ctx := context.Background()
	p := newPond(t, open(t, pondPlan()), "level", 2)
	require.NoError(t, p.ring.Take(1))
	good, err := p.ring.Delta(nil, 1, 1)
	require.NoError(t, err)

	plan := pondPlan()
	plan.Regions = append(plan.Regions, budget.RegionPlan{Name: "plain", Size: 256 * budget.KiB})
	b := open(t, plan)
	plain := newPond(t, b, "plain", 2)
	require.NoError(t, plain.ring.Take(1))
	_, err = plain.ring.Apply(good)
	require.ErrorContains(t, err, "save: Apply of region plain of budget \"pond\"")
	require.ErrorContains(t, err, "set its key state to true")
	_, err = plain.ring.Delta(nil, 1, 1)
	require.ErrorContains(t, err, "save: Delta of region plain")

	var ring *save.Ring
	region := b.Region("level")
	_, err = budget.Load(ctx, region, func(s scope.Scope) (*room, error) {
		st, room := save.Begin(region, s, roomMaker)
		ring = save.NewRing(s, 1, st)
		return room, nil
	})
	require.NoError(t, err)
	require.NoError(t, ring.Take(1))
	_, err = ring.Apply(good)
	sizes := fmt.Sprintf("its snapshots have %d bytes, and %d here", p.ring.Size(), ring.Size())
	require.ErrorContains(t, err, "byte 8: "+sizes)

	require.NoError(t, p.region.Rewind(ctx))
	_, err = p.ring.Apply(good)
	require.ErrorIs(t, err, budget.ErrClosed)
}

// TestDeltaOfSeveral: a ring of two regions sends both.
func TestDeltaOfSeveral(t *testing.T) {
	plan := budget.Plan{Name: "pond", Regions: []budget.RegionPlan{
		{Name: "a", Size: 64 * budget.KiB, State: true}, {Name: "b", Size: 64 * budget.KiB, State: true},
		{Name: "top", Size: 64 * budget.KiB}}}
	type level struct {
		room  *room
		state *save.State
		frogs scope.HandlePool[frog]
	}
	begin := func() (levels [2]level, ring *save.Ring) {
		b := open(t, plan)
		for i, name := range []string{"a", "b"} {
			l, region := &levels[i], b.Region(name)
			_, err := budget.Load(t.Context(), region, func(s scope.Scope) (*level, error) {
				l.state, l.room = save.Begin(region, s, roomMaker)
				l.frogs = frogMaker.HandlePool(s, 5+i)
				byteMaker.Slice(s, 3+i) // the end isn't the end of a line
				return l, nil
			})
			require.NoError(t, err)
		}
		_, err := budget.Load(t.Context(), b.Region("top"), func(s scope.Scope) (*level, error) {
			ring = save.NewRing(s, 3, levels[0].state, levels[1].state)
			return &levels[0], nil
		})
		require.NoError(t, err)
		return levels, ring
	}
	levels, ring := begin()
	others, other := begin()
	require.NoError(t, ring.Take(1))
	require.NoError(t, other.Take(1))
	levels[0].room.Tick = 11
	levels[1].room.Tick = 12
	f, h := levels[1].frogs.Get()
	f.X = 13
	require.NoError(t, ring.Take(2))
	delta, err := ring.Delta(nil, 1, 2)
	require.NoError(t, err)
	_, err = other.Apply(delta)
	require.NoError(t, err)
	require.NoError(t, other.Restore(t.Context(), 2))
	assert.Equal(t, []uint64{11, 12}, []uint64{others[0].room.Tick, others[1].room.Tick})
	assert.Equal(t, int32(13), others[1].frogs.At(h).X)

	image := save.Image(other, 2)
	end := save.ControlOf(other).To
	image[end] = 1 // between the two
	require.ErrorContains(t, save.Hold(other, 2, image), "the padding after it isn't zeros")
}

// TestDeltaNoAllocations: Delta and Apply don't allocate on the Go heap.
func TestDeltaNoAllocations(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 3)
	require.NoError(t, p.ring.Take(0))
	delta := make([]byte, 0, 2*p.ring.Size())
	n := uint64(0)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		n++
		p.room.Spawned += n << 20
		if err := p.ring.Take(n); err != nil {
			t.Error(err)
		}
		var err error
		if delta, err = p.ring.Delta(delta[:0], n-1, n); err != nil {
			t.Error(err)
		}
		if _, err = p.ring.Apply(delta); err != nil {
			t.Error(err)
		}
	}))
}

// BenchmarkDelta compares a delta of 1.7 MB with 3,000 writes with a copy of the same bytes.
func BenchmarkDelta(b *testing.B) {
	from, to := scattered()
	scratch, dst := make([]byte, len(from)), make([]byte, 0, len(from))
	copied, made, applied := time.Hour, time.Hour, time.Hour
	for b.Loop() {
		begin := time.Now()
		copy(scratch, from)
		one := time.Now()
		dst = save.AppendChanges(dst[:0], from, to)
		two := time.Now()
		save.ApplyChanges(scratch, dst)
		applied = min(applied, time.Since(two))
		copied, made = min(copied, one.Sub(begin)), min(made, two.Sub(one))
	}
	require.True(b, bytes.Equal(to, scratch))
	b.ReportMetric(float64(copied.Nanoseconds()), "copy-ns")
	b.ReportMetric(float64(made)/float64(copied), "delta/copy")
	b.ReportMetric(float64(applied)/float64(copied), "apply/copy")
	b.ReportMetric(float64(len(dst)+save.DeltaHeader), "bytes")
}
