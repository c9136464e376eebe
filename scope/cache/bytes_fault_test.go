//go:build unix && !asan

package cache_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
	"github.com/upfront-mem/upfront/tests/step"
)

var pageSize = os.Getpagesize()

// mapped returns two pages. The first has the byte 'a' in each place.
func mapped(t *testing.T, fd, flags int) []byte {
	m, err := syscall.Mmap(fd, 0, 2*pageSize, syscall.PROT_READ|syscall.PROT_WRITE, flags)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, syscall.Munmap(m)) })
	copy(m, bytes.Repeat([]byte("a"), pageSize))
	return m
}

// faulting returns memory of two pages whose second page can't be read, by the name of the signal.
func faulting(t *testing.T) map[string][]byte {
	file, err := os.Create(filepath.Join(t.TempDir(), "values"))
	require.NoError(t, err)
	defer file.Close()
	require.NoError(t, file.Truncate(int64(2*pageSize)))
	cut := mapped(t, int(file.Fd()), syscall.MAP_SHARED)
	require.NoError(t, file.Truncate(int64(pageSize)))
	shut := mapped(t, -1, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, syscall.Mprotect(shut[pageSize:], syscall.PROT_NONE))
	return map[string][]byte{"SIGBUS": cut, "SIGSEGV": shut}
}

// faults calls fn, and reports whether it ended with a memory fault.
func faults(fn func()) (did bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		_, did = recover().(interface{ Addr() uintptr })
	}()
	fn()
	return false
}

// TestBytesFaults: a fault in memory of the caller leaves an entry whole or absent, the other
// entries as they were, and no lock, for which the next call would wait.
func TestBytesFaults(t *testing.T) {
	const size = 64 << 10
	key, other := []byte("key"), []byte("other")
	whole := bytes.Repeat([]byte("b"), 100)
	for signal, memory := range faulting(t) {
		torn := memory[pageSize-50:][:100] // its second half can't be read or written
		for _, shards := range []int{0, 1} {
			for name, op := range map[string]struct {
				before int64 // the time at which the value before ends; 0: none is there
				size   int   // of it
				do     func(c *cache.Bytes)
				stays  bool
			}{
				"Set":            {0, 0, func(c *cache.Bytes) { _ = c.Set(key, torn) }, false},
				"Set of a size":  {forever, 100, func(c *cache.Bytes) { _ = c.Set(key, torn) }, false},
				"Set of another": {forever, 60, func(c *cache.Bytes) { _ = c.Set(key, torn) }, false},
				"SetUntil":       {0, 0, func(c *cache.Bytes) { _ = c.SetUntil(key, torn, 5) }, false},
				"SetUntil of a":  {7, 100, func(c *cache.Bytes) { _ = c.SetUntil(key, torn, 5) }, false},
				"SetUntil, Set":  {7, 92, func(c *cache.Bytes) { _ = c.Set(key, torn) }, false},
				"Set, SetUntil":  {forever, 108, func(c *cache.Bytes) { _ = c.SetUntil(key, torn, 5) }, false},
				"Set of a key":   {forever, 100, func(c *cache.Bytes) { _ = c.Set(torn, key) }, true},
				"Get":            {forever, 100, func(c *cache.Bytes) { _, _ = c.Get(torn[:0], key) }, true},
				"Get of a key":   {forever, 100, func(c *cache.Bytes) { _, _ = c.Get(nil, torn) }, true},
				"View": {forever, 100, func(c *cache.Bytes) {
					c.View(key, func(v []byte) { copy(torn, v) })
				}, true},
				"View of a key":     {forever, 100, func(c *cache.Bytes) { c.View(torn, func([]byte) {}) }, true},
				"Has":               {forever, 100, func(c *cache.Bytes) { c.Has(torn) }, true},
				"Delete":            {forever, 100, func(c *cache.Bytes) { c.Delete(torn) }, true},
				"Set that evicts":   {0, 0, func(c *cache.Bytes) { fill(c); _ = c.Set(key, torn) }, false},
				"a key and a value": {0, 0, func(c *cache.Bytes) { _ = c.Set(torn, torn) }, false},
			} {
				what := fmt.Sprintf("%s, %d shards, %s", signal, shards, name)
				inScope(t, size, func(s scope.Scope) {
					c := cache.NewBytes(s, size, cache.Options{Shards: shards, Entry: 64})
					require.NoError(t, c.Set(other, whole))
					if op.before != 0 {
						require.NoError(t, c.SetUntil(key, bytes.Repeat([]byte("b"), op.size), op.before))
					}
					require.True(t, faults(func() { op.do(c) }), what)
					require.NoError(t, c.Walk(), what)
					require.Equal(t, op.stays, c.Has(key), what)
					if name != "Set that evicts" {
						value, ok := c.Get(nil, other)
						require.True(t, ok, what)
						require.Equal(t, whole, value)
					}
					for i := range 3 { // then it works as before, also where the torn bytes are
						require.NoError(t, c.Set(key, whole[:40+i*30]))
						value, ok := c.Get(nil, key)
						require.True(t, ok, what)
						require.Equal(t, whole[:40+i*30], value)
						fill(c)
						require.NoError(t, c.Walk(), what)
					}
				})
			}
		}
	}
}

