package budget_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// givesPages reports whether a budget of this build gives pages back.
const givesPages = !arena_c.Checked && !arena_c.Race

// trimPlan is a plan whose arenas have many pages.
func trimPlan() budget.Plan {
	return budget.Plan{
		Name: "trim",
		Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB},
			{Name: "room", Size: 256 * budget.KiB, Slots: 3}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 128 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 3, Each: 1, Size: 128 * budget.KiB},
		Limits:  budget.Limits{Scopes: 8, Pools: 2, Owned: 16},
	}
}

// absent returns the bytes of the budget's pages that aren't present.
func absent(t *testing.T, b *budget.Budget) uint64 {
	t.Helper()
	pages, ok := b.Missing()
	if !ok {
		t.Skip("this system doesn't count missing pages: on Linux, go test ./budget runs it")
	}
	return uint64(pages * os.Getpagesize())
}

func trim(t *testing.T, b *budget.Budget) budget.Trimmed {
	t.Helper()
	trimmed, err := b.Trim(background)
	require.NoError(t, err)
	assert.Equal(t, givesPages, trimmed.Keeps == "", trimmed.Keeps)
	return trimmed
}

// scribble fills bytes with a pattern and returns a check of it.
func scribble(bytes []byte, seed byte) (check func(t *testing.T)) {
	for i := range bytes {
		bytes[i] = byte(i>>8) ^ byte(i) ^ seed | 1
	}
	return func(t *testing.T) {
		t.Helper()
		for i := range bytes {
			if bytes[i] != byte(i>>8)^byte(i)^seed|1 {
				require.Fail(t, "a byte changed", "byte %d of %d", i, len(bytes))
			}
		}
	}
}

func TestTrimGivesFreePagesBack(t *testing.T) {
	b := open(t, trimPlan())
	require.True(t, b.Report().Prefaulted)
	require.Zero(t, absent(t, b))
	var checks []func(*testing.T)
	mustLoad(t, b, "level", func(s scope.Scope) { checks = append(checks, scribble(s.BytesUnzeroed(300_000, 64), 1)) })
	room := acquire(t, b)
	mustLoadRegion(t, room, func(s scope.Scope) { checks = append(checks, scribble(s.BytesUnzeroed(50_000, 64), 2)) })
	checks = append(checks, scribble(b.Frame().BytesUnzeroed(20_000, 64), 3))
	numbered := b.Scratch(0, 0).Open("numbered")
	defer func() { require.NoError(t, numbered.Close()) }()
	checks = append(checks, scribble(numbered.BytesUnzeroed(30_000, 64), 4))
	lease, err := b.Lease(background)
	require.NoError(t, err)

	resident := b.Report().Resident
	trimmed := trim(t, b)
	assert.Equal(t, 1, trimmed.Slots, "the room has an owner")
	assert.Equal(t, 1, trimmed.Leases)
	for _, check := range checks {
		check(t)
	}
	page := uint64(os.Getpagesize())
	want := budget.MiB - 300_000 + 2*256*budget.KiB + 2*128*budget.KiB - 20_000 + 2*128*budget.KiB - 30_000
	if givesPages && !arena_c.Asan { // else the bytes are at other addresses
		assert.InDelta(t, want, trimmed.Bytes, float64(4*page), "whole pages, and scopes of each arena")
	}
	if !givesPages {
		assert.Zero(t, trimmed.Bytes)
		assert.Equal(t, "trimmed nothing: "+trimmed.Keeps, trimmed.String())
	}
	assert.Equal(t, trimmed.Bytes, absent(t, b), "exactly these are not present")
	assert.Equal(t, resident-trimmed.Bytes, b.Published().Resident, "Trim measured")
	assert.Equal(t, resident-trimmed.Bytes, b.Report().Resident)
	assert.Zero(t, trim(t, b).Bytes, "they went back already")

	own, err := room.Trim(background)
	require.NoError(t, err)
	if givesPages && !arena_c.Asan {
		assert.InDelta(t, 256*budget.KiB-50_000, own.Bytes, float64(2*page), "its owner trims it")
	}
	require.NoError(t, lease.Release())
	if givesPages {
		assert.EqualValues(t, 128*budget.KiB, trim(t, b).Bytes, "the scratch of the lease")
	}
	require.NoError(t, b.Region("level").Rewind(background))
	require.NoError(t, room.Release(background))
	if givesPages && !arena_c.Asan {
		assert.InDelta(t, 350_000, trim(t, b).Bytes, float64(4*page), "the rest of the regions")
	}
	mustLoad(t, b, "level", func(s scope.Scope) { checks[0] = scribble(s.BytesUnzeroed(900_000, 64), 9) })
	checks[0](t)
}

