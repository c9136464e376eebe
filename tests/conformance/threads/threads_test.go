package threads_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/conformance/threads"
)

const blockSize = 16 << 10 // sometimes full

// rounds of a hammer: some tenths of a second in each build.
const rounds = 100_000

func newShared(t *testing.T) (arena.Heap, arena.Shared, []byte) {
	t.Helper()
	block := arena.NewBlock(blockSize, 64)
	t.Cleanup(func() { arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), blockSize) })
	heap, err := arena.NewHeap(block, 256)
	require.NoError(t, err)
	s, err := heap.Shared()
	require.NoError(t, err)
	return heap, s, block
}

// isWhole reports whether the heap's counts agree, and all blocks but `live` are free.
func isWhole(heap arena.Heap, block []byte, live uint64) bool {
	heap.Flush()
	h := (*arena_c.Heap)(unsafe.Pointer(unsafe.SliceData(block)))
	ranges := make([]arena_c.Block, len(block)/32)
	n, code := h.Walk(ranges)
	return code == arena_c.OK && h.Live == live && n == live+1
}

// TestThreadsShareAHeap: C's threads and Go's goroutines at once. Each block keeps its contents,
// and all are freed.
func TestThreadsShareAHeap(t *testing.T) {
	heap, s, block := newShared(t)
	library := threads.New(s.Functions())
	var all sync.WaitGroup
	all.Go(func() { assert.Zero(t, library.Hammer(1, rounds)) })
	for name := range 2 {
		all.Go(func() { goHammer(t, s, byte(100+name)) })
	}
	all.Go(func() {
		for range 200 {
			s.Locked(func() { assert.LessOrEqual(t, heap.Stats().Used, heap.Stats().Size) })
			runtime.Gosched()
		}
	})
	all.Wait()
	require.NoError(t, s.Err())
	s.Locked(func() { assert.True(t, isWhole(heap, block, 1), "the lock's own block is live") })
	assert.NotZero(t, heap.Stats().Failed, "it was full at times")
	runtime.KeepAlive(block)
}

// TestThreadsShareABuddy is the same for a buddy, whose sizes are powers of two.
func TestThreadsShareABuddy(t *testing.T) {
	block := arena.NewBlock(blockSize, 64)
	defer arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), blockSize)
	buddy, err := arena.NewBuddy(block, 64)
	require.NoError(t, err)
	s, err := buddy.Shared()
	require.NoError(t, err)
	library := threads.New(s.Functions())
	var all sync.WaitGroup
	all.Go(func() { assert.Zero(t, library.Hammer(1, rounds)) })
	all.Go(func() {
		var kept []unsafe.Pointer // until it is full, even if the threads take turns
		for i := range rounds / 10 {
			p := s.Alloc(100, 16)
			if p != nil {
				kept = append(kept, p)
			}
			if p == nil || i == rounds/10-1 {
				for _, p := range kept {
					assert.NoError(t, s.Free(p))
				}
				kept = kept[:0]
			}
		}
	})
	all.Wait()
	require.NoError(t, s.Err())
	assert.EqualValues(t, 1, buddy.Stats().Live, "the lock's own block")
	assert.NotZero(t, buddy.Stats().Failed, "it was full at times")
}

// goHammer is the same from Go.
func goHammer(t *testing.T, s arena.Shared, name byte) {
	kept := map[unsafe.Pointer]uint64{}
	for i := range uint64(rounds / 10) {
		size := i * 7919 % 300
		if i%64 < 40 {
			p := s.Alloc(size, 16)
			if p == nil {
				continue
			}
			bytes := unsafe.Slice((*byte)(p), size)
			for j := range bytes {
				bytes[j] = name
			}
			kept[p] = size
			continue
		}
		for p, size := range kept {
			for _, b := range unsafe.Slice((*byte)(p), size) {
				if b != name {
					t.Error("a block isn't as it was left")
					return
				}
			}
			had, err := s.SizeOf(p)
			assert.NoError(t, err)
			assert.Equal(t, size, had)
			delete(kept, p)
			q, err := s.Realloc(p, size/2)
			assert.NoError(t, err)
			assert.NoError(t, s.Free(q))
			break
		}
	}
	for p := range kept {
		assert.NoError(t, s.Free(p))
	}
}

