package sqlite_test

import (
	"bytes"
	"database/sql"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/with/sqlite"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// child is the environment variable that names the entry of leaves for a child process. SQLite is
// lost in that process.
const child = "UPFRONT_SQLITE_LEAVES"

// used is the environment variable that makes the child use the open object, in builds that detect
// the use.
const used = "UPFRONT_SQLITE_USES"

// leaves are objects that are open when the level is rewound, each with a later use of it.
var leaves = map[string]func(t *testing.T, db *sql.DB) (use func() error){
	"idle": func(_ *testing.T, db *sql.DB) func() error {
		return func() error {
			_, err := db.Exec("INSERT INTO frogs VALUES ('eve')")
			return err
		}
	},
	"transaction": func(t *testing.T, db *sql.DB) func() error {
		tx, err := db.Begin()
		require.NoError(t, err)
		require.NoError(t, db.Close())
		return func() error {
			_, err := tx.Exec("INSERT INTO frogs VALUES ('eve')")
			return err
		}
	},
	"connection": func(t *testing.T, db *sql.DB) func() error {
		c, err := db.Conn(ctx)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		return func() error {
			_, err := c.QueryContext(ctx, "SELECT * FROM frogs")
			return err
		}
	},
	"rows": func(t *testing.T, db *sql.DB) func() error {
		rows, err := db.Query("SELECT * FROM frogs")
		require.NoError(t, err)
		require.True(t, rows.Next())
		require.NoError(t, db.Close())
		// Rows that go on, or are forgotten, make SQLite take the lock of a database that isn't
		// there.
		return func() error {
			runtime.KeepAlive(rows)
			return db.Ping()
		}
	},
	"a file's": func(t *testing.T, _ *sql.DB) func() error {
		file, err := sql.Open("sqlite3", t.TempDir()+"/pond?_journal_mode=WAL")
		require.NoError(t, err)
		_, err = file.Exec("CREATE TABLE frogs(name)")
		require.NoError(t, err)
		return func() error {
			_, err := file.Query("SELECT * FROM frogs")
			return err
		}
	},
}

// TestRewindUnderAnOpenDatabase: the misuse is reported, all bytes come back, SQLite refuses later
// calls, and memory with a new owner isn't written to. In builds that detect stale reads it isn't
// read either.
func TestRewindUnderAnOpenDatabase(t *testing.T) {
	if leave, ok := leaves[os.Getenv(child)]; ok {
		rewindUnder(t, leave)
		return
	}
	program, err := os.Executable()
	require.NoError(t, err)
	for name := range leaves {
		t.Run(name, func(t *testing.T) {
			c := exec.Command(program, "-test.run=^TestRewindUnderAnOpenDatabase$", "-test.v")
			c.Env = append(os.Environ(), child+"="+name)
			said, err := c.CombinedOutput()
			require.NoError(t, err, "%s", said)
			require.Contains(t, string(said), "--- PASS: TestRewindUnderAnOpenDatabase")
			if arena_c.Checked && !arena_c.Race && name != "rows" { // its use doesn't call SQLite
				c = exec.Command(program, c.Args[1:]...)
				c.Env = append(os.Environ(), child+"="+name, used+"=1")
				said, err = c.CombinedOutput()
				require.Error(t, err)
				require.Contains(t, string(said), "memory that was rewound")
			}
		})
	}
}

func rewindUnder(t *testing.T, leave func(t *testing.T, db *sql.DB) (use func() error)) {
	plan := budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 4 * budget.MiB}}}
	b, err := budget.Open(plan)
	require.NoError(t, err)
	r := b.Region("level")
	var use func() error
	_, err = budget.Load(ctx, r, func(s scope.Scope) (*sqlite.Memory, error) {
		m, err := sqlite.Use(s, 2*budget.MiB+reserve, reserve)
		require.NoError(t, err)
		db, err := sql.Open("sqlite3", ":memory:")
		require.NoError(t, err)
		db.SetMaxOpenConns(1)
		_, err = db.Exec("CREATE TABLE frogs(name); INSERT INTO frogs VALUES ('ada'), ('bob'), ('cid')")
		require.NoError(t, err)
		use = leave(t, db)
		return m, nil
	})
	require.NoError(t, err)
	isMisuse(t, r.Rewind(ctx), "the scope closes under an open database: SQLite has ")
	require.Zero(t, r.Report().Used)

	seesReads := arena_c.Checked || arena_c.Asan
	if !seesReads || os.Getenv(used) != "" {
		require.Error(t, use(), "SQLite takes zeros for what is closed")
	}
	level, err := budget.Load(ctx, r, func(s scope.Scope) (*[]byte, error) {
		other := s.BytesUnzeroed(int(s.Free()), 1)
		copy(other, bytes.Repeat([]byte{0xAB}, len(other)))
		return &other, nil
	})
	require.NoError(t, err)
	if !seesReads {
		require.Error(t, use(), "nor are these a database")
	}
	again, err := sql.Open("sqlite3", ":memory:")
	require.NoError(t, err)
	assert.True(t, isFull(again.Ping()))
	require.NoError(t, again.Close())
	for range 3 {
		runtime.GC() // the driver closes forgotten objects
	}
	require.Equal(t, len(*level.Get()), bytes.Count(*level.Get(), []byte{0xAB}), "nobody wrote there")
	require.NoError(t, r.Rewind(ctx))
	_, err = budget.Load(ctx, r, func(s scope.Scope) (*sqlite.Memory, error) { return sqlite.Use(s, budget.MiB, 0) })
	isMisuse(t, err, "a scope closed under an open database")
	require.Zero(t, r.Report().Used)
	require.NoError(t, b.Close())
	runtime.KeepAlive(use)
}