func TestTrimRefuses(t *testing.T) {
	b := open(t, trimPlan())
	level := b.Region("level")
	room := acquire(t, b)
	mustLoadRegion(t, room, func(s scope.Scope) {
		_, err := room.Trim(background)
		assert.EqualError(t, err, `budget "trim": Trim of region room 0 refused during a Load of region room 0; `+
			`call it when that has returned: upfront: a load, rewind or close is at work`)
	})
	mustLoad(t, b, "level", func(s scope.Scope) {
		_, err := b.Trim(background)
		assert.EqualError(t, err,
			`budget "trim": Trim refused during a Load of region level; call it when that has returned: `+
				`upfront: a load, rewind or close is at work`)
		_, err = level.Trim(background)
		assert.ErrorIs(t, err, budget.ErrLoading)
		_, err = level.In(s).Trim(background)
		assert.ErrorIs(t, err, budget.ErrLoading)
		_, err = room.Trim(background)
		assert.ErrorContains(t, err,
			`refused during a Load of region level, on which room 0 stands; in the function of that load call room.In(s).Trim(ctx) with its scope s`)
		_, err = room.In(s).Trim(background)
		assert.NoError(t, err, "a region above, with the proof")
	})

	reader := level.Reader("worker")
	require.True(t, reader.Pin())
	ctx, cancel := context.WithCancel(background)
	cancel()
	_, err := b.Trim(ctx)
	assert.ErrorIs(t, err, context.Canceled)
	ctx, cancel = context.WithTimeout(background, 5_000_000)
	defer cancel()
	_, err = level.Trim(ctx)
	assert.ErrorContains(t, err,
		`Trim of region level waited: worker "worker" has pinned region level; nothing has changed`)
	ctx, cancel = context.WithTimeout(background, 5_000_000)
	defer cancel()
	_, err = b.Trim(ctx)
	assert.ErrorContains(t, err, `Trim waited: worker "worker" has pinned region level; nothing has changed`)
	reader.Unpin()
	trim(t, b)

	stale := room
	require.NoError(t, room.Release(background))
	_, err = stale.Trim(background)
	assert.EqualError(t, err, `budget "trim": BUG: Trim of region room 0, which was released: `+
		budget.ErrClosed.Error())
	assert.ErrorContains(t, stale.Rewind(background), `Rewind of region room 0, which was released`,
		"in the same words")
	require.NoError(t, b.Close())
	_, err = b.Trim(background)
	assert.ErrorIs(t, err, budget.ErrClosed)
	_, err = level.Trim(background)
	assert.ErrorIs(t, err, budget.ErrClosed)
	assert.Contains(t, panics(t, func() { _, _ = budget.Region{}.Trim(background) }), "zero Region")
}

func TestTrimFromAFinalizer(t *testing.T) {
	plan := trimPlan()
	b := open(t, plan)
	var errs []error
	try := scope.Object[frog](func(*frog) error {
		_, err := b.Trim(background)
		errs = append(errs, err)
		_, err = b.Region("level").Trim(background)
		errs = append(errs, err)
		return nil
	})
	mustLoad(t, b, "level", func(s scope.Scope) { try.New(s) })
	require.NoError(t, b.Region("level").Rewind(background))
	require.Len(t, errs, 2)
	assert.ErrorIs(t, errs[0], budget.ErrLoading)
	assert.ErrorIs(t, errs[1], budget.ErrLoading)
	try.New(b.Frame())
	require.NoError(t, b.NextFrame())
	require.NoError(t, b.NextFrame())
	require.Len(t, errs, 4)
	assert.ErrorContains(t, errs[2], "Trim from a finalizer of frame 0")
	assert.NoError(t, errs[3], "a region isn't the frame")
}

