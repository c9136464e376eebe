// Package queries is a server of more SQL queries than fit into its memory. Each query sorts a
// table of its own in memory, with modernc.org/sqlite as published. SQLite's memory isn't a part of
// the plan, so a quota counts it. Without the quota, the same program runs all queries at once, and
// is killed where its memory is limited.
package queries

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/others/row"
)

// Programs returns the server with a quota, and without one.
func Programs() []row.Program {
	return []row.Program{
		{Task: "queries", Name: "in a quota of 256 MiB",
			Run: func(ctx context.Context, m *row.Meter, short bool) error {
				return serve(ctx, m, short, 256*budget.MiB)
			}},
		{Task: "queries", Name: "without a quota",
			Run: func(ctx context.Context, m *row.Meter, short bool) error { return serve(ctx, m, short, 0) }},
	}
}

const (
	clients = 24
	rows    = 16 << 10 // of a query's table, of a KiB each
	// estimate is the memory of a query: its table, the pages of the sorter, and the connection.
	estimate = 64 * budget.MiB
)

// Server runs queries.
type Server struct {
	quota *budget.Quota // nil: each query runs at once
	now   atomic.Int64  // bytes of running queries, as estimated
	most  atomic.Int64
}

// Query runs one query, once its memory fits.
func (s *Server) Query(ctx context.Context) (int, error) {
	if s.quota != nil {
		r, err := s.quota.Reserve(ctx, estimate)
		if err != nil {
			return 0, err
		}
		defer r.Release()
	}
	now := s.now.Add(estimate)
	defer s.now.Add(-estimate)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	return sorted(ctx)
}

// sorted makes a table of random rows in memory, and counts its rows in order.
func sorted(ctx context.Context) (count int, err error) {
	db, err := sql.Open("sqlite", "file::memory:?_pragma=temp_store(memory)")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1) // one connection has one memory
	if _, err := db.ExecContext(ctx, `CREATE TABLE t (x BLOB);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO t SELECT randomblob(1000) FROM n`, rows); err != nil {
		return 0, err
	}
	err = db.QueryRowContext(ctx, `SELECT count(*) FROM (SELECT row_number() OVER (ORDER BY x) FROM t)`).Scan(&count)
	return count, err
}

// serve answers the queries of all clients at once, and looks at the quota meanwhile.
func serve(ctx context.Context, m *row.Meter, short bool, size uint64) (err error) {
	each := 2
	if short {
		each = 1
	}
	var s Server
	var b *budget.Budget
	if size != 0 {
		b, err = budget.Open(budget.Plan{Name: "queries",
			Quotas: []budget.QuotaPlan{{Name: "query", Size: size, Waiters: clients}}})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		s.quota = b.Quota("query")
	}
	start := time.Now()
	err = m.Measure(func() error {
		errs := make([]error, clients)
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				for range each {
					count, err := s.Query(ctx)
					if err == nil && count != rows {
						err = fmt.Errorf("%d rows are sorted, instead of %d", count, rows)
					}
					errs[i] = errors.Join(errs[i], err)
				}
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	m.Add("queries", float64(clients*each)/time.Since(start).Seconds(), "/s")
	m.Add("at once at most", float64(s.most.Load())/estimate, "queries")
	m.Row.Bound = "none: the kernel ends the process"
	if b != nil {
		q := b.Published().Arena("query")
		if q.Peak > size || uint64(s.most.Load()) > size {
			return fmt.Errorf("queries of %d bytes ran at once, and the quota is %d",
				max(q.Peak, uint64(s.most.Load())), size)
		}
		m.Add("waited", float64(q.Waits.Waited), "queries")
		m.Row.Bound = "queries wait in turn"
	}
	return nil
}
