package budget_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
)

// hide maps present memory that no plan knows.
func hide(t testing.TB, size int) uintptr {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(b)) })
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

// measuresOutside skips the test in builds with memory of their own.
func measuresOutside(t testing.TB, b *budget.Budget) {
	if o := b.Report().Outside; arena_c.Race || arena_c.Asan {
		assert.Regexp(t, "in a race build the memory is the Go heap's$|^AddressSanitizer maps", o.Unknown)
		assert.Equal(t, budget.Outside{Unknown: o.Unknown}, o)
		t.Skip(o.Unknown + ": go test ./budget runs it")
	}
}

func TestOutsideFindsHiddenMemory(t *testing.T) {
	b := open(t, small())
	measuresOutside(t, b)
	before := b.Report().Outside
	hide(t, 64*budget.MiB)
	for range 10 {
		o := b.Published().Outside
		require.Empty(t, o.Unknown)
		// The runtime may make tables meanwhile: they are part of the error.
		assert.InDelta(t, before.Bytes+64*budget.MiB, o.Bytes,
			256*budget.KiB+float64(o.Error-min(o.Error, before.Error)))
		require.Len(t, o.Largest, 3)
		assert.Regexp(t, "^6[5-9][0-9]{3}KiB anonymous at 0x[0-9a-f]+$", o.Largest[0])
		assert.GreaterOrEqual(t, o.Process, o.Bytes)
	}
}

// TestOutsideLeavesOutEachPart: plans, also in a block of the caller or closed, and the Go heap
// aren't outside.
func TestOutsideLeavesOutEachPart(t *testing.T) {
	measuresOutside(t, open(t, small()))
	plan := small()
	plan.Regions[0].Size = 64 * budget.MiB
	need, err := plan.Need()
	require.NoError(t, err)
	at := hide(t, int(need)+os.Getpagesize())
	b := open(t, small())
	before := b.Report().Outside
	require.GreaterOrEqual(t, before.Bytes, need, "control: the block is hidden until a budget has it")

	block := unsafe.Slice((*byte)(unsafe.Add(nil, at)), need)
	in, err := budget.OpenIn(block, plan)
	require.NoError(t, err)
	now := in.Report().Outside
	assert.InDelta(t, before.Bytes-need, now.Bytes, budget.MiB+float64(now.Error))
	require.NoError(t, in.Close())

	heap, err := budget.OpenIn(make([]byte, need), plan)
	require.NoError(t, err)
	more := make([]byte, 64*budget.MiB)
	clear(more)
	now = heap.Report().Outside
	assert.InDelta(t, before.Bytes, now.Bytes, 16*budget.MiB, "a block within the Go heap")
	assert.NotNil(t, more)
	require.NoError(t, heap.Close())

	big := open(t, plan)
	live := make([]byte, 64*budget.MiB)
	for i := range live {
		live[i] = 1
	}
	now = b.Report().Outside
	assert.InDelta(t, before.Bytes, now.Bytes, budget.MiB+float64(now.Error), "another budget and the Go heap")
	require.NoError(t, big.Close())
	now = b.Report().Outside
	assert.InDelta(t, before.Bytes, now.Bytes, budget.MiB+float64(now.Error), "a closed budget")
	assert.NotNil(t, live)
}

// TestPresentOfCsHeap: free pages of C's heap count if they are present, and memory next to the
// heap doesn't, though it may be of the same mapping.
func TestPresentOfCsHeap(t *testing.T) {
	measuresOutside(t, open(t, small()))
	at := hide(t, 8*budget.MiB)
	page := uint64(os.Getpagesize())
	heap := arena_c.ProcessCounts{Base: at + budget.MiB, Size: 4*budget.MiB - page + 1, Used: 9}
	assert.Equal(t, uint64(4*budget.MiB), budget.PresentOf(heap), "whole pages")
	gone := unsafe.Slice((*byte)(unsafe.Add(nil, at+2*budget.MiB)), budget.MiB)
	require.NoError(t, unix.Madvise(gone, unix.MADV_DONTNEED))
	assert.Equal(t, uint64(3*budget.MiB), budget.PresentOf(heap))
	defer budget.FakeAnonymous(func([]platform.Mapping, []platform.Mapping) ([]platform.Mapping, uint64, error) {
		return nil, 0, errors.ErrUnsupported
	})()
	assert.EqualValues(t, 9, budget.PresentOf(heap), "the system doesn't count pages")
}

func TestOutsideMakesNoGarbage(t *testing.T) {
	b := open(t, small())
	measuresOutside(t, b)
	assert.Zero(t, testing.AllocsPerRun(10, func() { b.LookOutside() }))
}

func TestOutsideOfAKernelWithNames(t *testing.T) {
	b := open(t, small())
	measuresOutside(t, b)
	defer budget.FakeAnonymous(func(list, _ []platform.Mapping) ([]platform.Mapping, uint64, error) {
		return append(list,
			platform.Mapping{Base: 1 << 20, Size: 1 << 20, Present: 600 << 10, Name: "[anon: Go: heap]"},
			platform.Mapping{Base: 2 << 20, Size: 1 << 20, Present: 500 << 10},
			platform.Mapping{Base: 3 << 20, Size: 1 << 20, Present: 400 << 10, Name: "[anon: Go: immortal metadata]"},
			platform.Mapping{Base: 5 << 20, Size: 1 << 20, Present: 7 << 10, Name: "[stack]"},
			platform.Mapping{Base: 7 << 20, Size: 1 << 20, Present: 8 << 10, Name: "[stack]"},
			platform.Mapping{Base: 8 << 20, Size: 1 << 20, Present: 2 << 10, Name: "/memfd:x"},
			platform.Mapping{Base: 9 << 20, Size: 1 << 20, Present: 1 << 10, Name: "[heap]"}), 9 << 20, nil
	})()
	o := b.Report().Outside
	assert.Equal(t, budget.Outside{Bytes: 518 << 10, Process: 9 << 20,
		Largest: []string{"500KiB anonymous at 0x200000", "15KiB [stack]", "2KiB /memfd:x"}}, o)
	assert.Contains(t, b.Report().String(), "\n  outside: 518KiB of the process's 9216KiB resident; "+
		"the largest: 500KiB anonymous at 0x200000, 15KiB [stack], 2KiB /memfd:x\n")
}

func TestOutsideThatIsNotKnown(t *testing.T) {
	b := open(t, small())
	measuresOutside(t, b)
	one := platform.Mapping{Base: 2 << 20, Size: 1 << 20, Present: 500 << 10}
	for name, c := range map[string]struct {
		err     error
		process uint64
		want    string
	}{
		"no /proc": {fmt.Errorf("open /proc/self/maps: %w", unix.ENOENT), 0,
			"open /proc/self/maps: no such file or directory"},
		"a sandbox": {fmt.Errorf("mincore counts no mapping: %w", errors.ErrUnsupported), 0,
			"mincore counts no mapping: unsupported operation"},
		"a sandbox that lies": {nil, 100 << 10,
			"the system counts 512000 bytes of it, but 102400 in the whole process"},
	} {
		t.Run(name, func(t *testing.T) {
			defer budget.FakeAnonymous(func(list, _ []platform.Mapping) ([]platform.Mapping, uint64, error) {
				return append(list, one), c.process, c.err
			})()
			assert.Equal(t, budget.Outside{Unknown: c.want}, b.Report().Outside)
			assert.Contains(t, b.Report().String(), "\n  outside: not known: "+c.want+"\n")
		})
	}
}
