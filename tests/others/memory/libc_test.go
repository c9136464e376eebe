//go:build !race

// In race builds the blocks are Go memory, and checkptr ends a program in libc's first access.

package memory_test

import (
	"bytes"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"modernc.org/libc"
	"modernc.org/memory"
	_ "modernc.org/sqlite"

	"github.com/upfront-mem/upfront/arena"
)

// used returns a heap of size bytes that libc takes memory from, and its block.
func used(t *testing.T, size int) (arena.Heap, []byte) {
	t.Helper()
	block := arena.NewBlock(size, 64)
	heap, err := arena.NewHeap(block, 256)
	require.NoError(t, err)
	memory.Use(heap, block)
	return heap, block
}

// TestSQLite: all memory of a database is in the heap, and a full one is SQLite's own error.
func TestSQLite(t *testing.T) {
	heap, _ := used(t, 4<<20)
	db, err := sql.Open("sqlite", ":memory:")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE t AS SELECT zeroblob(1000) AS b")
	require.NoError(t, err)
	for err == nil {
		_, err = db.Exec("INSERT INTO t SELECT b FROM t")
	}
	assert.EqualError(t, err, "out of memory (7)")
	assert.Greater(t, heap.Stats().Used, uint64(1<<20))
	var verdict string
	require.NoError(t, db.QueryRow("PRAGMA integrity_check").Scan(&verdict))
	assert.Equal(t, "ok", verdict)
	require.NoError(t, db.Close())
	assert.Less(t, heap.Stats().Used, uint64(64<<10), "the environment, for getenv")
}

// TestFrames shows why the heap must not be rolled back: a TLS keeps the address of a frame in a Go
// value. After the heap's bytes are put back, libc and the frame have the same memory.
func TestFrames(t *testing.T) {
	_, block := used(t, 64<<10)
	tls := libc.NewTLS()
	tls.Alloc(64)
	tls.Free(64)
	snapshot := bytes.Clone(block)
	frame := tls.Alloc(4096) // the block of 64 bytes is exchanged
	tls.Free(4096)
	copy(block, snapshot)
	other := libc.Xmalloc(tls, 4096)
	assert.Equal(t, frame, tls.Alloc(4096))
	assert.Equal(t, frame, other, "one address, two owners")
}
