package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/with/sqlite"
	"github.com/upfront-mem/upfront/arena/with/sqlite/internal/system"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// reserve suffices for a ROLLBACK, a DROP and a check of the whole database when all else is used.
const reserve = 384 * budget.KiB

var ctx = context.Background()

func pond(t *testing.T, size uint64) budget.Region {
	t.Helper()
	plan := budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: size}}}
	return budgettest.Open(t, plan).Region("level")
}

// play runs fn on SQLite in a heap that has room bytes next to the reserve, and ends the level. A
// block takes the bytes by which half of the heap is more than the room. SQLite must have freed
// every block, and the level every byte.
func play(t *testing.T, r budget.Region, room, reserve uint64, fn func(s scope.Scope, m *sqlite.Memory)) {
	t.Helper()
	require.Zero(t, r.Report().Used)
	var before, after uint64
	_, err := budget.Load(ctx, r, func(s scope.Scope) (*sqlite.Memory, error) {
		m, err := sqlite.Use(s, max(room, reserve)+reserve, reserve)
		if err != nil {
			return nil, err
		}
		if room < reserve {
			block := system.Alloc(reserve - room)
			require.NotNil(t, block)
			s.Defer(func() { system.Free(block) })
		}
		before = m.Stats().Used
		s.Defer(func() { after = m.Stats().Used })
		fn(s, m)
		return m, nil
	})
	require.NoError(t, err)
	require.NoError(t, r.Rewind(ctx))
	require.Equal(t, before, after, "bytes live before and after")
	require.Zero(t, r.Report().Used)
}

// open returns a database that the scope closes, with one connection: each to :memory: is a
// database of its own.
func open(t *testing.T, s scope.Scope, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", dsn)
	require.NoError(t, err)
	s.Own(db)
	db.SetMaxOpenConns(1)
	return db
}