func TestTrimOfPagesThatThePlanHolds(t *testing.T) {
	plan := trimPlan()
	plan.Pages.Prefault = budget.Required
	b := open(t, plan)
	want := `budget "trim": Trim refused: pages.prefault is "required", so every page stays present; set pages.prefault to "wished" or "off"`
	_, err := b.Trim(background)
	assert.EqualError(t, err, want)
	_, err = b.Region("level").Trim(background)
	assert.ErrorContains(t, err, `Trim of region level refused: pages.prefault`)
	var heap arena.Heap
	mustLoad(t, b, "level", func(s scope.Scope) {
		heap, err = arena.NewHeap(s.BytesUnzeroed(256*budget.KiB, 64), 0)
		require.NoError(t, err)
	})
	bytes, err := heap.Trim()
	assert.Zero(t, bytes)
	if !arena_c.Checked {
		assert.EqualError(t, err, want)
	}
	assert.Zero(t, absent(t, b))
	plan.Regions[0].Trim = budget.TrimEmpty
	_, err = budget.Open(plan)
	assert.ErrorContains(t, err, `regions[0].trim`)
	assert.ErrorContains(t, err, `pages.prefault`)

	plan.Pages.Prefault, plan.Pages.Lock = budget.Off, budget.Wished
	if arena_c.Race {
		return
	}
	step.Machine(t, step.LockedMemory(4*budget.MiB))
	locked := open(t, plan)
	line := fmt.Sprint(locked.Report().NotGranted)
	if givesPages {
		assert.NotContains(t, line, "pages.lock: ")
	}
	assert.Contains(t, line, "regions[0].trim: ")
	_, err = locked.Trim(background)
	assert.EqualError(t, err,
		`budget "trim": Trim refused: pages.lock is in force, so every page stays present; set pages.lock to "off"`)
	require.NoError(t, locked.Region("level").Rewind(background))
	mustLoad(t, locked, "level", nil)
	require.NoError(t, locked.Region("level").Rewind(background), "trim: empty does nothing")
	assert.Zero(t, absent(t, locked))
}

// TestTrimmedText: the lines of the docs.
func TestTrimmedText(t *testing.T) {
	const bytes = 12 * budget.MiB
	assert.Equal(t, "trimmed 12288KiB; skipped 2 slots and the scratch of 1 lease",
		budget.Trimmed{Bytes: bytes, Slots: 2, Leases: 1}.String())
	assert.Equal(t, "trimmed only 12288KiB, of C's malloc: none", budget.Trimmed{Bytes: bytes, Keeps: "none"}.String())
}

func TestTrimOfACallersBlock(t *testing.T) {
	plan := trimPlan()
	need, err := plan.Need()
	require.NoError(t, err)
	b, err := budget.OpenIn(arena.NewBlock(int(need), budget.MiB), plan)
	require.NoError(t, err)
	defer b.Close()
	trimmed, err := b.Trim(background)
	require.NoError(t, err)
	assert.Equal(t, budget.Trimmed{Keeps: "the pages of OpenIn's block are the caller's"}, trimmed)
}

func TestTrimWithAFaultOfTheSystem(t *testing.T) {
	if !givesPages {
		t.Skip("this build returns no pages: go test ./budget runs it")
	}
	plan := trimPlan()
	plan.Regions[0].Trim = budget.TrimEmpty
	b := open(t, plan)
	for n := 1; ; n++ {
		restore := platform.InjectFault("discard", n)
		_, err := b.Trim(background)
		if !restore() {
			require.NoError(t, err)
			require.Equal(t, 1+1+3+2+3, n, "level, 3 rooms, 2 buffers, 3 scratch arenas were each refused once")
			break
		}
		require.ErrorContains(t, err, `budget "trim": Trim of `)
		require.ErrorContains(t, err, "injected fault")
	}
	mustLoad(t, b, "level", func(s scope.Scope) { scribble(s.BytesUnzeroed(500_000, 64), 1) })
	restore := platform.InjectFault("discard", 1)
	require.NoError(t, b.Region("level").Rewind(background), "an emptied region is empty")
	require.True(t, restore())
	assert.Contains(t, fmt.Sprint(b.Report().Errors), `budget "trim": trim of region level: platform: discard`)
	_, err := b.Lease(background)
	require.NoError(t, err, "no worker is lost")
}

