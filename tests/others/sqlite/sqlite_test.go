//go:build !race

// In race builds the blocks are Go memory, and checkptr ends a program in libc's first access.

package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/others/row"
	"github.com/upfront-mem/upfront/tests/step"
)

// child has the test program do one of these tasks in place of the tests: "TASK ARGUMENT".
const child = "OTHERS_SQLITE_CHILD"

var tasks = map[string]func(ctx context.Context, argument string) (any, error){
	"read": goesOn, "program": runs, "temporary": leaves,
}

func TestMain(m *testing.M) {
	task, argument, found := strings.Cut(os.Getenv(child), " ")
	if !found {
		os.Exit(m.Run())
	}
	result, err := tasks[task](context.Background(), argument)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("%+v", result)
}

// inChild returns the output of a task in another process.
func inChild(t *testing.T, task string, command ...string) string {
	t.Helper()
	if len(command) == 0 {
		self, err := os.Executable()
		require.NoError(t, err)
		command = []string{self}
	}
	c := exec.Command(command[0], command[1:]...)
	c.Env = append(os.Environ(), child+"="+task)
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// goesOn reads a database, rolls it back once, changes it, and returns the sum of the rows.
func goesOn(ctx context.Context, name string) (of any, err error) {
	d, err := Open(ctx, 4*budget.MiB, 4*budget.MiB)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	for _, do := range []func() error{
		func() error { return d.Read(ctx, name) },
		func() error { return d.Take(ctx, 1) },
		func() error { return statements(ctx, d.DB, "DELETE FROM items") },
		func() error { return d.Restore(ctx, 1) },
		func() error { return change(ctx, d.DB) },
	} {
		if err := do(); err != nil {
			return 0, err
		}
	}
	return sum(ctx, d.DB)
}

// opened returns a database with rows, and its sum.
func opened(t *testing.T, size uint64, rows int) (*Database, uint32) {
	t.Helper()
	d, err := Open(t.Context(), size, size)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	require.NoError(t, fill(t.Context(), d.DB, rows))
	return d, sumOf(t, d)
}

func sumOf(t *testing.T, d *Database) uint32 {
	t.Helper()
	of, err := sum(t.Context(), d.DB)
	require.NoError(t, err)
	return of
}

func do(t *testing.T, d *Database, list ...string) {
	t.Helper()
	require.NoError(t, statements(t.Context(), d.DB, list...))
}

// TestRollBack: everything is as it was after each Restore, the schema included. The statements
// between are random: they split pages, sort, join, make indices and temporary tables, and fail.
func TestRollBack(t *testing.T) {
	ctx := t.Context()
	d, was := opened(t, 4*budget.MiB, 1000)
	require.NoError(t, d.Take(ctx, 1))
	hash, err := d.Ring.Hash(1)
	require.NoError(t, err)
	live := d.Heap.Stats().Live
	random := rand.New(rand.NewPCG(1, 2))
	for round := range step.Pick(20, 1000, 1000) {
		require.NoError(t, change(ctx, d.DB))
		for range random.IntN(5) {
			require.NoError(t, statements(ctx, d.DB, some[random.IntN(len(some))]))
		}
		assert.Error(t, statements(ctx, d.DB, "INSERT INTO items (id) VALUES (1), (1)"))
		assert.NotEqual(t, was, sumOf(t, d), "without Restore")
		require.NoError(t, d.Restore(ctx, 1))
		require.Equal(t, live, d.Heap.Stats().Live)
		require.NoError(t, d.Take(ctx, 2))
		again, err := d.Ring.Hash(2)
		require.NoError(t, err)
		require.Equal(t, hash, again, "round %d", round)
		require.Equal(t, was, sumOf(t, d), "round %d", round)
	}
	require.NoError(t, d.DB.Close())
	assert.Zero(t, d.Heap.Stats().Live, "SQLite holds no memory without a connection")
}

var some = []string{
	"CREATE TEMP TABLE IF NOT EXISTS t AS SELECT * FROM items ORDER BY name DESC",
	"CREATE INDEX IF NOT EXISTS items_name ON items (name, owner)",
	"INSERT INTO items SELECT NULL, owner, name, randomblob(100) FROM items WHERE id % 7 = 0",
	"WITH RECURSIVE n (i) AS (SELECT 1 UNION SELECT i * 7 % 5003 FROM n) " +
		"SELECT count(*) FROM n JOIN items ON owner = i",
	"SELECT owner, group_concat(name) OVER (PARTITION BY owner ORDER BY id) FROM items GROUP BY owner",
	"VACUUM",
	"PRAGMA user_version = 7",
	"DROP INDEX IF EXISTS items_owner",
	"ANALYZE",
	"ALTER TABLE items RENAME COLUMN data TO bytes; ALTER TABLE items RENAME COLUMN bytes TO data",
}

// TestHalfRestored: some bytes that aren't put back are found. It's the control of TestRollBack.
func TestHalfRestored(t *testing.T) {
	ctx := t.Context()
	d, was := opened(t, 4*budget.MiB, 1000)
	require.NoError(t, d.Take(ctx, 1))
	require.NoError(t, change(ctx, d.DB))
	found := bytes.Index(d.block, []byte("item 500!"))
	require.Positive(t, found)
	part := d.block[found-200 : found+200]
	kept := bytes.Clone(part)
	require.NoError(t, d.Restore(ctx, 1))
	copy(part, kept)
	is, err := sum(ctx, d.DB)
	assert.False(t, err == nil && is == was, "the sum is as before")
	require.NoError(t, d.Restore(ctx, 1))
	assert.Equal(t, was, sumOf(t, d))
}

// TestWaits: Take and Restore wait for rows and transactions until the context ends.
func TestWaits(t *testing.T) {
	d, was := opened(t, 4*budget.MiB, 1000)
	require.NoError(t, d.Take(t.Context(), 1))
	rows, err := d.QueryContext(t.Context(), "SELECT id FROM items")
	require.NoError(t, err)
	ends := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	assert.ErrorIs(t, d.Take(ends(), 2), context.DeadlineExceeded)
	assert.ErrorIs(t, d.Restore(ends(), 1), context.DeadlineExceeded)
	require.NoError(t, rows.Close())
	tx, err := d.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	assert.ErrorIs(t, d.Take(ends(), 2), context.DeadlineExceeded)
	require.NoError(t, tx.Rollback())
	assert.False(t, d.Ring.Has(2))
	require.NoError(t, d.Restore(t.Context(), 1))
	assert.Equal(t, was, sumOf(t, d))
}

// TestOpenRows: the ring itself doesn't wait. Rows that are open in Take and in Restore go back
// too. Rows that were closed between are open again after Restore, until another snapshot is
// restored: their owner is gone.
func TestOpenRows(t *testing.T) {
	ctx := t.Context()
	d, was := opened(t, 4*budget.MiB, 1000)
	require.NoError(t, d.Take(ctx, 1))
	rows, err := d.QueryContext(ctx, "SELECT id FROM items ORDER BY id")
	require.NoError(t, err)
	next := func(rows *sql.Rows) (id int) {
		require.True(t, rows.Next())
		require.NoError(t, rows.Scan(&id))
		return id
	}
	for want := 1; want <= 3; want++ {
		require.Equal(t, want, next(rows))
	}
	require.NoError(t, d.Ring.Take(2))
	for want := 4; want <= 500; want++ {
		require.Equal(t, want, next(rows))
	}
	require.NoError(t, d.Ring.Restore(ctx, 2))
	assert.Equal(t, 4, next(rows), "open in both")

	require.NoError(t, rows.Close())
	do(t, d, "DROP TABLE items")
	require.NoError(t, d.Ring.Restore(ctx, 2))
	assert.Equal(t, was, sumOf(t, d), "the rows are as they were")
	assert.ErrorContains(t, statements(ctx, d.DB, "DROP TABLE items"), "locked", "the ghost reads")
	assert.ErrorContains(t, statements(ctx, d.DB, "VACUUM"), "SQL statements in progress")

	require.NoError(t, d.Restore(ctx, 1))
	do(t, d, "VACUUM", "DROP TABLE items")
	require.NoError(t, d.Ring.Restore(ctx, 2))
	assert.Equal(t, was, sumOf(t, d))
	require.NoError(t, d.DB.Close())
	assert.NotZero(t, d.Heap.Stats().Live, "the ghost leaks")
}

// TestOpenTransaction: a transaction that is open in Take is open again after Restore, in SQLite
// but not in database/sql.
func TestOpenTransaction(t *testing.T) {
	ctx := t.Context()
	d, was := opened(t, 4*budget.MiB, 1000)
	tx, err := d.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = tx.Exec("DELETE FROM items WHERE id < 500")
	require.NoError(t, err)
	require.NoError(t, d.Ring.Take(1))
	require.NoError(t, tx.Commit())
	require.NoError(t, d.Ring.Restore(ctx, 1))
	_, err = d.BeginTx(ctx, nil)
	assert.ErrorContains(t, err, "cannot start a transaction within a transaction")
	do(t, d, "ROLLBACK")
	assert.Equal(t, was, sumOf(t, d), "the journal is part of the snapshot")
}

// TestTemporaryFiles is the control of temp_store: with files, a Restore leaves one open, and the
// pages of a temporary table in a list of the process.
func TestTemporaryFiles(t *testing.T) {
	assert.Equal(t, "0", inChild(t, "temporary memory"))
	assert.Equal(t, "1", inChild(t, "temporary file"))
}

// leaves returns how many files a Restore leaves open.
func leaves(ctx context.Context, store string) (any, error) {
	d, err := Open(ctx, 4*budget.MiB, 4*budget.MiB)
	if err != nil {
		return nil, err
	}
	var before, after []os.DirEntry
	for _, do := range []func() error{
		func() error { return fill(ctx, d.DB, 1000) },
		func() error { return statements(ctx, d.DB, "PRAGMA temp_store = "+store) },
		func() error { return d.Take(ctx, 1) },
		func() (err error) { before, err = os.ReadDir("/proc/self/fd"); return err },
		func() error {
			return statements(ctx, d.DB, "CREATE TEMP TABLE other (name)", "PRAGMA temp.cache_size = 20",
				"INSERT INTO other SELECT name || hex(data) FROM items")
		},
		func() error { return d.Restore(ctx, 1) },
		func() (err error) { after, err = os.ReadDir("/proc/self/fd"); return err },
	} {
		if err := do(); err != nil {
			return nil, err
		}
	}
	return len(after) - len(before), nil
}

// TestPrepared: a statement that is prepared before Take works after Restore.
func TestPrepared(t *testing.T) {
	ctx := t.Context()
	d, was := opened(t, 4*budget.MiB, 1000)
	insert, err := d.PrepareContext(ctx, "INSERT INTO items (name) VALUES (?)")
	require.NoError(t, err)
	defer insert.Close()
	require.NoError(t, d.Take(ctx, 1))
	for range 3 {
		for i := range 50 {
			_, err = insert.Exec(fmt.Sprint(i))
			require.NoError(t, err)
		}
		do(t, d, "CREATE TABLE other (id)") // has SQLite prepare it again
		_, err = insert.Exec("last")
		require.NoError(t, err)
		require.NotEqual(t, was, sumOf(t, d))
		require.NoError(t, d.Restore(ctx, 1))
		require.Equal(t, was, sumOf(t, d))
	}
}

// TestLargerThanTheHeap: SQLite reports that it's out of memory, rolls the statement or the
// transaction back, and the database can still be taken and restored.
func TestLargerThanTheHeap(t *testing.T) {
	ctx := t.Context()
	d, was := opened(t, budget.MiB, 1000)
	require.NoError(t, d.Take(ctx, 1))
	for range 3 {
		assert.EqualError(t, double(ctx, d.DB, 10), "out of memory (7)")
		full := sumOf(t, d)
		require.NoError(t, d.Take(ctx, 2))
		do(t, d, "DELETE FROM items")
		require.NoError(t, d.Restore(ctx, 2))
		assert.Equal(t, full, sumOf(t, d))
		require.NoError(t, d.Restore(ctx, 1))
		assert.Equal(t, was, sumOf(t, d))
	}
	tx, err := d.BeginTx(ctx, nil)
	require.NoError(t, err)
	for err == nil {
		_, err = tx.Exec("INSERT INTO items SELECT NULL, owner, name, data FROM items")
	}
	assert.EqualError(t, err, "out of memory (7)")
	tx.Rollback()
	assert.Equal(t, was, sumOf(t, d))
	_, err = Open(ctx, 64*budget.KiB, 64*budget.KiB)
	assert.ErrorContains(t, err, "another database is open")
}

// TestLargerThanASnapshot: Take returns a full with the number to raise, and changes nothing.
func TestLargerThanASnapshot(t *testing.T) {
	ctx := t.Context()
	d, err := Open(ctx, 4*budget.MiB, 256*budget.KiB)
	require.NoError(t, err)
	defer d.Close()
	require.NoError(t, fill(ctx, d.DB, 100))
	was := sumOf(t, d)
	require.NoError(t, d.Take(ctx, 1))
	require.NoError(t, double(ctx, d.DB, 5))
	full := d.Take(ctx, 2)
	assert.ErrorIs(t, full, scope.ErrFull)
	assert.ErrorContains(t, full, "Library")
	require.NoError(t, d.Restore(ctx, 1))
	assert.Equal(t, was, sumOf(t, d))
}

// TestOutside: a snapshot holds SQLite's addresses, so the ring takes none from a file.
func TestOutside(t *testing.T) {
	ctx := t.Context()
	d, was := opened(t, 4*budget.MiB, 100)
	require.NoError(t, d.Take(ctx, 1))
	var image bytes.Buffer
	require.NoError(t, d.Ring.Write(&image, 1))
	_, err := d.Ring.Read(&image)
	assert.ErrorContains(t, err, "Authenticated")
	require.NoError(t, d.Restore(ctx, 1))
	assert.Equal(t, was, sumOf(t, d))
}

// TestTooSmall: a heap without room for a connection is SQLite's error as well.
func TestTooSmall(t *testing.T) {
	_, err := Open(t.Context(), 4*budget.KiB, 4*budget.KiB)
	assert.ErrorContains(t, err, "out of memory")
}

// TestElsewhere: another process, and another machine, go on with a serialized database.
func TestElsewhere(t *testing.T) {
	ctx := t.Context()
	d, _ := opened(t, 4*budget.MiB, 1000)
	name := filepath.Join(t.TempDir(), "items.db")
	require.NoError(t, d.Write(ctx, name))
	require.NoError(t, change(ctx, d.DB))
	want := fmt.Sprint(sumOf(t, d))
	assert.Equal(t, want, inChild(t, "read "+name))
	t.Run("arm64", func(t *testing.T) {
		step.Needs(t, step.Gate)
		for tool, debian := range map[string]string{"qemu-aarch64-static": "qemu-user-static",
			"aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu"} {
			if _, err := exec.LookPath(tool); err != nil {
				step.Lacks(t, tool, debian)
			}
		}
		program := filepath.Join(t.TempDir(), "sqlite.test")
		build := exec.Command("go", "test", "-c", "-o", program, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=1", "GOOS=linux", "GOARCH=arm64", "CC=aarch64-linux-gnu-gcc")
		out, err := build.CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Equal(t, want, inChild(t, "read "+name, "qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", program))
	})
}

// TestPrograms runs the short form of each program, in a process of its own as main does.
func TestPrograms(t *testing.T) {
	for i, p := range Programs() {
		t.Logf("%s: %s", p.Name, inChild(t, fmt.Sprint("program ", i)))
	}
}

func runs(ctx context.Context, index string) (any, error) {
	var m row.Meter
	i, err := strconv.Atoi(index)
	if err != nil {
		return nil, err
	}
	err = Programs()[i].Run(ctx, &m, true)
	return m.Row, err
}
