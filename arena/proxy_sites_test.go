//go:build memtrace

package arena_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
)

func asksTheProxy(x *arena.Proxy, n uint64) unsafe.Pointer { return x.Alloc(n, 16) }

func makesLonger(x *arena.Proxy, p unsafe.Pointer, n uint64) { _, _ = x.Realloc(p, n) }

func getsOfTheProxy(x *arena.PoolProxy[node]) *node { return x.Get() }

// TestProxiesSayWhoAsked: each block that didn't come back, and no other.
func TestProxiesSayWhoAsked(t *testing.T) {
	x := arena.NewProxy("sound", newHeap(t, 1<<16))
	require.NoError(t, x.Free(asksTheProxy(x, 100)))
	asksTheProxy(x, 40)
	makesLonger(x, asksTheProxy(x, 50), 60)
	text := x.Close().Error()
	assert.Regexp(t, `\n\t40 bytes at offset \S+ given at:\n\t\t\S+/arena_test\.asksTheProxy \S+/proxy_sites_test\.go:\d+\n`+
		`\t\t\S+\.TestProxiesSayWhoAsked `, text)
	assert.Regexp(t, `\n\t60 bytes at offset \S+ given at:\n\t\t\S+/arena_test\.makesLonger \S+/proxy_sites_test\.go:\d+\n`, text)
	assert.Equal(t, 2, strings.Count(text, " given at:"))
}

func TestPoolProxiesSayWhoAsked(t *testing.T) {
	pool, err := arena.NewPool[node](arena.NewBlock(1<<12, 64))
	require.NoError(t, err)
	x := arena.NewPoolProxy("nodes", pool)
	first := getsOfTheProxy(x)
	getsOfTheProxy(x)
	require.NoError(t, x.Put(first))
	text := x.Close().Error()
	assert.Regexp(t, `\n\tchunk 1 given at:\n\t\t\S+/arena_test\.getsOfTheProxy \S+/proxy_sites_test\.go:\d+\n`, text)
	assert.Equal(t, 1, strings.Count(text, " given at:"))

	handles, err := arena.NewHandlePool[node](arena.NewBlock(1<<12, 64))
	require.NoError(t, err)
	y := arena.NewHandlePoolProxy("nodes", handles)
	_, h := y.Get()
	y.Get()
	require.NoError(t, y.Put(h))
	require.Error(t, y.Put(h))
	text = y.Close().Error()
	assert.Contains(t, text, "\n\tchunk 1 given at:\n")
	assert.Equal(t, 1, strings.Count(text, " given at:"))
}
