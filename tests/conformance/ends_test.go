package conformance

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
)

func down(n, align uint64) uint64 { return n / align * align }

// markedModel is a bump that forgets the marks above a rewind.
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

// farModel grows down from end towards low.
type farModel struct{ low, cursor, end, newest uint64 }

func (m *farModel) take(size, align, words uint64) (at uint64, a answer) {
	if badAlign(align) {
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
	if at, a = m.take(size, max(align, 16), 16); badAlign(align) {
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

// ends are the two ends of one block, each with its model.
type ends struct {
	near, far machine
	low, high half
}

type opener = func(block []byte) (machine, model, error)

// machineOf returns the machine of an end. Only a stack's frees blocks.
func machineOf(a interface {
	Alloc(size, align uint64) unsafe.Pointer
	Mark() arena.Mark
	Rewind(mark arena.Mark) error
	Reset()
}) machine {
	m := machine{
		alloc:  a.Alloc,
		mark:   func() uint64 { return uint64(a.Mark()) },
		rewind: func(mark uint64) error { return a.Rewind(arena.Mark(mark)) },
		reset:  a.Reset,
	}
	if s, frees := a.(interface{ Free(p unsafe.Pointer) error }); frees {
		m.release = s.Free
	}
	return m
}

func linearEnds(block []byte) (e ends, err error) {
	l, err := arena.NewLinear(block)
	if err != nil {
		return e, err
	}
	start, end := bounds(block)
	start += 128
	low, high := &markedModel{linearModel{start, start, end}, start}, &farModel{start, end, end, end}
	return ends{machineOf(l), machineOf(l.Far()), low, high}, nil
}

func stackEnds(block []byte) (e ends, err error) {
	s, err := arena.NewStack(block)
	if err != nil {
		return e, err
	}
	start, end := bounds(block)
	start += 128
	low, high := &stackModel{linearModel: linearModel{start, start, end}},
		&farStackModel{farModel: farModel{start, end, end, end}}
	return ends{machineOf(s), machineOf(s.Far()), low, high}, nil
}

func openNear(open func(block []byte) (ends, error)) opener {
	return func(block []byte) (machine, model, error) {
		e, err := open(block)
		return e.near, e.low, err
	}
}

func openFar(open func(block []byte) (ends, error)) opener {
	return func(block []byte) (machine, model, error) {
		e, err := open(block)
		return e.far, e.high, err
	}
}

var (
	openLinear, openLinearFar, openLinearEnds = openNear(linearEnds), openFar(linearEnds), openBoth(linearEnds, nil)
	openStack, openStackFar, openStackEnds    = openNear(stackEnds), openFar(stackEnds), openBoth(stackEnds, nil)
)

// half is the model of one end: it knows the position of the other.
type half interface {
	model
	meet(at uint64)
	position() uint64
}

// bothModel is two ends over one block. Each operation is of one of them.
type bothModel struct {
	ends [2]half
	now  int
}

func (m *bothModel) end() half {
	m.ends[m.now].meet(m.ends[1-m.now].position())
	return m.ends[m.now]
}

func (m *bothModel) alloc(size, align uint64) (at, got uint64, a answer) {
	return m.end().alloc(size, align)
}
func (m *bothModel) release(at uint64) bool    { return m.end().release(at) }
func (m *bothModel) mark() uint64              { return m.end().mark() }
func (m *bothModel) rewind(mark uint64) bool   { return m.end().rewind(mark) }
func (m *bothModel) room() uint64              { return m.end().room() }
func (m *bothModel) live(at, size uint64) bool { return m.ends[m.now].live(at, size) }

// reset of the near end resets both.
func (m *bothModel) reset() {
	for _, end := range m.ends[m.now:] {
		end.reset()
	}
}

// openBoth returns the ends as one arena. tamper may be nil; otherwise it breaks one rule.
func openBoth(open func(block []byte) (ends, error), tamper func(near, far *machine)) opener {
	return func(block []byte) (machine, model, error) {
		e, err := open(block)
		if err != nil {
			return machine{}, nil, err
		}
		if tamper != nil {
			tamper(&e.near, &e.far)
		}
		m := &bothModel{ends: [2]half{e.low, e.high}}
		ends := [2]machine{e.near, e.far}
		b := machine{
			turn:   func(end int) { m.now = end },
			alloc:  func(size, align uint64) unsafe.Pointer { return ends[m.now].alloc(size, align) },
			mark:   func() uint64 { return ends[m.now].mark() },
			rewind: func(mark uint64) error { return ends[m.now].rewind(mark) },
			reset:  func() { ends[m.now].reset() },
		}
		if e.near.release != nil {
			b.release = func(p unsafe.Pointer) error { return ends[m.now].release(p) }
		}
		return b, m, nil
	}
}

func FuzzLinearEnds(f *testing.F) { fuzz(f, openLinearEnds, 2048) }
func FuzzStackEnds(f *testing.F)  { fuzz(f, openStackEnds, 2048) }

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
