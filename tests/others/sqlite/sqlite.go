package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"

	"modernc.org/sqlite"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// Database is an SQLite database in memory that rolls back whole. It's the one of its process.
type Database struct {
	*sql.DB
	Heap   arena.Heap
	Ring   *save.Ring // eight snapshots
	budget *budget.Budget
	block  []byte
}

// dsn keeps temporary tables and sorts in memory: see the package's text.
const dsn = "file::memory:?_pragma=temp_store(memory)"

// none is the root of the state: the database's memory is all of it.
type none struct{ _ byte }

var noneMaker = scope.Plain[none]()

// Open opens an empty database with size bytes for all that SQLite allocates. A snapshot holds at
// most `most` of them.
func Open(ctx context.Context, size, most uint64) (*Database, error) {
	d := &Database{}
	if err := d.open(ctx, size, most); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Database) open(ctx context.Context, size, most uint64) (err error) {
	// The ring has eight snapshots, one to write the next into, and one with all bytes, for a hash.
	d.budget, err = budget.Open(budget.Plan{Name: "sqlite", Pages: budget.Pages{Prefault: budget.Off},
		Regions: []budget.RegionPlan{
			{Name: "database", Size: size + 64*budget.KiB, State: true},
			{Name: "history", Size: size + 9*most + 2*budget.MiB},
		}})
	if err != nil {
		return err
	}
	database, history := d.budget.Region("database"), d.budget.Region("history")
	var state *save.State
	_, err = budget.Load(ctx, database, func(s scope.Scope) (root *none, err error) {
		state, root = save.Begin(database, s, noneMaker)
		d.block = s.BytesUnzeroed(int(size), 64)
		if d.Heap, err = arena.NewHeap(d.block, 256); err != nil {
			return nil, err
		}
		d.Heap.MayLive()
		state.Library(d.Heap, most)
		return root, nil
	})
	if err != nil {
		return err
	}
	_, err = budget.Load(ctx, history, func(s scope.Scope) (*save.Ring, error) {
		d.Ring = save.NewRing(s, 8, state)
		return d.Ring, nil
	})
	if err != nil {
		return err
	}
	if err := use(d.Heap, d.block); err != nil {
		return err
	}
	if d.DB, err = sql.Open("sqlite", dsn); err != nil {
		return err
	}
	d.SetMaxOpenConns(1)
	return d.PingContext(ctx)
}

// Close closes the database, and then its memory.
func (d *Database) Close() (err error) {
	if d.DB != nil {
		err = d.DB.Close()
	}
	if d.budget == nil {
		return err
	}
	end(d.Heap)
	return errors.Join(err, d.budget.Close())
}

// Take makes snapshot n of the database. It waits, until ctx ends, for open rows and transactions.
func (d *Database) Take(ctx context.Context, n uint64) error {
	return d.alone(ctx, func() error { return d.Ring.Take(n) })
}

// Restore puts snapshot n in place. It waits, until ctx ends, for open rows and transactions.
func (d *Database) Restore(ctx context.Context, n uint64) error {
	return d.alone(ctx, func() error { return d.Ring.Restore(ctx, n) })
}

// alone runs fn while it holds the only connection: no rows and no transaction are open.
func (d *Database) alone(ctx context.Context, fn func() error) error {
	c, err := d.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn()
}

// Write writes the database to a file, as SQLite's own serialization: each SQLite reads it.
func (d *Database) Write(ctx context.Context, file string) error {
	image, err := serialize(ctx, d.DB)
	if err != nil {
		return err
	}
	return os.WriteFile(file, image, 0o600)
}

// Read replaces the database by that of a file. It copies the pages: sqlite3_deserialize would put
// them into a cache that is shared by the process.
func (d *Database) Read(ctx context.Context, file string) error {
	return raw(ctx, d.DB, func(c driverConn) error {
		from, err := c.NewRestore(file)
		if err != nil {
			return err
		}
		_, err = from.Step(-1)
		return errors.Join(err, from.Finish())
	})
}

// driverConn is a connection of the driver, which doesn't export its type.
type driverConn interface {
	Serialize() ([]byte, error)
	Deserialize([]byte) error
	NewRestore(file string) (*sqlite.Backup, error)
}

func raw(ctx context.Context, db *sql.DB, fn func(driverConn) error) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Raw(func(c any) error { return fn(c.(driverConn)) })
}

func serialize(ctx context.Context, db *sql.DB) (image []byte, err error) {
	err = raw(ctx, db, func(c driverConn) (err error) { image, err = c.Serialize(); return err })
	return image, err
}