func read(db *sql.DB, query string) error {
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func isFull(err error) bool {
	var said sqlite3.Error
	return errors.As(err, &said) && said.Code == sqlite3.ErrNomem
}

func number(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	require.NoError(t, db.QueryRow(query).Scan(&n), query)
	return n
}

func isSound(t *testing.T, db *sql.DB) {
	t.Helper()
	var says string
	require.NoError(t, db.QueryRow("PRAGMA integrity_check").Scan(&says))
	require.Equal(t, "ok", says)
}

// insert inserts n frogs, each committed or all in a transaction that stays open.
func insert(db *sql.DB, n int) error {
	statement, err := db.Prepare("INSERT INTO frogs(name, pond, notes) VALUES (?, ?, zeroblob(?))")
	if err != nil {
		return err
	}
	defer statement.Close()
	for i := range n {
		if _, err = statement.Exec(fmt.Sprintf("frog %d", i*7919%10007), i%37, i*31%700); err != nil {
			return err
		}
	}
	return nil
}

// today lists a day's statements of a database; "" stands for inserts.
var today = []string{
	"CREATE TABLE frogs(id INTEGER PRIMARY KEY, name TEXT, pond INT, notes BLOB)",
	"CREATE INDEX by_pond ON frogs(pond, name)",
	"BEGIN",
	"",
	"COMMIT",
	"UPDATE frogs SET notes = zeroblob(900) WHERE pond < 9",
	"CREATE TEMP TABLE ponds AS SELECT pond, count(*) AS n, max(name) AS last FROM frogs GROUP BY pond ORDER BY last",
	"DELETE FROM frogs WHERE pond % 3 = 1",
	"VACUUM",
}

func day(db *sql.DB) (err error) {
	for i := 0; i < len(today) && err == nil; i++ {
		if today[i] == "" {
			err = insert(db, 500)
		} else {
			_, err = db.Exec(today[i])
		}
	}
	return err
}

// rollback ends the transaction, unless SQLite has ended it.
func rollback(db *sql.DB) error {
	_, err := db.Exec("ROLLBACK")
	if err != nil && strings.Contains(err.Error(), "no transaction is active") {
		return nil
	}
	return err
}

// toTheBrim runs a transaction that is too long, and then commits rows until no other fits. It
// reports whether a DROP was refused until CleanUp lent the reserve.
func toTheBrim(t *testing.T, db *sql.DB, m *sqlite.Memory) (dropRefused bool) {
	t.Helper()
	before := number(t, db, "SELECT count(*) FROM frogs")
	_, err := db.Exec("BEGIN")
	if err == nil {
		err = insert(db, math.MaxInt32)
	}
	require.True(t, isFull(err), "%v", err)
	require.NoError(t, m.CleanUp(func() error { return rollback(db) }))
	require.Equal(t, before, number(t, db, "SELECT count(*) FROM frogs"), "rolled back")
	require.True(t, isFull(insert(db, math.MaxInt32)))
	_, err = db.Exec("PRAGMA secure_delete = OFF; DROP TABLE frogs")
	require.True(t, err == nil || isFull(err), "%v", err)
	if err == nil {
		return false
	}
	require.NoError(t, m.CleanUp(func() error {
		isSound(t, db)
		assert.Greater(t, number(t, db, "SELECT count(*) FROM frogs"), before, "what was inserted for good is there")
		assert.Zero(t, number(t, db, "SELECT count(*) FROM frogs WHERE pond % 3 = 1 AND id <= 500"),
			"what was deleted isn't")
		_, err := db.Exec("DROP TABLE frogs")
		isSound(t, db)
		return err
	}))
	return true
}

func manySizes() int { return step.Pick(25, 25, 1000) }

// shrunk returns size i of a series from 2.5 MiB down to 64 KiB, in which each size is smaller by
// the same factor.
func shrunk(i, sizes int) uint64 {
	const largest, smallest = 2560 * budget.KiB, 64 * budget.KiB
	return uint64(largest * math.Pow(float64(smallest)/largest, float64(i)/float64(sizes-1)))
}

// TestManySizes: in ever smaller heaps a day's work is done, or SQLite is out of memory. Then the
// open transaction is rolled back, the database is intact, and all memory comes back.
func TestManySizes(t *testing.T) {
	sizes := manySizes()
	r := pond(t, 4*budget.MiB)
	worked, dropsRefused := 0, 0
	for i := range sizes {
		size := shrunk(i, sizes)
		play(t, r, size, reserve, func(s scope.Scope, m *sqlite.Memory) {
			db := open(t, s, ":memory:")
			err := day(db)
			if err == nil {
				worked++
				if toTheBrim(t, db, m) {
					dropsRefused++
				}
				return
			}
			require.True(t, isFull(err), "%d bytes: %v", size, err)
			require.NoError(t, m.CleanUp(func() error { isSound(t, db); return rollback(db) }), "%d bytes", size)
			require.NoError(t, m.CleanUp(func() error {
				isSound(t, db)
				_, err := db.Exec("PRAGMA secure_delete = OFF; DROP TABLE IF EXISTS frogs")
				return err
			}), "%d bytes", size)
		})
	}
	t.Logf("%d sizes from %d down to %d: %d worked, %d ended with an error", sizes, shrunk(0, sizes),
		shrunk(sizes-1, sizes), worked, sizes-worked)
	assert.Positive(t, worked)
	assert.Less(t, worked, sizes)
	assert.Positive(t, dropsRefused, "without the reserve what is full can't even DROP")
}

// TestManySizesWithoutAReserve: a full database in the middle of a transaction can be closed.
func TestManySizesWithoutAReserve(t *testing.T) {
	r := pond(t, 4*budget.MiB)
	for i := range manySizes() {
		play(t, r, shrunk(i, manySizes()), 0, func(s scope.Scope, _ *sqlite.Memory) {
			db := open(t, s, ":memory:")
			err := day(db)
			if err == nil {
				run(t, db, "BEGIN")
				err = insert(db, math.MaxInt32)
			}
			require.True(t, isFull(err), "%v", err)
		})
	}
}

// TestTooSmall: a size too small for SQLite, or for the heap, is an error that names the size, and
// another Use may follow.
func TestTooSmall(t *testing.T) {
	r := pond(t, budget.MiB)
	began, refused := 0, 0
	for size := uint64(0); size < 4096; size += 8 {
		_, err := budget.Load(ctx, r, func(s scope.Scope) (*sqlite.Memory, error) { return sqlite.Use(s, size, 0) })
		if err != nil {
			refused++
			require.ErrorIs(t, err, budget.ErrFull)
			require.ErrorContains(t, err, fmt.Sprintf("a size of %d bytes is too small", size))
		} else {
			began++
		}
		require.NoError(t, r.Rewind(ctx))
		require.Zero(t, r.Report().Used)
	}
	assert.Positive(t, began)
	assert.Positive(t, refused)
	_, err := budget.Load(ctx, r, func(s scope.Scope) (*sqlite.Memory, error) { return sqlite.Use(s, budget.MiB, 0) })
	var full *scope.FullError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, "regions[0].size", full.Key)
	play(t, r, 512*budget.KiB, 0, func(s scope.Scope, m *sqlite.Memory) { isSound(t, open(t, s, ":memory:")) })
}

