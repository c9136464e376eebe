package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/others/row"
)

// Programs returns the task in a region, with a heap of 16 and of 64 MiB, and as published.
func Programs() []row.Program {
	inRegion := func(size uint64) func(context.Context, *row.Meter, bool) error {
		return func(ctx context.Context, m *row.Meter, short bool) error { return inRegion(ctx, m, short, size) }
	}
	return []row.Program{
		{Task: "sqlite", Name: "in a region, heap of 16 MiB", Run: inRegion(16 * budget.MiB)},
		{Task: "sqlite", Name: "in a region, heap of 64 MiB", Run: inRegion(64 * budget.MiB)},
		{Task: "sqlite", Name: "as published, serialized", Run: published},
	}
}

// most is the bytes of a snapshot: a third more than the filled table takes.
const most = 6 * budget.MiB

func inRegion(ctx context.Context, m *row.Meter, short bool, size uint64) error {
	d, err := Open(ctx, size, most)
	if err != nil {
		return err
	}
	var used uint64
	err = rollBack(ctx, m, short, d.DB, func(n uint64) error {
		used = d.Heap.Stats().Used
		return d.Take(ctx, n)
	}, d.Restore)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	m.Add("in use", mebibytes(used), "MiB")
	if err := ratios(ctx, m, d, used); err != nil {
		return errors.Join(err, d.Close())
	}
	m.Add("snapshot", mebibytes(uint64(d.Ring.Used(1))), "MiB")
	full := double(ctx, d.DB, 16)
	if full == nil {
		return errors.New("a database larger than its heap")
	}
	m.Row.Bound = fmt.Sprintf("%v; the statement is rolled back", full)
	return d.Close()
}

// ratios adds the shortest times of Take, of Restore, and of a copy of the bytes in use, measured
// in turn.
func ratios(ctx context.Context, m *row.Meter, d *Database, used uint64) error {
	from, to := d.block[:used], make([]byte, used)
	var take, restore, memcpy shortest
	for range 31 {
		err := errors.Join(
			take.time(func() error { return d.Take(ctx, 1) }),
			restore.time(func() error { return d.Restore(ctx, 1) }),
			memcpy.time(func() error { copy(to, from); return nil }))
		if err != nil {
			return err
		}
	}
	m.Add("memcpy of the bytes in use", memcpy.milliseconds(), "ms")
	m.Add("take", take.milliseconds()/memcpy.milliseconds(), "× memcpy")
	m.Add("restore", restore.milliseconds()/memcpy.milliseconds(), "× memcpy")
	return nil
}

// published is the driver with its own allocator. Its way to roll back all is a serialization, in
// Go's memory.
func published(ctx context.Context, m *row.Meter, short bool) error {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	snapshots := map[uint64][]byte{}
	err = rollBack(ctx, m, short, db, func(n uint64) (err error) {
		delete(snapshots, n-8)
		snapshots[n], err = serialize(ctx, db)
		return err
	}, func(ctx context.Context, n uint64) error { return deserialize(ctx, db, snapshots[n]) })
	if err != nil {
		return err
	}
	for _, image := range snapshots {
		m.Add("snapshot", mebibytes(uint64(len(image))), "MiB")
		break
	}
	if err := statements(ctx, db, "PRAGMA hard_heap_limit = 1000000"); err != nil {
		return err
	}
	if full := double(ctx, db, 1); full != nil {
		return fmt.Errorf("the heap limit of SQLite works: %w", full)
	}
	m.Row.Bound = "none: PRAGMA hard_heap_limit is without effect in this build of SQLite"
	return nil
}

func deserialize(ctx context.Context, db *sql.DB, image []byte) error {
	return raw(ctx, db, func(c driverConn) error { return c.Deserialize(image) })
}

// rollBack is the task: a table is filled; then, in each round, everything is taken, changed and
// put back. The last eight snapshots stay.
func rollBack(ctx context.Context, m *row.Meter, short bool, db *sql.DB, take func(n uint64) error,
	restore func(ctx context.Context, n uint64) error) error {
	rows, rounds := 40_000, uint64(32)
	if short {
		rows, rounds = 4_000, 9
	}
	if err := fill(ctx, db, rows); err != nil {
		return err
	}
	was, err := sum(ctx, db)
	if err != nil {
		return err
	}
	var taken, restored shortest
	err = m.Measure(func() error {
		for n := range rounds {
			err := taken.time(func() error { return take(n) })
			if err == nil {
				err = change(ctx, db)
			}
			if err == nil {
				err = restored.time(func() error { return restore(ctx, n) })
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if is, err := sum(ctx, db); err != nil || is != was {
		return fmt.Errorf("after %d rounds the sum is %x, before %x: %w", rounds, is, was, err)
	}
	m.Add("take", taken.milliseconds(), "ms")
	m.Add("restore", restored.milliseconds(), "ms")
	return nil
}

// shortest is the shortest time of several.
type shortest struct{ d time.Duration }

func (s *shortest) time(fn func() error) error {
	start := time.Now()
	err := fn()
	if d := time.Since(start); s.d == 0 || d < s.d {
		s.d = d
	}
	return err
}

func (s *shortest) milliseconds() float64 { return math.Max(s.d.Seconds()*1000, 1e-6) }

func mebibytes(n uint64) float64 { return float64(n) / float64(budget.MiB) }
