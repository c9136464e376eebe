package scope_test

import (
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

const gone = "scope: BUG: CloseNow of what was closed, run or cancelled before"

func TestCancelForgets(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	a, b, c := &closer{id: 1}, &closer{id: 2}, &closer{id: 3}
	s.Own(a)
	held := s.Own(b)
	assert.Same(t, b, held.Value())
	assert.True(t, held.Cancel())
	assert.False(t, held.Cancel(), "it is forgotten already")
	assert.Nil(t, held.Value())
	assert.EqualError(t, held.CloseNow(), gone)
	s.Own(c) // takes b's place; b's node, which is older, must not close it
	newMark(s, 4, 0)
	require.NoError(t, s.Close())
	assert.Equal(t, []int64{4, 3, 1}, closed)
	assert.Zero(t, b.times)
}

func TestCloseNowRunsOnceOutOfItsPlace(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	bad := &closer{id: 1, err: errMark}
	first := s.Own(bad)
	second := s.Defer(func() { closed = append(closed, 2) })
	s.Own(&closer{id: 3})
	inner := s.Open("covers it: nothing is allocated, so that is fine")
	assert.ErrorIs(t, first.CloseNow(), errMark)
	require.NoError(t, second.CloseNow())
	require.NoError(t, inner.Close())
	err := first.CloseNow()
	assert.EqualError(t, err, gone)
	assert.ErrorIs(t, err, scope.ErrClosed)
	assert.Equal(t, []int64{1, 2}, closed)
	require.NoError(t, s.Close())
	assert.Equal(t, []int64{1, 2, 3}, closed)
	assert.Equal(t, 1, bad.times)
	stats := scratch.Stats()
	assert.EqualValues(t, 3, stats.Finalizers)
	assert.Zero(t, stats.Owned)
	assert.Zero(t, stats.Failed, "the error was the caller's")
}

// TestCloseNowOfWhatPanics: the panic is the caller's, and the value is gone all the same.
func TestCloseNowOfWhatPanics(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	held := s.Defer(func() { panic("boom") })
	assert.PanicsWithValue(t, "boom", func() { _ = held.CloseNow() })
	assert.EqualError(t, held.CloseNow(), gone)
	require.NoError(t, s.Close())
}

func TestOwnedPlacesAreGivenBack(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("a")
	for range 100 {
		require.True(t, s.Own(&closer{}).Cancel())
		require.NoError(t, s.Defer(func() {}).CloseNow())
	}
	handles := make([]scope.Owned, 8)
	for i := range handles {
		handles[i] = s.Keep(i)
	}
	assert.Equal(t, 8, scratch.Stats().Owned)
	late := &closer{id: 9}
	assert.PanicsWithError(t, `budget "test": scratch 0.0 is full: scope "a" asked for one more of 8 owned values; `+
		`raise limits.owned in the plan to 9 or more`, func() { s.Own(late) })
	assert.Equal(t, 1, late.times, "nothing is lost")
	for i, h := range handles {
		assert.Equal(t, i, h.Value())
	}
	handles[3].Cancel()
	assert.Equal(t, "again", s.Keep("again").Value())
	require.NoError(t, s.Close())
	for _, h := range handles {
		assert.Nil(t, h.Value())
	}
	assert.Zero(t, scratch.Stats().Owned)
}

// TestOwnedLiesInABlock: an object in an arena has a Go value by its Owned.
func TestOwnedLiesInABlock(t *testing.T) {
	type player struct {
		ID   int32
		Conn scope.Owned
	}
	players := scope.Plain[player]()
	assert.EqualValues(t, 16, unsafe.Sizeof(scope.Owned{}))
	s := open(t).Scratch(0, 0).Open("a")
	p, conn := players.New(s), &closer{id: 7}
	p.Conn = s.Own(conn)
	assert.Same(t, conn, p.Conn.Value())
	require.NoError(t, p.Conn.CloseNow())
	assert.Equal(t, 1, conn.times)
	assert.EqualError(t, players.New(s).Conn.CloseNow(), gone, "the zero Owned names nothing")
	require.NoError(t, s.Close())
	assert.Equal(t, 1, conn.times)
}

func TestOwnedOfAnotherLife(t *testing.T) {
	b := open(t)
	s := b.Scratch(0, 0).Open("a")
	old := s.Keep("old")
	require.NoError(t, s.Close())
	s = b.Scratch(0, 0).Open("a")
	s.Keep("new")
	assert.Nil(t, old.Value(), "another value has its place")
	assert.False(t, old.Cancel())
	young := s.Keep("young")
	require.NoError(t, s.Close())
	require.NoError(t, b.Close())
	assert.Nil(t, young.Value())

	b = open(t)
	s = b.Scratch(0, 0).Open("a")
	s.Keep("new")
	keep := s.Keep("new")
	assert.Nil(t, young.Value(), "a newer budget has its stack's id")
	assert.False(t, young.Cancel())
	assert.EqualError(t, young.CloseNow(), gone)
	assert.Equal(t, "new", keep.Value())
	require.NoError(t, s.Close())
}

// TestOwnedOfAnyWords: an Owned may come from a block that anything wrote.
func TestOwnedOfAnyWords(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	real := s.Keep("here")
	words := *(*[2]uint64)(unsafe.Pointer(&real))
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		forged := words
		forged[random.IntN(2)] ^= 1 << random.IntN(64)
		h := *(*scope.Owned)(unsafe.Pointer(&forged))
		require.Nil(t, h.Value())
		require.False(t, h.Cancel())
		require.Error(t, h.CloseNow())
	}
	assert.Equal(t, "here", real.Value())
	require.NoError(t, s.Close())
}

// TestFullScopeOwnsNoFile fills a scope and gives it files: none stays open.
func TestFullScopeOwnsNoFile(t *testing.T) {
	const descriptors = "/proc/self/fd"
	count := func() int {
		entries, err := os.ReadDir(descriptors)
		if err != nil {
			t.Skip("no", descriptors)
		}
		return len(entries)
	}
	scratch := open(t).Scratch(0, 0)
	before := count()
	for room := range uint64(40) { // every rest of a scope, around the 16 bytes of a finalizer
		err := scratch.Do("files", func(s scope.Scope) error {
			s.AllocUnzeroed(s.Free()-room, 1)
			for {
				f, err := os.Open(os.DevNull)
				require.NoError(t, err)
				s.Own(f)
			}
		})
		require.ErrorIs(t, err, scope.ErrFull)
		require.Equal(t, before, count(), "room for %d bytes", room)
	}
	control, err := os.Open(os.DevNull)
	require.NoError(t, err)
	assert.Equal(t, before+1, count(), "a file that nobody closes is seen")
	require.NoError(t, control.Close())
}
