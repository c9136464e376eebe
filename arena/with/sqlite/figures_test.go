package sqlite_test

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/with/sqlite"
	"github.com/upfront-mem/upfront/arena/with/sqlite/internal/system"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/clients/paired"
)

const frogs = "CREATE TABLE frogs(id INTEGER PRIMARY KEY, name TEXT, pond INT, notes BLOB)"

// rows inserts n frogs one by one, and reads them by key, by index, sorted, and in groups, with a
// call into C for each row, as in a program.
func rows(t *testing.T, db *sql.DB, n int) {
	run(t, db, frogs, "BEGIN")
	require.NoError(t, insert(db, n))
	run(t, db, "COMMIT", "CREATE INDEX by_pond ON frogs(pond, name)")
	byKey, err := db.Prepare("SELECT name FROM frogs WHERE id = ?")
	require.NoError(t, err)
	defer byKey.Close()
	var name string
	for i := range n {
		require.NoError(t, byKey.QueryRow(1+i*7919%n).Scan(&name))
	}
	ask(t, db, "SELECT name FROM frogs WHERE pond = 7 ORDER BY name", "SELECT pond, count(*) FROM frogs GROUP BY pond",
		"SELECT name FROM frogs ORDER BY notes, name LIMIT 1000")
}

// statements is work of SQLite alone: n rows in few statements.
func statements(t *testing.T, db *sql.DB, n int) {
	run(t, db, frogs)
	_, err := db.Exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "+
		"INSERT INTO frogs(name, pond, notes) SELECT 'frog ' || (i * 7919 % 10007), i % 37, zeroblob(i * 31 % 700) "+
		"FROM n", n)
	require.NoError(t, err)
	run(t, db, "CREATE INDEX by_pond ON frogs(pond, name)", "UPDATE frogs SET notes = zeroblob(900) WHERE pond < 9")
	ask(t, db, "SELECT max(x) FROM (SELECT name || pond AS x FROM frogs ORDER BY x)",
		"SELECT max(n) FROM (SELECT name, count(*) AS n, group_concat(pond) FROM frogs GROUP BY name)")
	run(t, db, "DELETE FROM frogs WHERE pond % 3 = 1")
}

func run(t *testing.T, db *sql.DB, queries ...string) {
	t.Helper()
	for _, query := range queries {
		_, err := db.Exec(query)
		require.NoError(t, err, query)
	}
}

func ask(t *testing.T, db *sql.DB, queries ...string) {
	t.Helper()
	for _, query := range queries {
		require.NoError(t, read(db, query), query)
	}
}

// TestFigures compares with SQLite's default, malloc. Each turn opens a database and closes it.
func TestFigures(t *testing.T) {
	r := pond(t, 80*budget.MiB)
	live := uint64(0)
	for _, work := range []struct {
		name string
		n    int
		do   func(t *testing.T, db *sql.DB, n int)
	}{
		{"a row, in few statements", 20_000, statements},
		{"a row in and out, one by one", 5000, rows},
	} {
		f := paired.Compare(t, work.name, work.n, func(n int) {
			live += ours(t, r, func(db *sql.DB) { work.do(t, db, n) })
		}, func(n int) {
			theirs(t, func(db *sql.DB) { work.do(t, db, n) })
		})
		if !arena_c.Checked && !arena_c.Asan && !arena_c.Race {
			assert.LessOrEqual(t, f.GarbageRatio, 1.1, work.name)
		}
	}
	paired.Live(t, live+r.Report().Used)
}

// ours runs do on a database in a heap. It returns the bytes that SQLite still has after the
// database was closed.
func ours(t *testing.T, r budget.Region, do func(db *sql.DB)) (live uint64) {
	play(t, r, 64*budget.MiB, 0, func(s scope.Scope, m *sqlite.Memory) {
		before := m.Stats().Used
		s.Defer(func() { live = m.Stats().Used - before })
		do(open(t, s, ":memory:"))
	})
	return live
}

func theirs(t *testing.T, do func(db *sql.DB)) {
	require.NoError(t, system.Use())
	db, err := sql.Open("sqlite3", ":memory:")
	require.NoError(t, err)
	db.SetMaxOpenConns(1)
	do(db)
	require.NoError(t, db.Close())
	system.Shutdown()
}
