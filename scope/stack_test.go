package scope

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
)

// A scope that C opened has not the name of the Go scope that was in its slot before, nor its place.
func TestScopeThatCOpenedHasNoName(t *testing.T) {
	list := []arena_c.Arena{{Kind: arena_c.KindScratch, Size: arena_c.Edge, Siblings: 1}}
	size := arena_c.MapSize(list, 8, 8, 0)
	raw := make([]byte, size+arena_c.Edge)
	base := unsafe.Pointer(&raw[-uint64(uintptr(unsafe.Pointer(&raw[0])))&(arena_c.Edge-1)])
	m := arena_c.MapInit(base, size, list, 8, 8, 0)
	st := &Stack{Budget: "b", Arena: "scratch 0.0", Owned: 8, Names: 8, Size: size}
	st.Start(m.Row(0))
	defer st.Drop()
	st.Open("first")
	require.NoError(t, st.Open("second").Close())
	m.Row(0).Arena.Open() // as upfront_scope_open of C does
	_, name, at := st.Opened(1)
	assert.Equal(t, "C", name)
	assert.Empty(t, at.Tell("opened"))
	_, name, _ = st.Opened(0)
	assert.Equal(t, "first", name)
	assert.EqualError(t, st.leftOpen(0), `scope: BUG: scope "first", "C" of scratch 0.0 was left open: close it where it is opened`)
}

// Ids are used again, so the list of arenas is as long as the most that were open at once.
func TestIDsAreUsedAgain(t *testing.T) {
	registry.Lock()
	defer registry.Unlock()
	first, second := takeID(), takeID()
	require.NotEqual(t, first, second)
	registry.free = append(registry.free, first)
	assert.Equal(t, first, takeID())
	registry.free = append(registry.free, second, first)
}
