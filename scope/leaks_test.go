package scope_test

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/conformance/threads"
)

// leaky is a kind of arena on bytes of a scope, with one block and a function that frees it.
type leaky struct {
	name string
	asks bool // the arena is checked only after MustEmpty
	made func(t *testing.T, block []byte) (free func() error, word func())
}

var leakies = []leaky{
	{"arena.Heap", false, func(t *testing.T, block []byte) (func() error, func()) {
		h := made[arena.Heap](t)(arena.NewHeap(block, 0))
		p := h.Alloc(100, 1)
		return func() error { return h.Free(p) }, h.MayLive
	}},
	{"arena.Heap", false, func(t *testing.T, block []byte) (func() error, func()) {
		h := made[arena.Shared](t)(made[arena.Heap](t)(arena.NewHeap(block, 8)).Shared())
		p := h.Alloc(0, 1)
		return func() error { return h.Free(p) }, h.MayLive
	}},
	{"arena.Buddy", false, func(t *testing.T, block []byte) (func() error, func()) {
		b := made[arena.Buddy](t)(arena.NewBuddy(block, 64))
		p := b.Alloc(100, 1)
		return func() error { return b.Free(p) }, b.MayLive
	}},
	{"arena.Buddy", false, func(t *testing.T, block []byte) (func() error, func()) {
		b := made[arena.Shared](t)(made[arena.Buddy](t)(arena.NewBuddy(block, 64)).Shared())
		p := b.Alloc(100, 1)
		return func() error { return b.Free(p) }, b.MayLive
	}},
	{"arena.Ring", true, func(t *testing.T, block []byte) (func() error, func()) {
		r := made[arena.Ring](t)(arena.NewRing(block))
		p := r.Alloc(100, 1)
		return func() error { return r.Free(p) }, r.MustEmpty
	}},
	{"pool on a block", true, func(t *testing.T, block []byte) (func() error, func()) {
		x := made[arena.BlockPool[point]](t)(arena.NewBlockPool[point](block))
		p := x.Get()
		return func() error { return x.Put(p) }, x.MustEmpty
	}},
}

func first(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// TestBlocksThatNobodyFreed: live blocks at the end of an arena's bytes are reported, unless
// MayLive was called; for some kinds only after MustEmpty.
func TestBlocksThatNobodyFreed(t *testing.T) {
	for _, k := range leakies {
		for _, temp := range []bool{false, true} {
			for _, frees := range []bool{false, true} {
				for _, says := range []bool{false, true} {
					scratch := open(t).Scratch(0, 0)
					s := scratch.Open("s")
					defer s.Close()
					inner, name := s.Open("inner"), "inner"
					if temp {
						inner, name = inner.Temp(6000), "temp"
					}
					release, word := k.made(t, inner.BytesUnzeroed(5000, 64))
					if says {
						word()
					}
					if frees {
						require.NoError(t, release())
					}
					err := inner.Close()
					if frees || says != k.asks {
						require.NoError(t, err, "%s, frees %v, says %v", k.name, frees, says)
						continue
					}
					text := first(err)
					assert.Contains(t, text, `scratch 0.0, scope "`+name+`": a`, "%s", k.name)
					assert.Contains(t, text, k.name+" of 5000 bytes ends with 1 live ")
					assert.Equal(t, arena_c.Checked, strings.Contains(err.Error(), "made at:"), err)
					assert.EqualValues(t, 1, scope.StackOf(s).Stats().Leaks)
				}
			}
		}
	}
}

// TestLeaksAreToldWhole: an error has the blocks, the bytes and the advice, for each arena once,
// newest first.
func TestLeaksAreToldWhole(t *testing.T) {
	_, s := opened(t, "match")
	h := made[arena.Heap](t)(arena.NewHeap(s.BytesUnzeroed(16<<10, 64), 0))
	made[arena.Shared](t)(h.Shared())
	lock := h.Stats().Used
	for range 102 {
		h.Alloc(16, 1)
	}
	require.EqualValues(t, 102*32, h.Stats().Used-lock)
	b := made[arena.Buddy](t)(arena.NewBuddy(s.BytesUnzeroed(4096, 64), 64))
	b.Alloc(100, 1)
	err := s.Close()
	var told []string
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "\t") {
			told = append(told, strings.TrimSuffix(line, "\n"))
		}
	}
	require.Len(t, told, 2)
	assert.Equal(t,
		`budget "test": scratch 0.0, scope "match": an arena.Buddy of 4096 bytes ends with 1 live block, 128 bytes used; `+`free each before the scope closes, or call MayLive`,
		told[0])
	assert.Regexp(t,
		`^budget "test": scratch 0.0, scope "match": an arena.Heap of 16384 bytes ends with 102 live blocks, \d+ bytes used; `+`free each before the scope closes, or call MayLive$`,
		told[1])
	assert.EqualValues(t, 103, scope.StackOf(s).Stats().Leaks)
}

