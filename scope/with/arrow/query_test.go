package arrow_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	with "github.com/upfront-mem/upfront/scope/with/arrow"
	"github.com/upfront-mem/upfront/tests/step"
)

// doing returns a query that does a work and stores its result.
func doing(w work, in columns, got *string) with.Func {
	return func(ctx context.Context, mem memory.Allocator) (err error) {
		*got, err = w.do(ctx, mem, in)
		return err
	}
}

// steps yields sizes from a little up to most, further apart as they grow.
func steps(most uint64, yield func(size uint64) (more bool)) {
	by := step.Pick[uint64](2, 2, 30)
	for size := uint64(64); size <= most; size += max(64, size/by&^63) {
		if !yield(size) {
			return
		}
	}
}

// TestFullAtManySizes: each work, with ever more memory, is full until its result is that of
// arrow's default. Each time all memory comes back, the next work runs as usual, and its columns
// lose their last reference at Release.
func TestFullAtManySizes(t *testing.T) {
	b := open(t, 1, 4*budget.MiB)
	n := step.Pick(90, 90, 600)
	for name, place := range places {
		for i, w := range works {
			t.Run(fmt.Sprintf("%s/%d %s", name, i, w.name), func(t *testing.T) {
				outside := memory.NewCheckedAllocator(memory.DefaultAllocator)
				in := newColumns(t, outside, n)
				want, err := w.do(context.Background(), memory.DefaultAllocator, in)
				require.NoError(t, err)
				full, served := 0, 0
				steps(2*budget.MiB, func(size uint64) bool {
					var got string
					err := place(t, b.Scratch(0, 0), size, doing(w, in, &got))
					require.Zero(t, b.Scratch(0, 0).Stats().Used)
					if err == nil {
						require.Equal(t, want, got, size)
						served++
						return served < 3
					}
					require.ErrorIs(t, err, budget.ErrFull, size)
					var told *scope.FullError
					require.Equal(t, name == "scope", errors.As(err, &told), err)
					full++
					return true
				})
				assert.Positive(t, full)
				assert.Equal(t, 3, served)
				in.release()
				assert.Zero(t, outside.CurrentAlloc(), "of the columns")
			})
		}
	}
}

// TestFailEach refuses each request of each work once; in a checked build the later ones are served
// again.
func TestFailEach(t *testing.T) {
	in := newColumns(t, memory.DefaultAllocator, 90)
	defer in.release()
	for _, w := range works {
		plan := budget.Plan{Name: "pond", Scratch: budget.ScratchPlan{Workers: 1, Each: 1, Size: 256 * budget.KiB}}
		budgettest.FailEach(t, plan, func(b *budget.Budget) error {
			var got string
			return with.Query(context.Background(), b.Scratch(0, 0), w.name, doing(w, in, &got))
		})
	}
}

// TestFullIsTheScopes: the error names the scope, the bytes and the key, and advises a size that is
// enough.
func TestFullIsTheScopes(t *testing.T) {
	var err error
	query := func(b *budget.Budget) error {
		return with.Query(context.Background(), b.Scratch(0, 0), "old frogs",
			func(_ context.Context, mem memory.Allocator) error {
				mem.Allocate(1000)
				mem.Allocate(100_000)
				return nil
			})
	}
	b := open(t, 1, 64*budget.KiB)
	err = query(b)
	var full *scope.FullError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, "old frogs", full.Scope)
	assert.Equal(t, "scratch.size", full.Key)
	assert.Equal(t, uint64(100_032), full.Asked, "in lines")
	assert.NoError(t, query(open(t, 1, full.Need)))
	assert.Error(t, query(open(t, 1, full.Need-64)))
}