// TestEachRequestRefused: a load ends with a full error at any request.
func TestEachRequestRefused(t *testing.T) {
	plan := budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}}
	budgettest.FailEach(t, plan, func(b *budget.Budget) error {
		_, err := budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*sqlite.Memory, error) {
			m, err := sqlite.Use(s, 400_000, 100_000)
			if err == nil {
				err = open(t, s, ":memory:").Ping()
			}
			return m, err
		})
		return err
	})
}

// TestLoadThatFails: a full error after databases were opened closes them, and frees all memory.
func TestLoadThatFails(t *testing.T) {
	r := pond(t, 4*budget.MiB)
	for range 3 {
		_, err := budget.Load(ctx, r, func(s scope.Scope) (*sqlite.Memory, error) {
			m, err := sqlite.Use(s, budget.MiB+reserve, reserve)
			require.NoError(t, err)
			require.NoError(t, day(open(t, s, ":memory:")))
			s.Bytes(3 * budget.MiB)
			return m, err
		})
		require.ErrorIs(t, err, budget.ErrFull)
		require.Zero(t, r.Report().Used)
	}
}

// TestSortsMoreThanThereIs: a sort that may not spill to a file is out of memory.
func TestSortsMoreThanThereIs(t *testing.T) {
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
	play(t, pond(t, 4*budget.MiB), budget.MiB, reserve, func(s scope.Scope, m *sqlite.Memory) {
		db := open(t, s, ":memory:")
		_, err := db.Exec("PRAGMA temp_store = MEMORY; CREATE TABLE pond(frogs); INSERT INTO pond VALUES (1)")
		require.NoError(t, err)
		for _, query := range []string{
			"SELECT hex(i * 7919 % 10007) AS x FROM n ORDER BY x",
			"SELECT count(*) FROM n GROUP BY i * 7919 % 10007, hex(i)",
			"SELECT DISTINCT hex(i) FROM n",
			"SELECT group_concat(hex(i)) FROM n",
			"SELECT length(zeroblob(50000000) || i) FROM n",
		} {
			used := m.Stats().Used
			err := read(db, numbers+query)
			require.True(t, isFull(err), "%s: %v", query, err)
			require.NoError(t, m.CleanUp(func() error {
				isSound(t, db)
				return nil
			}))
			assert.Equal(t, 1, number(t, db, "SELECT count(*) FROM pond"))
			assert.Less(t, m.Stats().Used, used+256*budget.KiB, "what it took is back, caches excepted")
		}
	})
}

