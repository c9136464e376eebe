package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
)

func down(n, align uint64) uint64 { return n / align * align }

// markedModel is a bump that forgets the marks that a rewind has passed.
type markedModel struct {
	linearModel
	newest uint64
}

func (m *markedModel) mark() uint64 {
	m.newest = m.cursor
	return m.cursor
}

func (m *markedModel) rewind(mark uint64) bool {
	if mark < m.start || mark > m.newest {
		return false
	}
	m.cursor, m.newest = mark, mark
	return true
}

func (m *markedModel) reset()              { m.cursor, m.newest = m.start, m.start }
func (m *linearModel) meet(at uint64)      { m.end = at }
func (m *linearModel) position() uint64    { return m.cursor }
func (m *farModel) meet(at uint64)         { m.low = at }
func (m *farModel) position() uint64       { return m.cursor }
func (m *farStackModel) reset()            { m.cursor, m.blocks = m.end, nil }
func (m *farModel) release(uint64) bool    { return false }
func (m *farModel) room() uint64           { return m.cursor - m.low }
func (m *farModel) reset()                 { m.cursor, m.newest = m.end, m.end }
func (m *farModel) live(at, _ uint64) bool { return at >= m.cursor }

// farModel comes down from end towards low.
type farModel struct{ low, cursor, end, newest uint64 }

func (m *farModel) take(size, align, words uint64) (at uint64, a answer) {
	if badArgument(size, align) {
		return 0, refused
	}
	if size > m.cursor {
		return 0, full
	}
	at = down(m.cursor-size, align)
	if at < m.low+words {
		return 0, full
	}
	return at, given
}

func (m *farModel) alloc(size, align uint64) (at, got uint64, a answer) {
	if at, a = m.take(size, align, 0); a == given {
		m.cursor = at
	}
	return at, size, a
}

func (m *farModel) mark() uint64 {
	m.newest = m.cursor
	return m.cursor
}

func (m *farModel) rewind(mark uint64) bool {
	if mark < m.newest || mark > m.end {
		return false
	}
	m.cursor, m.newest = mark, mark
	return true
}

// farStackModel is the mirror of stackModel.
type farStackModel struct {
	farModel
	blocks [][2]uint64 // before, at
}

func (m *farStackModel) alloc(size, align uint64) (at, got uint64, a answer) {
	if at, a = m.take(size, max(align, 16), 16); badArgument(size, align) {
		a = refused
	}
	if a == given {
		m.blocks = append(m.blocks, [2]uint64{m.cursor, at})
		m.cursor = at - 16
	}
	return at, size, a
}

func (m *farStackModel) live(at, _ uint64) bool {
	return slices.ContainsFunc(m.blocks, func(b [2]uint64) bool { return b[1] == at })
}

func (m *farStackModel) room() uint64 {
	low := up(m.low+16, 16)
	if low > m.cursor {
		return 0
	}
	return m.cursor - low
}

func (m *farStackModel) release(at uint64) bool {
	n := len(m.blocks) - 1
	if n < 0 || m.blocks[n][1] != at {
		return false
	}
	m.cursor, m.blocks = m.blocks[n][0], m.blocks[:n]
	return true
}

func (m *farStackModel) rewind(mark uint64) bool {
	if mark == m.cursor {
		return true
	}
	for i, b := range m.blocks {
		if b[0] == mark {
			m.cursor, m.blocks = mark, m.blocks[:i]
			return true
		}
	}
	return false
}

func linearEnds(block []byte) (l arena.Linear, near, far machine, nearModel *markedModel, high *farModel, err error) {
	if l, err = arena.NewLinear(block); err != nil {
		return
	}
	start, end := bounds(block)
	start += 128
	near = machine{
		alloc:  l.Alloc,
		mark:   func() uint64 { return uint64(l.Mark()) },
		rewind: func(mark uint64) error { return l.Rewind(arena.Mark(mark)) },
		reset:  l.Reset,
	}
	f := l.Far()
	far = machine{
		alloc:  f.Alloc,
		mark:   func() uint64 { return uint64(f.Mark()) },
		rewind: func(mark uint64) error { return f.Rewind(arena.Mark(mark)) },
		reset:  f.Reset,
	}
	return l, near, far, &markedModel{linearModel{start, start, end}, start}, &farModel{start, end, end, end}, nil
}

func stackEnds(block []byte) (s arena.Stack, near, far machine, low *stackModel, high *farStackModel, err error) {
	if s, err = arena.NewStack(block); err != nil {
		return
	}
	start, end := bounds(block)
	start += 128
	near = machine{
		alloc:   s.Alloc,
		release: s.Free,
		mark:    func() uint64 { return uint64(s.Mark()) },
		rewind:  func(mark uint64) error { return s.Rewind(arena.Mark(mark)) },
		reset:   s.Reset,
	}
	f := s.Far()
	far = machine{
		alloc:   f.Alloc,
		release: f.Free,
		mark:    func() uint64 { return uint64(f.Mark()) },
		rewind:  func(mark uint64) error { return f.Rewind(arena.Mark(mark)) },
		reset:   f.Reset,
	}
	return s, near, far, &stackModel{linearModel: linearModel{start, start, end}}, &farStackModel{farModel: farModel{start, end, end, end}},
		nil
}

func openLinear(block []byte) (machine, model, error) {
	_, near, _, m, _, err := linearEnds(block)
	return near, m, err
}

func openLinearFar(block []byte) (machine, model, error) {
	_, _, far, _, m, err := linearEnds(block)
	return far, m, err
}

func openStack(block []byte) (machine, model, error) {
	_, near, _, m, _, err := stackEnds(block)
	return near, m, err
}