// sharer is an arena that a Shared can be made for.
type sharer interface {
	arena.Allocator
	Reset()
	Shared() (arena.Shared, error)
}

// TestLeaksSayWhoAllocated: in checked builds each place is named, most bytes first.
func TestLeaksSayWhoAllocated(t *testing.T) {
	for _, k := range []struct {
		lines []string
		made  func(block []byte) sharer
	}{
		{[]string{
			"made at:", "3 blocks, 3000 bytes, allocated at:", "1 block, 700 bytes, allocated at:",
			"1 block, 250 bytes, allocated at:", "1 block, 100 bytes, allocated by C, or at a place no longer known",
			"2 blocks, 20 bytes, allocated at:"}, func(block []byte) sharer {
			return made[arena.Heap](t)(arena.NewHeap(block, 8))
		}},
		{[]string{
			"made at:", "3 blocks, 3072 bytes, allocated at:", "1 block, 1024 bytes, allocated at:",
			"1 block, 256 bytes, allocated at:", "2 blocks, 128 bytes, allocated at:",
			"1 block, 128 bytes, allocated by C, or at a place no longer known"}, func(block []byte) sharer {
			return made[arena.Buddy](t)(arena.NewBuddy(block, 64))
		}},
	} {
		_, s := opened(t, "match")
		a := k.made(s.BytesUnzeroed(16<<10, 64))
		shared := made[arena.Shared](t)(a.Shared())
		for range 2 {
			a.Alloc(10, 1)
		}
		_, err := shared.Realloc(shared.Alloc(500, 1), 250)
		require.NoError(t, err)
		require.NoError(t, shared.Free(shared.Alloc(500, 1)))
		shared.Alloc(700, 1)
		for range 3 {
			a.Alloc(1000, 1)
		}
		threads.New(shared.Functions()).Malloc(100)
		err = s.Close()
		assert.Contains(t, first(err), "ends with 8 live blocks, ")
		var lines, calls []string
		for line := range strings.Lines(err.Error()) {
			switch line = strings.TrimSuffix(line, "\n"); {
			case strings.HasPrefix(line, "\t\t"):
				calls = append(calls, line)
			case strings.HasPrefix(line, "\t"):
				lines = append(lines, line[1:])
			}
		}
		if !arena_c.Checked {
			assert.Empty(t, append(lines, calls...))
			continue
		}
		assert.Equal(t, k.lines, lines)
		assert.Contains(t, strings.Join(calls, ""), "leaks_test.go:")
	}
}