// TestTrimModel: any blocks keep their bytes over any trims, in a heap, under a lock, and in heaps
// on bytes that may have another use.
func TestTrimModel(t *testing.T) {
	plan := trimPlan()
	plan.Regions[0].Size = 8 * budget.MiB
	b := open(t, plan)
	var heap arena.Heap
	var shared arena.Shared
	mustLoad(t, b, "level", func(s scope.Scope) {
		var err error
		heap, err = arena.NewHeap(s.BytesUnzeroed(2*budget.MiB, 64), 64)
		require.NoError(t, err)
		under, err := arena.NewHeap(s.BytesUnzeroed(2*budget.MiB, 64), 64)
		require.NoError(t, err)
		shared, err = under.Shared()
		require.NoError(t, err)
		heap.MayLive()
		shared.MayLive()
	})
	type block struct {
		bytes []byte
		check func(*testing.T)
		of    arena.Reallocator
	}
	var blocks []block
	var back uint64
	r := rand.New(rand.NewPCG(1, 2))
	for step := range 4000 {
		switch r.IntN(40) {
		case 0:
			back += trim(t, b).Bytes
		case 1:
			n, err := heap.Trim()
			require.NoError(t, err)
			back += n
		case 2:
			n, err := shared.Trim()
			require.NoError(t, err)
			back += n
		case 3:
			n, err := b.Region("level").Trim(background)
			require.NoError(t, err)
			back += n.Bytes
		default:
			if len(blocks) > 0 && r.IntN(9) < 5-4*(step/1000%2) {
				i := r.IntN(len(blocks))
				blocks[i].check(t)
				require.NoError(t, blocks[i].of.Free(unsafe.Pointer(&blocks[i].bytes[0])))
				blocks[i] = blocks[len(blocks)-1]
				blocks = blocks[:len(blocks)-1]
				continue
			}
			size := 1 + r.IntN(1<<(4+r.IntN(13)))
			of := []arena.Reallocator{heap, shared}[r.IntN(2)]
			if p := of.Alloc(uint64(size), 16<<r.IntN(9)); p != nil {
				bytes := unsafe.Slice((*byte)(p), size)
				blocks = append(blocks, block{bytes, scribble(bytes, byte(step)), of})
			}
		}
	}
	for _, x := range blocks {
		x.check(t)
		require.NoError(t, x.of.Free(unsafe.Pointer(&x.bytes[0])))
	}
	require.NoError(t, heap.Err())
	require.NoError(t, shared.Err())
	require.NoError(t, b.Region("level").Rewind(background))
	assert.Equal(t, givesPages, back > 0, "%d bytes went back", back)
}

// TestTrimOfAHeap: a heap that is empty again gives back all but its first and last pages.
func TestTrimOfAHeap(t *testing.T) {
	b := open(t, trimPlan())
	outside, err := arena.NewHeap(arena.NewBlock(budget.MiB, 64), 0)
	require.NoError(t, err)
	bytes, err := outside.Trim()
	require.NoError(t, err)
	assert.Zero(t, bytes, "its block is the collector's")
	var heap arena.Heap
	var buddy arena.Buddy
	mustLoad(t, b, "level", func(s scope.Scope) {
		heap, err = arena.NewHeap(s.BytesUnzeroed(512*budget.KiB, 64), 256)
		require.NoError(t, err)
		buddy, err = arena.NewBuddy(s.BytesUnzeroed(128*budget.KiB, 64), 64)
		require.NoError(t, err)
	})
	lock, err := buddy.Shared()
	require.NoError(t, err)
	bytes, err = lock.Trim()
	require.NoError(t, err)
	assert.Zero(t, bytes, "a buddy has no Trim")
	var small []unsafe.Pointer
	for range 200 { // parked when they are freed
		small = append(small, heap.Alloc(1000, 16))
	}
	scribble(unsafe.Slice((*byte)(heap.Alloc(100_000, 16)), 100_000), 1)
	for _, p := range small {
		require.NoError(t, heap.Free(p))
	}
	require.NotZero(t, heap.Stats().Parked, "control: pages are hidden in parked blocks")
	was := heap.Stats().Used
	bytes, err = heap.Trim()
	require.NoError(t, err)
	assert.Equal(t, was, heap.Stats().Used)
	if givesPages && arena_c.Asan { // other addresses, without prefault
		assert.NotZero(t, bytes)
	} else if givesPages {
		assert.InDelta(t, 512*budget.KiB-100_000, bytes, float64(5*os.Getpagesize()))
	} else {
		assert.Zero(t, bytes)
	}
	assert.NotNil(t, heap.Alloc(200_000, 16), "the heap holds as much as before")
	assert.NotNil(t, heap.Alloc(200_000, 16))
	assert.Nil(t, heap.Alloc(100_000, 16))
}