// TestManyConnections: databases of several goroutines, and the connections of a pool to one file,
// in a heap that has room and in one that hasn't.
func TestManyConnections(t *testing.T) {
	for _, size := range []uint64{12 * budget.MiB, 2 * budget.MiB, 512 * budget.KiB, 128 * budget.KiB} {
		play(t, pond(t, 16*budget.MiB), size, reserve, func(s scope.Scope, m *sqlite.Memory) {
			file := open(t, s, filepath.Join(t.TempDir(), "pond?_journal_mode=WAL"))
			file.SetMaxOpenConns(4)
			_, err := file.Exec("CREATE TABLE visits(frog)")
			require.True(t, err == nil || isFull(err), "%v", err)
			var wait sync.WaitGroup
			for i := range 4 {
				db := open(t, s, ":memory:")
				wait.Go(func() {
					for range 3 {
						_, err := db.Exec("DROP TABLE IF EXISTS frogs; DROP TABLE IF EXISTS ponds")
						if err == nil {
							err = day(db)
						}
						assert.True(t, err == nil || isFull(err), "%v", err)
						assert.True(t, err == nil || size < 12*budget.MiB, "%v", err)
						err = m.CleanUp(func() error { return rollback(db) })
						assert.True(t, err == nil || isFull(err), "%v", err)
						_, err = file.Exec("INSERT INTO visits VALUES (?)", i)
						assert.True(t, err == nil || size < 12*budget.MiB, "%v", err)
						_ = m.Stats()
					}
				})
			}
			wait.Wait()
			if size == 12*budget.MiB {
				assert.Equal(t, 12, number(t, file, "SELECT count(*) FROM visits"))
				isSound(t, file)
			}
		})
	}
}

// TestScopesOfAnyKind: SQLite's memory may be in a worker's scratch, or in a scope of a level that
// loads; a load ends the level before it.
func TestScopesOfAnyKind(t *testing.T) {
	b := budgettest.Open(t,
		budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 2 * budget.MiB}},
			Scratch: budget.ScratchPlan{Workers: 1, Size: 2 * budget.MiB}})
	query := func(s scope.Scope) error {
		m, err := sqlite.Use(s, budget.MiB, 0)
		if err == nil {
			isSound(t, open(t, s, ":memory:"))
			assert.NotZero(t, m.Stats().Peak)
		}
		return err
	}
	for range 3 {
		require.NoError(t, b.Scratch(0, 0).Do("query", query))
		_, err := budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*int, error) {
			if err := s.Do("query", query); err != nil {
				return nil, err
			}
			return new(int), query(s)
		})
		require.NoError(t, err)
		_, err = budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*int, error) { return new(int), query(s) })
		require.NoError(t, err)
		require.NoError(t, b.Region("level").Rewind(ctx))
		require.Zero(t, b.Region("level").Report().Used)
	}
}

// TestReserve: the reserve is a part of the size, at most half of it.
func TestReserve(t *testing.T) {
	const size = 1000 * 1024
	r := pond(t, size+budget.KiB) // no room for size+reserve
	for _, c := range []struct{ size, reserve uint64 }{{size, size / 2}, {size + 1, size / 2}, {size, 1}} {
		_, err := budget.Load(ctx, r, func(s scope.Scope) (*sqlite.Memory, error) {
			m, err := sqlite.Use(s, c.size, c.reserve)
			require.NoError(t, err)
			stats := m.Stats()
			assert.InDelta(t, c.reserve, stats.Reserve, 16)
			assert.Less(t, stats.Size, c.size)
			db := open(t, s, ":memory:")
			run(t, db, "CREATE TABLE frogs(name)")
			for err == nil {
				_, err = db.Exec("INSERT INTO frogs VALUES (zeroblob(1000))")
			}
			require.True(t, isFull(err), "%v", err)
			assert.LessOrEqual(t, m.Stats().Peak, stats.Size-c.reserve+16)
			return m, nil
		})
		require.NoError(t, err)
		require.NoError(t, r.Rewind(ctx))
	}
	for _, c := range []struct{ size, reserve uint64 }{{size, size/2 + 1}, {size + 1, size/2 + 1}, {0, 1},
		{100_000, math.MaxUint64}} {
		_, err := budget.Load(ctx, r, func(s scope.Scope) (*sqlite.Memory, error) {
			free := s.Free()
			m, err := sqlite.Use(s, c.size, c.reserve)
			assert.Equal(t, free, s.Free(), "it took nothing")
			return m, err
		})
		isMisuse(t, err, fmt.Sprintf("the reserve of %d bytes is a part of the size, %d bytes, and more than half of "+
			"it; raise the size", c.reserve, c.size))
	}
	play(t, r, size/2, size/4, func(s scope.Scope, m *sqlite.Memory) { isSound(t, open(t, s, ":memory:")) })
}