// TestLeaksOfManyPlaces: an error names 16 places, and counts the blocks of others.
func TestLeaksOfManyPlaces(t *testing.T) {
	if !arena_c.Checked {
		t.Skip("only a checked build knows places: go test -tags checked ./scope runs it")
	}
	_, s := opened(t, "match")
	h := made[arena.Heap](t)(arena.NewHeap(s.BytesUnzeroed(16<<10, 64), 0))
	var alloc func(way, calls int)
	alloc = func(way, calls int) {
		switch {
		case calls == 0:
			h.Alloc(8, 1)
		case way%2 == 0:
			alloc(way/2, calls-1)
		default:
			alloc(way/2, calls-1)
		}
	}
	for way := range 20 {
		alloc(way, 5)
	}
	text := s.Close().Error()
	assert.Equal(t, 16, strings.Count(text, "1 block, 8 bytes, allocated at:"))
	assert.True(t, strings.HasSuffix(text, "\n\tand 4 blocks more"), text)
}

// TestLeaksWhereALockWas: after a Reset the heap reports a block in the place of the lock.
func TestLeaksWhereALockWas(t *testing.T) {
	_, s := opened(t, "s")
	h := made[arena.Heap](t)(arena.NewHeap(s.BytesUnzeroed(4096, 64), 0))
	lock := made[arena.Shared](t)(h.Shared()).Functions().Context
	h.Reset()
	p := h.Alloc(100, 1)
	require.Less(t, uintptr(lock)-uintptr(p), uintptr(100))
	err := s.Close()
	assert.Contains(t, first(err), "ends with 1 live block, ")
	assert.Equal(t, arena_c.Checked, strings.Contains(err.Error(), "\t1 block, 100 bytes, allocated at:"), err)
}

// TestFinalizersFree: blocks that finalizers free aren't reported, wherever the heap is.
func TestFinalizersFree(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	require.NoError(t, scratch.Do("query", func(s scope.Scope) error {
		h := made[arena.Heap](t)(arena.NewHeap(s.BytesUnzeroed(4096, 64), 0))
		p, q := h.Alloc(100, 1), h.Alloc(100, 1)
		s.Defer(func() { assert.NoError(t, h.Free(p)) })
		require.NoError(t, scratch.Do("inner", func(s scope.Scope) error {
			s.Defer(func() { assert.NoError(t, h.Free(q)) })
			return nil
		}), "the heap goes on")
		return nil
	}))
	err := scratch.Do("query", func(s scope.Scope) error {
		h := made[arena.Heap](t)(arena.NewHeap(s.BytesUnzeroed(4096, 64), 0))
		s.Defer(func() { h.Alloc(1, 1) })
		return nil
	})
	assert.Contains(t, first(err), "ends with 1 live block")
}

// TestWhatFailedLeaksNothing: a failed function may not have reached its frees; only its own error
// is reported.
func TestWhatFailedLeaksNothing(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	begin := func(s scope.Scope) {
		made[arena.Heap](t)(arena.NewHeap(s.BytesUnzeroed(4096, 64), 0)).Alloc(1, 1)
	}
	s := scratch.Open("all")
	st := scope.StackOf(s)
	assert.Equal(t, errMark, s.Do("fails", func(s scope.Scope) error { begin(s); return errMark }))
	err := s.Do("is full", func(s scope.Scope) error {
		begin(s)
		begin(s)
		s.Open("inside").Bytes(1 << 20)
		return nil
	})
	var full *scope.FullError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, full.Error(), err.Error())
	assert.PanicsWithValue(t, "boom", func() {
		_ = s.Do("panics", func(s scope.Scope) error { begin(s); panic("boom") })
	})
	_, err = marks.Make(s, func(*mark) error {
		begin(s)
		require.Contains(t, first(s.Do("inside", func(s scope.Scope) error { begin(s); return nil })), "1 live block")
		return errMark
	})
	assert.Equal(t, errMark, err)
	assert.EqualValues(t, 1, st.Stats().Leaks)
	begin(s)
	assert.Contains(t, first(s.Close()), "1 live block", "what goes well tells again")
}