// TestFirstFullEnds: requests after a full error are also refused, however the query handled the
// first full. Query returns the full, followed by the query's own error.
func TestFirstFullEnds(t *testing.T) {
	p := open(t, 1, 64*budget.KiB).Scratch(0, 0)
	errOwn := errors.New("its own")
	values := array.NewInt64Builder(memory.DefaultAllocator)
	values.AppendEmptyValues(10_000)
	large := values.NewArray()
	defer large.Release()
	for name, place := range places {
		err := place(t, p, 8192, func(ctx context.Context, mem memory.Allocator) error {
			assert.Panics(t, func() { mem.Allocate(1 << 20) })
			assert.Panics(t, func() { mem.Allocate(1) })
			_, err := compute.CallFunction(ctx, "is_null", nil, compute.NewDatum(int32(7)))
			assert.ErrorIs(t, err, budget.ErrFull)
			return nil
		})
		assert.ErrorIs(t, err, budget.ErrFull, name)
		err = place(t, p, 8192, func(ctx context.Context, mem memory.Allocator) error {
			_, err := array.Concatenate([]arrow.Array{large}, mem)
			return fmt.Errorf("while it makes one of two: %w", err)
		})
		assert.ErrorIs(t, err, budget.ErrFull, name)
		assert.ErrorContains(t, err, "while it makes one of two", name)
		err = place(t, p, 8192, func(_ context.Context, mem memory.Allocator) error {
			assert.Panics(t, func() { mem.Allocate(1 << 20) })
			return errOwn
		})
		assert.ErrorIs(t, err, budget.ErrFull, name)
		assert.ErrorIs(t, err, errOwn, name)
		err = place(t, p, 8192, func(_ context.Context, mem memory.Allocator) error {
			assert.Panics(t, func() { mem.Allocate(1 << 20) })
			panic("after a full")
		})
		assert.ErrorIs(t, err, budget.ErrFull, name)
		assert.ErrorContains(t, err, "panic: after a full", name)
	}
}

// TestImpossibleSizes: a size that no memory has, or that overflowed, is a full error.
func TestImpossibleSizes(t *testing.T) {
	p := open(t, 1, 64*budget.KiB).Scratch(0, 0)
	for _, size := range []int{1 << 20, math.MaxInt / 2, math.MaxInt, math.MaxInt - 63, -1, -64, math.MinInt} {
		for name, place := range places {
			err := place(t, p, 8192, func(_ context.Context, mem memory.Allocator) error {
				mem.Allocate(size)
				return nil
			})
			assert.ErrorIs(t, err, budget.ErrFull, "%s: %d", name, size)
		}
	}
}

// TestOwnPanics: a panic or Goexit of a query that isn't full goes on, and all memory is released.
func TestOwnPanics(t *testing.T) {
	p := open(t, 1, 64*budget.KiB).Scratch(0, 0)
	for name, place := range places {
		assert.PanicsWithValue(t, "a bug", func() {
			_ = place(t, p, 8192, func(_ context.Context, mem memory.Allocator) error {
				mem.Allocate(100)
				panic("a bug")
			})
		}, name)
		ended := make(chan bool)
		go func() {
			defer close(ended)
			_ = place(t, p, 8192, func(_ context.Context, mem memory.Allocator) error {
				mem.Allocate(100)
				runtime.Goexit()
				return nil
			})
			ended <- true
		}()
		assert.False(t, <-ended, name)
		assert.Zero(t, p.Stats().Used)
		assert.Zero(t, p.Depth())
	}
}

// TestFullOnOwnGoroutine: a full ends the query's own goroutine with its deferred calls, and the
// query.
func TestFullOnOwnGoroutine(t *testing.T) {
	p := open(t, 1, 64*budget.KiB).Scratch(0, 0)
	for name, place := range places {
		err := place(t, p, 8192, func(_ context.Context, mem memory.Allocator) error {
			var done sync.WaitGroup
			for range 4 {
				done.Go(func() {
					for range 1000 {
						mem.Allocate(100)
					}
				})
			}
			done.Wait()
			return nil
		})
		assert.ErrorIs(t, err, budget.ErrFull, name)
	}
}