const forever = 1<<63 - 1

// fill sets more than c holds.
func fill(c *cache.Bytes) {
	for i := range 1000 {
		_ = c.Set(fmt.Appendf(nil, "fill %d", i), bytes.Repeat([]byte("f"), i%200))
	}
}

// TestBytesKeyFaults: a key that becomes unreadable while its shard is locked leaves no lock.
func TestBytesKeyFaults(t *testing.T) {
	const size = 1 << 20
	key := mapped(t, -1, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	copy(key[pageSize:], bytes.Repeat([]byte("a"), pageSize))
	inScope(t, size, func(s scope.Scope) {
		c := cache.NewBytes(s, size, cache.Options{Shards: 1, Entry: 64})
		value := []byte("value")
		require.NoError(t, c.Set(key, value))
		for name, op := range map[string]func(){
			"Get":    func() { _, _ = c.Get(nil, key) },
			"View":   func() { c.View(key, func([]byte) {}) },
			"Has":    func() { c.Has(key) },
			"Set":    func() { _ = c.Set(key, value) },
			"Delete": func() { c.Delete(key) },
			"large":  func() { _ = c.Set(key, make([]byte, 1<<20)) },
		} {
			for end := time.Now().Add(step.Pick[time.Duration](50, 200,
				5000) * time.Millisecond); time.Now().Before(end); {
				var stop atomic.Bool
				shut := make(chan struct{})
				go func() {
					defer close(shut)
					for !stop.Load() {
						_ = syscall.Mprotect(key[pageSize:], syscall.PROT_NONE)
						_ = syscall.Mprotect(key[pageSize:], syscall.PROT_READ|syscall.PROT_WRITE)
					}
				}()
				for range 200 {
					faults(op)
				}
				stop.Store(true)
				<-shut
				require.NoError(t, c.Walk(), name)
				require.NoError(t, c.Set(key, value))
			}
		}
	})
}

// TestBytesFaultAndLoad: the next load of a region ends, and its report counts the caches, after a
// fault in the load before.
func TestBytesFaultAndLoad(t *testing.T) {
	b := budgettest.Open(t, budget.Plan{Name: "test", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}})
	for _, memory := range faulting(t) {
		for range 2 {
			_, err := budget.Load(background, b.Region("level"), func(s scope.Scope) (*world, error) {
				c := cache.NewBytes(s, 64<<10, cache.Options{Shards: 2})
				assert.True(t, faults(func() { _ = c.Set([]byte("key"), memory[pageSize-50:][:100]) }))
				return nil, nil
			})
			require.NoError(t, err)
			b.Report()
		}
	}
}