// TestArenasInBlocks: the arena that holds the block reports it, not the arena inside it.
func TestArenasInBlocks(t *testing.T) {
	_, s := opened(t, "s")
	pages := made[arena.Buddy](t)(arena.NewBuddy(s.BytesUnzeroed(16<<10, 64), 64))
	page := unsafe.Slice((*byte)(pages.Alloc(4096, 64)), 4096)
	made[arena.Heap](t)(arena.NewHeap(page, 0)).Alloc(1, 1)
	err := s.Close()
	assert.Contains(t, first(err), "an arena.Buddy of 16384 bytes ends with 1 live block")
	assert.NotContains(t, err.Error(), "arena.Heap of")
	beside := func(linear arena.Linear) []byte { return unsafe.Slice((*byte)(linear.Alloc(1024, 64)), 1024) }
	s = open(t).Scratch(0, 0).Open("s")
	linear := made[arena.Linear](t)(arena.NewLinear(s.BytesUnzeroed(4096, 64)))
	made[arena.Heap](t)(arena.NewHeap(beside(linear), 0)).Alloc(1, 1)
	assert.Contains(t, first(s.Close()), "an arena.Heap of 1024 bytes ends with 1 live block",
		"a linear frees no block")
}

func TestBytesOfSomethingElse(t *testing.T) {
	for name, use := range map[string]func(block []byte){
		"another heap": func(block []byte) { made[arena.Heap](t)(arena.NewHeap(block, 0)) },
		"a buddy":      func(block []byte) { made[arena.Buddy](t)(arena.NewBuddy(block, 64)) },
		"zeros":        func(block []byte) { clear(block) },
		"ones": func(block []byte) {
			for i := range block {
				block[i] = 0xFF
			}
		},
	} {
		for _, k := range leakies {
			_, s := opened(t, "s")
			block := s.BytesUnzeroed(5000, 64)
			_, word := k.made(t, block)
			if k.asks {
				word()
			}
			if arena_c.Asan && !strings.HasPrefix(name, "a") {
				continue // free bytes are poisoned
			}
			use(block)
			assert.NoError(t, s.Close(), "%s, %s", k.name, name)
		}
	}
}

// TestResetLeaksNothing: a Reset also ends the lock.
func TestResetLeaksNothing(t *testing.T) {
	_, s := opened(t, "s")
	h := made[arena.Heap](t)(arena.NewHeap(s.BytesUnzeroed(4096, 64), 0))
	b := made[arena.Buddy](t)(arena.NewBuddy(s.BytesUnzeroed(4096, 64), 64))
	for _, a := range []sharer{h, b} {
		made[arena.Shared](t)(a.Shared())
		a.Alloc(10, 1)
		a.Reset()
	}
	inner := s.Open("inner")
	require.NoError(t, inner.Close())
	h.Alloc(1, 1) // in the place of the lock
	err := s.Close()
	assert.Contains(t, first(err), "an arena.Heap of 4096 bytes ends with 1 live block")
	assert.NotContains(t, err.Error(), "Buddy of")
}

func TestOutsideOfBudgetsNobodyTells(t *testing.T) {
	for _, k := range leakies {
		_, word := k.made(t, arena.NewBlock(5000, 64))
		word()
	}
	assert.Panics(t, arena.Heap{}.MayLive)
	assert.Panics(t, arena.Buddy{}.MayLive)
	assert.Panics(t, arena.Shared{}.MayLive)
	assert.Panics(t, arena.Ring{}.MustEmpty)
	assert.Panics(t, arena.BlockPool[point]{}.MustEmpty)
}

func TestLeaksStandBesideErrors(t *testing.T) {
	_, s := opened(t, "s")
	s.Own(&closer{1, errMark, 0})
	made[arena.Heap](t)(arena.NewHeap(s.BytesUnzeroed(4096, 64), 0)).Alloc(1, 1)
	err := s.Close()
	require.ErrorIs(t, err, errMark)
	assert.ErrorContains(t, err, "ends with 1 live block")
	assert.False(t, errors.Is(err, scope.ErrFull))
}
