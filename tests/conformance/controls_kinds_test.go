package conformance

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// Wrong copies of ideas that the steps of a session don't reach, each beside the right one and before the same check.

// resizer is an arena whose last block can be resized.
type resizer struct {
	alloc  func(size uint64) unsafe.Pointer
	resize func(p unsafe.Pointer, old, size uint64) bool
	mark   func() uint64
	rewind func(mark uint64)
}

// resizes says what a resize must leave alone: blocks that are not the last, and what a mark stands on. bump-scope grew
// and shrank blocks of an ancestor scope in place.
func resizes(a resizer) error {
	first := a.alloc(16)
	mark := a.mark()
	for _, size := range []uint64{8, 24} {
		if a.resize(first, 16, size) {
			return fmt.Errorf("to %d bytes, below a mark", size)
		}
	}
	second := a.alloc(16)
	third := a.alloc(16)
	fill := func(p unsafe.Pointer, v byte) {
		for i := range 16 {
			*(*byte)(unsafe.Add(p, i)) = v
		}
	}
	fill(third, 3)
	if a.resize(second, 16, 32) {
		fill(unsafe.Add(second, 16), 2)
	}
	if *(*byte)(third) != 3 {
		return errors.New("over the next block")
	}
	if !a.resize(third, 16, 64) || a.resize(third, 64, 1<<20) {
		return errors.New("of the last block")
	}
	if fourth := a.alloc(16); fourth == nil || uintptr(fourth) < uintptr(third)+64 {
		return errors.New("the room isn't the block's")
	}
	a.rewind(mark)
	if a.alloc(16) != second {
		return errors.New("a rewind goes elsewhere")
	}
	return nil
}

func rightResizer(t *testing.T) resizer {
	l, err := arena.NewLinear(heapBlock(t, 1024, 64))
	require.NoError(t, err)
	return resizer{
		alloc:  func(size uint64) unsafe.Pointer { return l.Alloc(size, 16) },
		resize: func(p unsafe.Pointer, old, size uint64) bool { ok, _ := l.Resize(p, old, size); return ok },
		mark:   func() uint64 { return uint64(l.Mark()) },
		rewind: func(mark uint64) { _ = l.Rewind(arena.Mark(mark)) },
	}
}

// wrongResizer is a bump that looks at no mark, or not even whether the block is the last.
func wrongResizer(lastOnly bool) resizer {
	block := make([]byte, 1024)
	cursor := uint64(0)
	base := unsafe.Pointer(&block[0])
	return resizer{
		alloc: func(size uint64) unsafe.Pointer {
			p := unsafe.Add(base, cursor)
			cursor += size
			return p
		},
		resize: func(p unsafe.Pointer, old, size uint64) bool {
			at := address(p) - address(base)
			if lastOnly && at+old != cursor || at+size > 1024 {
				return false
			}
			if lastOnly {
				cursor = at + size
			}
			return true
		},
		mark:   func() uint64 { return cursor },
		rewind: func(mark uint64) { cursor = mark },
	}
}

func TestWrongResizesAreCaught(t *testing.T) {
	assert.NoError(t, resizes(rightResizer(t)))
	assert.Error(t, resizes(wrongResizer(true)), "below a mark")
	assert.Error(t, resizes(wrongResizer(false)), "any block")
}

// nest is an arena with two scopes, one in the other.
type nest interface {
	open()
	take(depth int, id uint64) bool // an object with a finalizer in the scope at depth
	close() (finalized []uint64)    // of the topmost
}

// nests makes objects in a scope before, while and after an inner one covers it. The demo of the scope stack's seed
// allocated from the covered one: its object then dies with the inner scope, and the chain that still knows it ends in
// itself when one more object is made.
func nests(n nest) error {
	n.open()
	n.take(0, 1)
	n.open()
	n.take(1, 2)
	want := []uint64{1}
	if n.take(0, 3) {
		want = append([]uint64{3}, want...)
	}
	if got := n.close(); !slices.Equal(got, []uint64{2}) {
		return fmt.Errorf("the inner scope finalizes %v", got)
	}
	if !n.take(0, 4) || !n.take(0, 5) {
		return errors.New("uncovered, the outer scope refuses")
	}
	if got := n.close(); !slices.Equal(got, append([]uint64{5, 4}, want...)) {
		return fmt.Errorf("the outer scope finalizes %v", got)
	}
	return nil
}

type rightNest struct {
	stack *scope.Stack
	open_ []scope.Scope
	done  []uint64
}

func (n *rightNest) open() {
	if len(n.open_) == 0 {
		n.open_ = append(n.open_, n.stack.Open("outer"))
		return
	}
	n.open_ = append(n.open_, n.open_[0].Open("inner"))
}

func (n *rightNest) take(depth int, id uint64) (ok bool) {
	before := len(n.done)
	defer func() {
		if recover() != nil {
			n.done, ok = n.done[:before], false // what can't be registered is finalized at once
		}
	}()
	n.open_[depth].Defer(func() { n.done = append(n.done, id) })
	return true
}