// TestTrimLeavesHeapsOnBytesThatMayHaveAnotherUse: the block of such a heap was freed, but its
// header is there. Its free pages have other contents.
func TestTrimLeavesHeapsOnBytesThatMayHaveAnotherUse(t *testing.T) {
	if arena_c.Asan {
		t.Skip("with -asan the free bytes of a heap are poisoned: go test ./budget runs it")
	}
	type chunk [65 * budget.KiB]byte
	chunks := scope.Plain[chunk]()
	const size = 64 * budget.KiB
	b := open(t, trimPlan())
	var checks []func(*testing.T)
	blockFrom := func(a arena.Allocator, size int) []byte {
		return unsafe.Slice((*byte)(a.Alloc(uint64(size), 64)), size)
	}
	// reuse makes a heap on a block, and then writes to a part that the heap takes for free.
	reuse := func(block []byte) {
		_, err := arena.NewHeap(block, 0)
		require.NoError(t, err)
		checks = append(checks, scribble(block[4*os.Getpagesize():12*os.Getpagesize()], byte(len(checks))))
	}
	mustLoad(t, b, "level", func(s scope.Scope) {
		linear, err := arena.NewLinear(s.BytesUnzeroed(size+1024, 64))
		require.NoError(t, err)
		reuse(blockFrom(linear, size))
		stack, err := arena.NewStack(s.BytesUnzeroed(size+1024, 64))
		require.NoError(t, err)
		reuse(blockFrom(stack, size))
		outer, err := arena.NewHeap(s.BytesUnzeroed(size+4096, 64), 0)
		require.NoError(t, err)
		outer.MayLive()
		reuse(blockFrom(outer, size))
		buddy, err := arena.NewBuddy(s.BytesUnzeroed(4*size, 64), 64)
		require.NoError(t, err)
		buddy.MayLive()
		reuse(blockFrom(buddy, size))
		inChunk := chunks.Pool(s, 2).Get()[:]
		reuse(inChunk[-addressOf(&inChunk[0])&63:][:size])
	})
	trim(t, b)
	for _, check := range checks {
		check(t)
	}
}

// TestTrimWithABuilder: a Builder's values are past the cursor.
func TestTrimWithABuilder(t *testing.T) {
	b := open(t, trimPlan())
	build := scope.Plain[byte]().Build(b.Frame())
	for i := range 50_000 {
		build.Push(byte(i) | 1)
	}
	trim(t, b)
	for i, x := range build.Done() {
		if x != byte(i)|1 {
			require.Equal(t, byte(i)|1, x, "value %d", i)
		}
	}
}

func TestTrimWhenARegionIsEmptied(t *testing.T) {
	plan := trimPlan()
	plan.Regions[0].Trim, plan.Regions[1].Trim = budget.TrimEmpty, budget.TrimEmpty
	b := open(t, plan)
	level, room := b.Region("level"), acquire(t, b)
	if line := fmt.Sprint(b.Report().NotGranted); givesPages {
		assert.NotContains(t, line, "trim")
	} else {
		assert.Contains(t, line, "regions[0].trim: ")
	}
	size := func(n uint64) uint64 {
		if givesPages {
			return n
		}
		return 0
	}
	fill := func(s scope.Scope) { scribble(s.BytesUnzeroed(200_000, 64), 1) }
	mustLoad(t, b, "level", fill)
	assert.Zero(t, absent(t, b), "the first load empties nothing")
	mustLoadRegion(t, room, fill)
	require.NoError(t, room.Release(background))
	assert.Equal(t, size(256*budget.KiB), absent(t, b), "Release")
	require.NoError(t, level.Rewind(background))
	assert.Equal(t, size(budget.MiB+256*budget.KiB), absent(t, b), "Rewind")
	mustLoad(t, b, "level", fill)
	mustLoad(t, b, "level", func(scope.Scope) {
		if givesPages && !arena_c.Asan {
			assert.Equal(t, size(budget.MiB+256*budget.KiB)-uint64(os.Getpagesize()), absent(t, b),
				"a Load, before its function runs: a frog is there")
		}
	})
	_, err := load(b, "level", func(s scope.Scope) error { fill(s); return errLoader })
	require.ErrorIs(t, err, errLoader)
	assert.Equal(t, size(budget.MiB+256*budget.KiB), absent(t, b), "a Load that failed")

	if instrumented {
		return // its checks allocate
	}
	nothing := func(s scope.Scope) (*frog, error) { return frogs.New(s), nil }
	assert.Zero(t, testing.AllocsPerRun(20, func() {
		_, _ = budget.Load(background, level, nothing)
		_ = level.Rewind(background)
	}), "Go allocations")
	assert.Zero(t, testing.AllocsPerRun(20, func() { _, _ = level.Trim(background) }), "of Region.Trim")
}

