package scope_test

import (
	"math/rand"
	"os"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// modelList is a list that a program keeps, and what must be in all of its capacity.
type modelList[T any] struct {
	list  []T
	whole []T
	depth int    // of the scope it lies in; -1: on the Go heap
	end   uint64 // bytes used when it was the last thing
}

// appendModel runs a random program of nested scopes in which lists of all of them, of the Go heap, and parts of each other
// are appended to the topmost scope. It knows from the outside where each result must lie and how many bytes it takes.
type appendModel[T comparable] struct {
	t      *testing.T
	random *rand.Rand
	maker  scope.Maker[T]
	make   func(int) T
	pad    scope.Pad
	scopes []scope.Scope
	lists  []*modelList[T]
	serial int
	full   int
}

func (m *appendModel[T]) fresh(n int) (list []T) {
	for range n {
		m.serial++
		list = append(list, m.make(m.serial))
	}
	return list
}

func (m *appendModel[T]) top() int { return len(m.scopes) - 1 }

func (m *appendModel[T]) keep(list []T, depth int) {
	m.lists = append(m.lists, &modelList[T]{list, slices.Clone(list[:cap(list)]), depth, m.pad.Stats().Used})
}

func (m *appendModel[T]) step() {
	s := m.scopes[m.top()]
	switch op := m.random.Intn(20); {
	case op == 0 && m.top() < 5:
		m.scopes = append(m.scopes, s.Open("s"))
	case op == 1 && m.top() > 0:
		depth := m.top()
		if err := s.Close(); err != nil {
			require.ErrorIs(m.t, err, scope.ErrFull)
		}
		m.scopes = m.scopes[:depth]
		m.lists = slices.DeleteFunc(m.lists, func(l *modelList[T]) bool { return l.depth == depth })
	case op == 2:
		list := append(make([]T, 0, 8), m.fresh(m.random.Intn(8))...)
		m.keep(list, -1)
	case op == 3 && s.Free() > 8*uint64(unsafe.Sizeof(*new(T)))+64:
		room := m.random.Intn(8)
		list := m.maker.SliceCap(s, m.random.Intn(room+1), room)
		copy(list, m.fresh(len(list)))
		m.keep(list, m.top())
	case op == 4:
		s.TryAlloc(uint64(1+m.random.Intn(9)), 1)
	case len(m.lists) > 0:
		m.append(s, m.lists[m.random.Intn(len(m.lists))])
	}
}

func (m *appendModel[T]) append(s scope.Scope, l *modelList[T]) {
	xs := m.fresh(m.random.Intn(5))
	if m.random.Intn(3) == 0 { // a part of a list, perhaps of the same
		from := m.lists[m.random.Intn(len(m.lists))].list
		i := m.random.Intn(len(from) + 1)
		xs = from[i : i+m.random.Intn(len(from)-i+1)]
	}
	want := append(slices.Clone(l.list), xs...)
	size, align := uint64(unsafe.Sizeof(*new(T))), arena_c.AlignOf[T]()
	used := m.pad.Stats().Used
	mine := l.depth == m.top()
	inPlace, room, bytes := false, cap(l.list), uint64(0)
	switch {
	case mine && len(want) <= room, len(want)+room == 0:
		inPlace = true
	case mine && l.end == used:
		inPlace, bytes, room = true, size*uint64(len(want)-room), len(want)
	default:
		room = max(2*len(l.list), len(want))
		bytes = -used&(align-1) + size*uint64(room)
	}
	free := s.Free()
	var got []T
	err := recovered(func() { got = m.maker.Append(s, l.list, xs...) })
	if bytes > free {
		require.ErrorIs(m.t, err, scope.ErrFull)
		require.Equal(m.t, used, m.pad.Stats().Used)
		m.full++
		return
	}
	require.NoError(m.t, err)
	require.Equal(m.t, used+bytes, m.pad.Stats().Used)
	require.True(m.t, slices.Equal(want, got))
	require.Equal(m.t, room, cap(got))
	if !inPlace {
		m.keep(got, m.top())
		require.Equal(m.t, want, m.lists[len(m.lists)-1].whole[:len(want)])
		require.Equal(m.t, make([]T, room-len(want)), got[len(want):room], "spare capacity is zeroed")
		return
	}
	require.Equal(m.t, at(l.list), at(got))
	l.list = got
	if bytes > 0 {
		l.end = used + bytes
	}
	l.whole = append(l.whole, make([]T, room-len(l.whole))...)
	copy(l.whole, want)
}

// check looks at every byte of every list.
func (m *appendModel[T]) check() {
	for _, l := range m.lists {
		require.True(m.t, slices.Equal(l.whole, l.list[:cap(l.list)]), "a list was written to")
	}
}

func runAppendModel[T comparable](t *testing.T, make func(int) T) {
	full := 0
	seeds := int64(30)
	if instrumented && os.Getenv("UPFRONT_SOAK") == "" {
		seeds = 8
	}
	for seed := range seeds {
		m := &appendModel[T]{t: t, random: rand.New(rand.NewSource(seed)), maker: scope.Plain[T](), make: make, pad: open(t).Pad(0, 0)}
		m.scopes = []scope.Scope{m.pad.Open("s")}
		m.scopes[0].Bytes(padSize - 100*int(unsafe.Sizeof(*new(T)))) // not much room, so that it is full now and then
		for range 300 {
			m.step()
			m.check()
		}
		full += m.full
	}
	require.NotZero(t, full, "the model never met a full: it is too kind")
}

func TestAppendModel(t *testing.T) {
	t.Run("8 bytes", func(t *testing.T) { runAppendModel(t, func(i int) uint64 { return uint64(i) }) })
	t.Run("8 bytes aligned to 4", func(t *testing.T) { runAppendModel(t, func(i int) point { return point{int32(i), -1} }) })
	t.Run("3 bytes", func(t *testing.T) {
		runAppendModel(t, func(i int) [3]byte { return [3]byte{byte(i), byte(i >> 8), 1} })
	})
	t.Run("600 bytes", func(t *testing.T) {
		runAppendModel(t, func(i int) [300]int16 { return [300]int16{int16(i), 299: int16(i)} })
	})
}