func openStackFar(block []byte) (machine, model, error) {
	_, _, far, _, m, err := stackEnds(block)
	return far, m, err
}

// half is one end of a pair: its model knows how far the other has come.
type half interface {
	model
	meet(at uint64)
	position() uint64
}

// pair is two ends over one block.
type pair struct {
	ends  [2]*session
	sides [2]half
}

func openPair(kind byte, block []byte) (*pair, error) {
	var near, far machine
	var low, high half
	var err error
	if kind%2 == 0 {
		_, near, far, low, high, err = pairOf(linearEnds(block))
	} else {
		_, near, far, low, high, err = pairOf(stackEnds(block))
	}
	if err != nil {
		return nil, err
	}
	near.reset = nil // it is both ends'
	return &pair{[2]*session{newSession(block, near, low), newSession(block, far, high)}, [2]half{low, high}}, nil
}

func pairOf[A any, L, H half](a A, near, far machine, low L, high H, err error) (A, machine, machine, half, half, error) {
	return a, near, far, low, high, err
}

// run is a session's program; the high bit of a step says which end takes it.
func (p *pair) run(program []byte) error {
	for i := 0; i+2 < len(program); i += 3 {
		end := int(program[i] >> 7)
		p.sides[end].meet(p.sides[1-end].position())
		if err := p.ends[end].step(program[i], program[i+1], program[i+2]); err != nil {
			return fmt.Errorf("step %d of %d, end %d, % x: %w", i/3, len(program)/3, end, program[i:i+3], err)
		}
		if err := p.ends[1-end].intact(); err != nil {
			return fmt.Errorf("step %d of %d, end %d, % x: the other end: %w", i/3, len(program)/3, end, program[i:i+3], err)
		}
	}
	return p.ends[0].intact()
}

func TestTwoEndsMatchTheModel(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 3))
	rounds := 300
	if !thorough() {
		rounds = 40
	}
	program := make([]byte, 3*200)
	for _, place := range blocks {
		t.Run(place.name, func(t *testing.T) {
			block := place.take(t, 2048)
			for kind := range byte(2) {
				for range rounds {
					p, err := openPair(kind, block)
					require.NoError(t, err)
					for i := range program {
						program[i] = byte(random.Uint32())
					}
					require.NoError(t, p.run(program), "seed %d, kind %d, program %x", seed, kind, program)
				}
			}
		})
	}
}

func FuzzTwoEnds(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte("\x01\x00\x20\x03\x81\x20\x05\x0a\x00\x00\x8a\x00\x00\x89\x01\x00\x09\x00\x00"))
	window := arena.NewBlock(2048, 64)
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) == 0 || len(program) > 3000 {
			return
		}
		p, err := openPair(program[0], window)
		if err == nil {
			err = p.run(program[1:])
		}
		require.NoError(t, err)
		unpoison(window)
	})
}

func TestAllShortProgramsOfTwoEnds(t *testing.T) {
	ops := [][3]byte{{1, 17, 0}, {9, 0, 0}, {13, 0, 0}, {14, 0, 0}, {10, 0, 0}} // alloc, fill up, mark, rewind, free: a linear has none
	steps, programs := 6, 0
	if !thorough() {
		steps = 4
	}
	block := heapBlock(t, 128+192, 64)
	for kind := range byte(2) {
		ops := ops[:4+kind]
		choice := make([]int, steps)
		program := make([]byte, 3*steps)
		for done := false; !done; programs++ {
			for i, c := range choice {
				op := ops[c/2]
				copy(program[3*i:], []byte{op[0] | byte(c%2)<<7, op[1], op[2]})
			}
			p, err := openPair(kind, block)
			require.NoError(t, err)
			require.NoError(t, p.run(program))
			done = true
			for i := range choice {
				if choice[i]++; choice[i] < 2*len(ops) {
					done = false
					break
				}
				choice[i] = 0
			}
		}
	}
	t.Logf("%d programs", programs)
}

func TestResizeOfTheLastBlock(t *testing.T) {
	l, err := arena.NewLinear(heapBlock(t, 1024, 64))
	require.NoError(t, err)
	refuse := func(p unsafe.Pointer, old, size uint64, why string) {
		t.Helper()
		used := l.Stats().Used
		ok, err := l.Resize(p, old, size)
		assert.False(t, ok)
		assert.ErrorContains(t, err, why)
		assert.Equal(t, used, l.Stats().Used)
	}
	a, b := l.Alloc(8, 8), l.Alloc(16, 8)
	refuse(a, 8, 16, "out of order")
	refuse(unsafe.Add(b, 8), 16, 8, "out of order")
	refuse(nil, 8, 16, "bad argument")
	bytes := unsafe.Slice((*byte)(b), 16)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	ok, err := l.Resize(b, 16, 888)
	require.NoError(t, err)
	assert.True(t, ok)
	for i, v := range unsafe.Slice((*byte)(b), 16) {
		assert.EqualValues(t, i, v)
	}
	assert.Nil(t, l.Alloc(1, 1))
	ok, err = l.Resize(b, 888, 889)
	require.NoError(t, err, "full is no error")
	assert.False(t, ok)
	ok, err = l.Resize(b, 888, 24)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, []uint64{32, 896}, []uint64{l.Stats().Used, l.Stats().Peak})
	mark := l.Mark()
	refuse(b, 24, 32, "out of order")
	c := l.Alloc(8, 8)
	ok, err = l.Resize(c, 8, 64)
	require.NoError(t, err)
	assert.True(t, ok)
	require.NoError(t, l.Rewind(mark))
	assert.Equal(t, uint64(32), l.Stats().Used)
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