// TestTrimmedStateBeginsWithZeros: and its pages stay with the system until they are used.
func TestTrimmedStateBeginsWithZeros(t *testing.T) {
	plan := trimPlan()
	plan.Regions[0].Trim, plan.Regions[0].State = budget.TrimEmpty, true
	b := open(t, plan)
	for i := range 4 {
		if i == 3 { // the system refuses: the load itself fills the region with zeros
			defer platform.InjectFault("discard", 1)()
		}
		mustLoad(t, b, "level", func(s scope.Scope) {
			bytes := s.BytesUnzeroed(400_000, 64)
			if !arena_c.Checked && !arena_c.Asan { // where the bytes are at other addresses
				for i := range bytes {
					require.Zero(t, bytes[i], "byte %d", i)
				}
			}
			scribble(bytes, 5)
		})
	}
	require.NoError(t, b.Region("level").Rewind(background))
	mustLoad(t, b, "level", nil)
	if givesPages && !arena_c.Asan {
		assert.GreaterOrEqual(t, absent(t, b), uint64(budget.MiB-2*os.Getpagesize()))
	}
}

// TestTrimBesideOwners: owners of slots and scratch work on while the budget is trimmed.
func TestTrimBesideOwners(t *testing.T) {
	plan := trimPlan()
	plan.Regions[1].Slots, plan.Regions[1].Trim, plan.Scratch.Workers = 8, budget.TrimEmpty, 6
	b := open(t, plan)
	var group sync.WaitGroup
	for id := range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 150 {
				room, err := b.Slots("room").Acquire()
				if !assert.NoError(t, err) {
					return
				}
				var check func(*testing.T)
				_, err = budget.Load(background, room, func(s scope.Scope) (*frog, error) {
					check = scribble(s.BytesUnzeroed(30_000, 64), byte(id))
					return nil, nil
				})
				assert.NoError(t, err)
				lease, err := b.Lease(background)
				assert.NoError(t, err)
				assert.NoError(t, lease.Scratch(0).Do("work", func(s scope.Scope) error {
					scribble(s.BytesUnzeroed(30_000, 64), byte(i))(t)
					return nil
				}))
				if i%3 == 0 {
					_, err = room.Trim(background)
					assert.NoError(t, err)
				}
				assert.NoError(t, lease.Release())
				check(t)
				assert.NoError(t, room.Release(background))
			}
		}()
	}
	over := make(chan struct{})
	go func() { group.Wait(); close(over) }()
	for {
		trim(t, b)
		require.NoError(t, b.NextFrame())
		select {
		case <-over:
			return
		default:
		}
	}
}

func TestTrimIsRareForAStrictBudget(t *testing.T) {
	b := open(t, trimPlan())
	require.NoError(t, b.SealStrict())
	for range 3 {
		require.NoError(t, b.NextFrame())
		if _, err := b.Trim(background); err != nil {
			require.NoError(t, err)
		}
	}
	require.NoError(t, b.NextFrame())
}

// TestTrimCountsAsWritten: the system may not report a page that went back.
func TestTrimCountsAsWritten(t *testing.T) {
	plan := trimPlan()
	plan.Regions[0].Track, plan.Regions[0].Trim = true, budget.TrimEmpty
	b := open(t, plan)
	tracker := b.TrackerOf("level")
	if tracker == nil {
		t.Skip("where the kernel tracks writes, go test ./budget runs it:", b.Report().NotGranted)
	}
	written := func() bool {
		runs, _, err := tracker.Dirty()
		require.NoError(t, err)
		return len(runs) == 1 && runs[0] == platform.PageRun{Size: budget.MiB}
	}
	mustLoad(t, b, "level", func(s scope.Scope) { s.BytesUnzeroed(5000, 64) })
	assert.False(t, written(), "control: a load wrote to two pages")
	trim(t, b)
	assert.True(t, written(), "Budget.Trim")
	_, err := b.Region("level").Trim(background)
	require.NoError(t, err)
	assert.True(t, written(), "Region.Trim")
	assert.False(t, written(), "control: nothing was trimmed")
	require.NoError(t, b.Region("level").Rewind(background))
	assert.True(t, written(), "trim: empty")
}