// TestQueryInAQuery: each query has its own full. The outer one can't allocate while the inner is
// open, and gets a misuse.
func TestQueryInAQuery(t *testing.T) {
	p := open(t, 1, 64*budget.KiB).Scratch(0, 0)
	query := func(fn func(outer, inner memory.Allocator)) (outside, inside error) {
		outside = with.Query(context.Background(), p, "outer", func(ctx context.Context, outer memory.Allocator) error {
			outer.Allocate(100)
			inside = with.Query(ctx, p, "inner", func(_ context.Context, inner memory.Allocator) error {
				fn(outer, inner)
				return nil
			})
			outer.Allocate(100)
			return nil
		})
		return outside, inside
	}
	outside, inside := query(func(_, inner memory.Allocator) { inner.Allocate(1 << 20) })
	assert.NoError(t, outside)
	assert.ErrorIs(t, inside, budget.ErrFull)
	outside, inside = query(func(outer, _ memory.Allocator) { outer.Allocate(100) })
	assert.ErrorContains(t, outside, `BUG: allocation in scope "outer"`)
	assert.NoError(t, inside)
	assert.Zero(t, p.Stats().Used)
}

// TestUsedAfterItsEnd: a kept allocator is refused by name, and so are a closed and a covered
// scope; a late release does nothing.
func TestUsedAfterItsEnd(t *testing.T) {
	p := open(t, 1, 64*budget.KiB).Scratch(0, 0)
	for name, place := range places {
		var kept memory.Allocator
		var keptCtx context.Context
		var builder *array.Int64Builder
		var block []byte
		require.NoError(t, place(t, p, 8192, func(ctx context.Context, mem memory.Allocator) error {
			kept, keptCtx, builder, block = mem, ctx, array.NewInt64Builder(mem), mem.Allocate(100)
			builder.Append(1)
			return nil
		}), name)
		before := p.Open("another's")
		mark := before.Bytes(4096)
		for range mark {
			copy(mark, "another's")
		}
		for _, use := range []func(){
			func() { kept.Allocate(1) },
			func() { kept.Reallocate(1000, block) },
			func() { builder.Reserve(1000) },
		} {
			err := caught(use)
			require.Error(t, err, name)
			assert.ErrorIs(t, err, scope.ErrClosed)
			assert.ErrorContains(t, err, "arrow: BUG: a request of a query that has ended")
		}
		_, err := compute.CallFunction(keptCtx, "is_null", nil, compute.NewDatum(int32(7)))
		assert.ErrorIs(t, err, scope.ErrClosed)
		kept.Free(block)
		kept.Free(nil)
		builder.Release()
		assert.True(t, strings.HasPrefix(string(mark), "another's"))
		assert.NoError(t, before.Close())
	}
	allocates := func(_ context.Context, mem memory.Allocator) error {
		mem.Allocate(1)
		return nil
	}
	closed := p.Open("closed")
	require.NoError(t, closed.Close())
	err := caught(func() { _ = with.Query(context.Background(), closed, "query", allocates) })
	assert.ErrorContains(t, err, "BUG: Open in a closed scope")
	assert.ErrorIs(t, with.In(context.Background(), closed, allocates), scope.ErrClosed)
	covered := p.Open("covered")
	above := p.Open("above")
	assert.ErrorContains(t, with.In(context.Background(), covered, allocates), `BUG: allocation in scope "covered"`)
	assert.NoError(t, above.Close())
	assert.ErrorContains(t, covered.Close(), `BUG: allocation in scope "covered"`)
}

// TestHeapEndedBehind: a heap that is reset under a query refuses the query's blocks, and the query
// reports it.
func TestHeapEndedBehind(t *testing.T) {
	p := open(t, 1, 64*budget.KiB).Scratch(0, 0)
	s := p.Open("heap")
	heap, err := arena.NewHeap(s.BytesUnzeroed(32*budget.KiB, 64), 0)
	require.NoError(t, err)
	for name, use := range map[string]func(mem memory.Allocator, block []byte){
		"Free":    func(mem memory.Allocator, block []byte) { mem.Free(block) },
		"Realloc": func(mem memory.Allocator, block []byte) { mem.Reallocate(1000, block) },
		"":        func(memory.Allocator, []byte) {},
	} {
		err = with.InHeap(context.Background(), heap, func(_ context.Context, mem memory.Allocator) error {
			block := mem.Allocate(100)
			heap.Reset()
			use(mem, block)
			return nil
		})
		assert.ErrorContains(t, err, "BUG: Heap."+name)
		assert.Equal(t, 1, strings.Count(err.Error(), "BUG"), err)
		assert.NotErrorIs(t, err, budget.ErrFull)
		assert.Zero(t, heap.Stats().Used)
	}
	assert.NoError(t, s.Close())
}