// TestWithoutTheLock is the control: the same threads on a heap without a lock. Each try is a
// process, which may crash.
func TestWithoutTheLock(t *testing.T) {
	const seed = "UPFRONT_WITHOUT_LOCK"
	if text := os.Getenv(seed); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		block := arena.NewBlock(blockSize, 64)
		heap, err := arena.NewHeap(block, 0)
		require.NoError(t, err)
		require.Zero(t, threads.Bare(block).Hammer(n, rounds))
		require.True(t, isWhole(heap, block, 0))
		return
	}
	if runtime.NumCPU() == 1 {
		t.Skip("on one processor threads take turns: with two, go test ./tests/conformance/threads runs it")
	}
	for try := range 100 {
		// A list may become a ring, so the time is limited.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestWithoutTheLock$")
		cmd.Env = append(os.Environ(), seed+"="+strconv.Itoa(try+1))
		err := cmd.Run()
		cancel()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			return
		}
		require.NoError(t, err)
	}
	t.Error("nothing fails without the lock")
}

// TestWhatCSays: malloc and its like follow C's rules. A wrong call is counted and changes nothing.
func TestWhatCSays(t *testing.T) {
	heap, s, block := newShared(t)
	library := threads.New(s.Functions())
	p := library.Calloc(10, 10)
	assert.Equal(t, make([]byte, 100), unsafe.Slice((*byte)(p), 100))
	assert.Nil(t, library.Calloc(math.MaxUint/2+1, 2))
	p = library.Realloc(p, 200)
	assert.EqualValues(t, 200, library.Size(p))
	size, err := s.SizeOf(p)
	require.NoError(t, err)
	assert.EqualValues(t, 200, size, "Go's and C's are the same blocks")
	library.Free(nil)
	assert.Zero(t, library.Size(nil))
	empty := library.Malloc(0)
	assert.NotNil(t, empty)
	require.NoError(t, s.Free(empty))
	assert.Nil(t, library.Malloc(math.MaxInt/2), "full")
	require.NoError(t, s.Err())

	library.Free(empty)
	assert.EqualError(t, s.Err(), "arena: BUG: 1 call from C refused; the last: free of "+hex(empty)+": freed already")
	inside := unsafe.Add(p, 16)
	assert.Nil(t, library.Realloc(inside, 1))
	assert.Zero(t, library.Size(inside))
	assert.EqualError(t, s.Err(), "arena: BUG: 3 calls from C refused; the last: size of "+hex(inside)+
		": inside a block, not at its start")
	require.Error(t, s.Free(inside), "Go is told, and not counted")
	assert.ErrorContains(t, s.Err(), "BUG: 3 calls")
	library.Free(p)
	assert.True(t, isWhole(heap, block, 1))
	runtime.KeepAlive(block)
}

func hex(p unsafe.Pointer) string { return "0x" + strconv.FormatUint(uint64(uintptr(p)), 16) }

// TestSharedIsItsHeap runs one program by a heap's methods, by those of a Shared, and by C's
// functions. Each has the same offsets, sizes and refusals.
func TestSharedIsItsHeap(t *testing.T) {
	plain, _, block := newShared(t) // without its lock, so that all three have the same first block
	_, s, ofGo := newShared(t)
	_, c, ofC := newShared(t)
	library := threads.New(c.Functions())
	offset := func(p unsafe.Pointer, of []byte) uintptr {
		if p == nil {
			return 0
		}
		return uintptr(p) - uintptr(unsafe.Pointer(unsafe.SliceData(of)))
	}
	random := rand.New(rand.NewPCG(1, 2))
	var live [][3]unsafe.Pointer
	for range 5000 {
		size, k := random.Uint64N(700), min(random.IntN(2*len(live)+1), len(live))
		var now [3]unsafe.Pointer
		switch {
		case k == len(live):
			now = [3]unsafe.Pointer{plain.Alloc(size, 16), s.Alloc(size, 16), library.Malloc(size)}
		case size%3 == 0:
			require.NoError(t, plain.Free(live[k][0]))
			require.NoError(t, s.Free(live[k][1]))
			library.Free(live[k][2])
			live = slices.Delete(live, k, k+1)
			continue
		default:
			var err error
			now[0], err = plain.Realloc(live[k][0], size)
			require.NoError(t, err)
			now[1], err = s.Realloc(live[k][1], size)
			require.NoError(t, err)
			now[2] = library.Realloc(live[k][2], size)
		}
		require.Equal(t, offset(now[0], block), offset(now[1], ofGo))
		require.Equal(t, offset(now[0], block), offset(now[2], ofC))
		if now[0] == nil {
			continue // full: the old block stays
		}
		if k < len(live) {
			live = slices.Delete(live, k, k+1)
		}
		live = append(live, now)
		had, err := plain.SizeOf(now[0])
		require.NoError(t, err)
		require.Equal(t, had, library.Size(now[2]))
	}
	assert.NotZero(t, plain.Stats().Failed)
	require.NoError(t, c.Err())
}