func (n *rightNest) close() []uint64 {
	n.done = nil
	last := len(n.open_) - 1
	_ = n.open_[last].Close() // it returns the misuse that nests provoked
	n.open_ = n.open_[:last]
	return n.done
}

// wrongNest is the slide's: a scope has a rewind point and a chain of nodes in the block, and any scope allocates.
type wrongNest struct {
	block  [64][2]int // next, id; node 0 is the chain's end
	cursor int
	scopes [][2]int // rewind point, chain
}

func (n *wrongNest) open() { n.scopes = append(n.scopes, [2]int{n.cursor, 0}) }

func (n *wrongNest) take(depth int, id uint64) bool {
	s := &n.scopes[depth]
	n.cursor++
	n.block[n.cursor] = [2]int{s[1], int(id)}
	s[1] = n.cursor
	return true
}

func (n *wrongNest) close() (finalized []uint64) {
	last := len(n.scopes) - 1
	for node := n.scopes[last][1]; node != 0 && len(finalized) < 10; node = n.block[node][0] { // 10 is forever
		finalized = append(finalized, uint64(n.block[node][1]))
	}
	n.cursor = n.scopes[last][0]
	n.scopes = n.scopes[:last]
	return finalized
}

func TestAllocationFromACoveredScopeIsCaught(t *testing.T) {
	stack, _, _ := scopeStack(heapBlock(t, 4*arena_c.Edge, 64))
	assert.NoError(t, nests(&rightNest{stack: stack}))
	assert.Error(t, nests(&wrongNest{}))
}

// names is a pool with handles.
type names struct {
	get func() uint64
	put func(handle uint64) bool
	has func(handle uint64) bool
}

// staysDead keeps the handle of a chunk while others take it again and again.
func staysDead(n names) error {
	kept := n.get()
	if !n.has(kept) || !n.put(kept) {
		return errors.New("a new handle is none")
	}
	for i := range 1000 {
		h := n.get()
		if n.has(kept) || n.put(kept) {
			return fmt.Errorf("after %d reuses the handle is good again", i+1)
		}
		if !n.put(h) {
			return errors.New("a live handle is none")
		}
	}
	return nil
}

// narrowNames keeps a generation of so many bits for its one chunk.
func narrowNames(bits int) names {
	generation, live := uint64(0), false
	has := func(handle uint64) bool { return live && handle == generation }
	return names{
		get: func() uint64 { live = true; return generation },
		put: func(handle uint64) bool {
			if !has(handle) {
				return false
			}
			live = false
			generation = (generation + 1) % (1 << bits)
			return true
		},
		has: has,
	}
}

func TestHandlesThatWrapAreCaught(t *testing.T) {
	p, err := arena.NewBlockHandlePool[uint64](heapBlock(t, 1024, 64))
	require.NoError(t, err)
	assert.NoError(t, staysDead(names{
		get: func() uint64 { _, h := p.Get(); return uint64(h) },
		put: func(handle uint64) bool { return p.Put(arena.Handle[uint64](handle)) == nil },
		has: func(handle uint64) bool { return p.At(arena.Handle[uint64](handle)) != nil },
	}))
	assert.Error(t, staysDead(narrowNames(0)), "an index alone")
	assert.Error(t, staysDead(narrowNames(7)), "what a byte has left beside the live bit")
}

// wrongPair breaks one thing of a pair that is right.
func wrongPair(t *testing.T, kind byte, break_ func(p *pair)) error {
	random := rand.New(rand.NewPCG(7, 7))
	program := make([]byte, 3*60)
	for range 100 {
		p, err := openPair(kind, heapBlock(t, 2048, 64))
		require.NoError(t, err)
		break_(p)
		for i := range program {
			program[i] = byte(random.Uint32())
		}
		if err := p.run(program); err != nil {
			return err
		}
	}
	return nil
}

func TestWrongEndsAreCaught(t *testing.T) {
	for kind := range byte(2) {
		assert.NoError(t, wrongPair(t, kind, func(*pair) {}))
		assert.Error(t, wrongPair(t, kind, func(p *pair) { // the ends don't know of each other: each has a block of its own
			other, err := openPair(kind, heapBlock(t, 2048, 64))
			require.NoError(t, err)
			p.ends[1].machine = other.ends[1].machine
		}), "ends that meet")
		assert.Error(t, wrongPair(t, kind, func(p *pair) {
			p.ends[0].machine.rewind, p.ends[1].machine.rewind = p.ends[1].machine.rewind, p.ends[0].machine.rewind
		}), "the other end's marks")
		assert.Error(t, wrongPair(t, kind, func(p *pair) {
			p.ends[1].machine.rewind = func(uint64) error { return nil }
		}), "any mark")
	}
}