func caught(fn func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	fn()
	return nil
}

// TestInAScope: arrays live as long as the scope, with other allocations in it. A scope that closes
// itself within a query doesn't get the rest.
func TestInAScope(t *testing.T) {
	b := open(t, 1, 64*budget.KiB)
	p := b.Scratch(0, 0)
	s := p.Open("level")
	var ages *array.Int32
	require.NoError(t, with.In(context.Background(), s, func(_ context.Context, mem memory.Allocator) error {
		builder := array.NewInt32Builder(mem)
		for i := range 100 {
			builder.Append(int32(i))
			s.Bytes(3) // the next block can't grow in place
		}
		ages = builder.NewInt32Array()
		return nil
	}))
	s.Bytes(1000)
	for i := range 100 {
		require.Equal(t, int32(i), ages.Value(i))
	}
	require.NoError(t, s.Close())
	s = p.Open("level")
	err := with.In(context.Background(), s, func(_ context.Context, mem memory.Allocator) error {
		mem.Free(mem.Allocate(1000))
		require.NoError(t, s.Close())
		mem.Allocate(100) // it fits in the freed block
		return nil
	})
	assert.ErrorIs(t, err, scope.ErrClosed)
}

// TestFinalRoom: the newest blocks of a scope are freed and grow in place; other blocks move, and
// their old bytes stay taken.
func TestFinalRoom(t *testing.T) {
	b := open(t, 1, 64*budget.KiB)
	p := b.Scratch(0, 0)
	require.NoError(t,
		with.Query(context.Background(), p, "query", func(_ context.Context, mem memory.Allocator) error {
			used := func() uint64 { return p.Stats().Used }
			first := mem.Allocate(64)
			start := used()
			second := mem.Allocate(100)
			assert.Equal(t, start+128, used())
			second = mem.Reallocate(200, second)
			assert.Equal(t, start+256, used(), "in place")
			second = mem.Reallocate(64, second)
			third := mem.Allocate(192)
			assert.Equal(t, start+256, used(), "what the second doesn't need")
			mem.Free(third)
			mem.Free(second)
			mem.Free(second)
			assert.Len(t, mem.Allocate(256), 256)
			assert.Equal(t, start+256, used())
			first = mem.Reallocate(128, first)
			assert.Equal(t, start+256+128, used(), "a copy")
			mem.Free(first[:0])
			mem.Free(make([]byte, 64))
			mem.Free([]byte{})
			assert.NotNil(t, mem.Allocate(0))
			return nil
		}))
}

// TestRandom: blocks that are made, grow, shrink and go at random begin as zeros, keep their bytes,
// and don't overlap.
func TestRandom(t *testing.T) {
	p := open(t, 1, budget.MiB).Scratch(0, 0)
	rounds := step.Pick(20, 20, 200)
	for name, place := range places {
		for seed := range uint64(rounds) {
			random := rand.New(rand.NewPCG(seed, 7))
			err := place(t, p, 128*budget.KiB, func(_ context.Context, mem memory.Allocator) error {
				exercise(t, random, mem)
				return nil
			})
			if err != nil {
				require.ErrorIs(t, err, budget.ErrFull, "%s, seed %d", name, seed)
			}
		}
	}
}