func TestTwice(t *testing.T) {
	other := pond(t, budget.MiB)
	play(t, pond(t, 4*budget.MiB), budget.MiB, reserve, func(s scope.Scope, m *sqlite.Memory) {
		db := open(t, s, ":memory:")
		isSound(t, db)
		_, err := budget.Load(ctx, other, func(s scope.Scope) (*sqlite.Memory, error) {
			return sqlite.Use(s, 100_000, 0)
		})
		isMisuse(t, err, "SQLite is in an open scope already")
		require.Zero(t, other.Report().Used)
		require.NoError(t, day(db))
	})
}

func isMisuse(t *testing.T, err error, says string) {
	t.Helper()
	var misuse *scope.Misuse
	require.ErrorAs(t, err, &misuse)
	require.ErrorContains(t, err, "sqlite")
	require.ErrorContains(t, err, says)
}

// TestAfterTheScope: each later use returns an error of its own kind.
func TestAfterTheScope(t *testing.T) {
	var m *sqlite.Memory
	var db *sql.DB
	play(t, pond(t, 4*budget.MiB), budget.MiB, reserve, func(s scope.Scope, now *sqlite.Memory) {
		m, db = now, open(t, s, ":memory:")
		require.NoError(t, day(db))
		require.NotZero(t, m.Stats())
	})
	assert.Zero(t, m.Stats())
	isMisuse(t, m.CleanUp(func() error { panic("it doesn't run") }), "its scope is closed")
	assert.EqualError(t, db.Ping(), "sql: database is closed")
	again, err := sql.Open("sqlite3", ":memory:")
	require.NoError(t, err)
	assert.True(t, isFull(again.Ping()))
	require.NoError(t, again.Close())
}

func TestCleanUpThatPanics(t *testing.T) {
	play(t, pond(t, 4*budget.MiB), budget.MiB, reserve, func(s scope.Scope, m *sqlite.Memory) {
		before := m.Stats().Reserve
		require.InDelta(t, reserve, before, 16)
		require.Panics(t, func() {
			_ = m.CleanUp(func() error {
				require.Zero(t, m.Stats().Reserve)
				panic("no")
			})
		})
		require.Equal(t, before, m.Stats().Reserve)
	})
}

func TestAfterTheFirstConnection(t *testing.T) {
	require.NoError(t, system.Use())
	db, err := sql.Open("sqlite3", ":memory:")
	require.NoError(t, err)
	require.NoError(t, db.Ping())
	r := pond(t, budget.MiB)
	use := func(s scope.Scope) (*sqlite.Memory, error) { return sqlite.Use(s, 100_000, 0) }
	_, err = budget.Load(ctx, r, use)
	isMisuse(t, err, "SQLite was used before")
	require.Zero(t, r.Report().Used)
	isSound(t, db)
	require.NoError(t, db.Close())
	_, err = budget.Load(ctx, r, use)
	isMisuse(t, err, "SQLite was used before")
	system.Shutdown()
	play(t, r, 100_000, 0, func(s scope.Scope, m *sqlite.Memory) { isSound(t, open(t, s, ":memory:")) })
}

// TestPage: the page shows the example's code, with less indentation.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	undented := strings.NewReplacer("\t", "")
	shown := strings.Split(string(page), "```go\n")[1:]
	require.NotEmpty(t, shown)
	for _, code := range shown {
		code, _, _ = strings.Cut(code, "```")
		for part := range strings.SplitSeq(code, "\n\n") {
			assert.Contains(t, undented.Replace(string(example)), undented.Replace(part))
		}
	}
}