// exercise holds blocks filled with one value each, which differ from block to block.
func exercise(t *testing.T, random *rand.Rand, mem memory.Allocator) {
	type held struct {
		bytes []byte
		value byte
	}
	var blocks []held
	check := func(h held, from, to int, want byte) {
		for _, b := range h.bytes[from:to] {
			if b != want {
				require.Equal(t, want, b)
			}
		}
	}
	fill := func(h held) {
		for i := range h.bytes {
			h.bytes[i] = h.value
		}
	}
	for step := range 300 {
		size := random.IntN(1 << random.IntN(12))
		i := len(blocks) - 1
		if i >= 0 && random.IntN(2) == 0 {
			i = random.IntN(len(blocks))
		}
		switch what := random.IntN(6); {
		case what < 3 || i < 0:
			h := held{mem.Allocate(size), byte(step%255 + 1)}
			require.Len(t, h.bytes, size)
			if size > 0 {
				require.Zero(t, uintptr(unsafe.Pointer(&h.bytes[0]))%64)
			}
			check(h, 0, size, 0)
			fill(h)
			blocks = append(blocks, h)
		case what < 5:
			h := blocks[i]
			before := len(h.bytes)
			h.bytes = mem.Reallocate(size, h.bytes)
			require.Len(t, h.bytes, size)
			check(h, 0, min(before, size), h.value)
			fill(h)
			blocks[i] = h
		default:
			mem.Free(blocks[i].bytes)
			blocks = append(blocks[:i], blocks[i+1:]...)
		}
		for _, h := range blocks {
			check(h, 0, len(h.bytes), h.value)
		}
	}
}

// TestManyAtOnce: queries on many goroutines, some of them full, are independent: each in scratch
// on loan, and all in one heap.
func TestManyAtOnce(t *testing.T) {
	b := open(t, 5, 512*budget.KiB)
	in := newColumns(t, memory.DefaultAllocator, 90)
	defer in.release()
	rounds := step.Pick(3, 3, 20)
	want := make([]string, len(works))
	for i, w := range works {
		var err error
		want[i], err = w.do(context.Background(), memory.DefaultAllocator, in)
		require.NoError(t, err)
	}
	judge := func(i int, got string, err error) {
		if err == nil {
			assert.Equal(t, want[i], got)
		} else {
			assert.ErrorIs(t, err, budget.ErrFull)
		}
	}
	p := b.Scratch(0, 0).Open("heap")
	heap, err := arena.NewHeap(p.BytesUnzeroed(100*budget.KiB, 64), 0)
	require.NoError(t, err)
	shared, err := heap.Shared()
	require.NoError(t, err)
	before := heap.Stats().Used
	var done sync.WaitGroup
	for worker := range 4 {
		done.Go(func() {
			for round := range rounds * len(works) {
				i := (round*5 + worker) % len(works)
				lease, err := b.Lease(context.Background())
				if !assert.NoError(t, err) {
					return
				}
				var got string
				err = left(lease.Scratch(0), uint64(1+round%20)*2048, func(s scope.Scope) error {
					return with.Query(context.Background(), s, "query", doing(works[i], in, &got))
				})
				judge(i, got, err)
				assert.NoError(t, lease.Release())
				judge(i, got, with.InHeap(context.Background(), shared, doing(works[i], in, &got)))
			}
		})
	}
	done.Wait()
	assert.Equal(t, before, heap.Stats().Used)
	assert.NoError(t, p.Close())
}

// TestLeftAtWork: a query that ends while its goroutine is in a call of compute waits for that
// call; later calls are refused.
func TestLeftAtWork(t *testing.T) {
	p := open(t, 1, 4*budget.MiB).Scratch(0, 0)
	values := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range 100_000 {
		values.Append(int64(i) | 1)
	}
	column := compute.NewDatum(values.NewArray())
	rounds := step.Pick(50, 50, 300)
	for range rounds {
		began, ended := make(chan bool), make(chan error)
		err := with.Query(context.Background(), p, "query", func(ctx context.Context, _ memory.Allocator) error {
			go func() {
				close(began)
				for {
					sum, err := compute.Add(ctx, compute.ArithmeticOptions{}, column, column)
					if err != nil {
						ended <- err
						return
					}
					sum.Release()
				}
			}()
			<-began
			runtime.Gosched()
			return nil
		})
		if err != nil {
			require.ErrorIs(t, err, budget.ErrFull)
		}
		next := p.Open("next")
		bytes := next.Bytes(int(next.Free()))
		require.Error(t, <-ended)
		for _, b := range bytes {
			if b != 0 {
				require.Fail(t, "somebody wrote to what another has")
			}
		}
		require.NoError(t, next.Close())
	}
}
