//go:build linux && cgo

package main

import "C"

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/mattn/go-sqlite3"

	"github.com/upfront-mem/upfront/arena/with/malloc"
)

const (
	clients = 48
	rounds  = 4
	fulls   = 100    // answers that each client gets in a round
	inserts = 20_000 // of a session at most; their bytes are more than any size
	keeps   = 3      // results of a session that stay open
)

// daemon serves clients in rounds. All of them insert until the first full answer of each, then go
// on until each has its number. No session ends before, so that C's malloc stays full. After the
// rounds one more session has to succeed. The last line of the output has the number of full
// answers.
//
// With the argument "leak", Go code takes 1 MiB from C's full malloc and keeps it, which has to end
// the process.
func daemon(args []string, out io.Writer) error {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return err
	}
	db.SetMaxIdleConns(0) // each session has a connection, and thus a database, of its own
	largest, count := int(malloc.ReadStats().Size/1000), 0
	for n := range rounds {
		var served [clients]session
		for c := range served {
			served[c] = session{db: db, random: rand.New(rand.NewPCG(uint64(n), uint64(c))), largest: largest}
		}
		err := each(served[:], func(s *session) error { return s.serve(inserts, 1) })
		if slices.Contains(args, "leak") {
			for range 1024 {
				C.CString(strings.Repeat("frog", 256))
			}
		}
		err = errors.Join(err, each(served[:], func(s *session) error { return s.serve(inserts, fulls) }))
		err = errors.Join(err, each(served[:], (*session).end))
		if err != nil {
			return fmt.Errorf("round %d: %w", n, err)
		}
		for _, s := range served {
			count += s.fulls
		}
	}
	last := session{db: db, random: rand.New(rand.NewPCG(rounds, 0)), largest: largest}
	if err := errors.Join(last.serve(100, 1), last.end(), db.Close()); err != nil {
		return err
	}
	if last.fulls != 0 {
		return errors.New("a full answer after the load")
	}
	fmt.Fprintln(out, "alive fulls", count)
	return nil
}

// each calls fn for all sessions at the same time. Every second call has a thread of its own, which
// ends with the call.
func each(served []session, fn func(*session) error) error {
	failed := make([]error, len(served))
	var wg sync.WaitGroup
	for c := range served {
		wg.Go(func() {
			if c%2 == 0 {
				runtime.LockOSThread()
			}
			failed[c] = fn(&served[c])
		})
	}
	wg.Wait()
	return errors.Join(failed...)
}

// A session is a database in memory with one table, and results that stay open.
type session struct {
	db      *sql.DB
	conn    *sql.Conn
	begun   bool
	random  *rand.Rand
	largest int // bytes of a row
	kept    [keeps]*sql.Rows
	rows    int // inserted
	bytes   int // of their blobs
	fulls   int // answers
}

var background = context.Background()

// serve inserts and selects until the session has its number of full answers. After such an answer
// the session continues with the same rows.
func (s *session) serve(inserts, fulls int) error {
	for i := 0; i < inserts && s.fulls < fulls; i++ {
		err := s.work(i)
		if isFull(err) {
			s.fulls++
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) work(i int) error {
	if !s.begun {
		return s.begin()
	}
	if err := s.insert(); err != nil || i%16 != 0 {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	return s.keep(i / 16 % keeps)
}

func (s *session) begin() (err error) {
	if s.conn == nil {
		s.conn, err = s.db.Conn(background)
	}
	if err == nil {
		_, err = s.conn.ExecContext(background, "PRAGMA temp_store = MEMORY; CREATE TABLE frogs(name TEXT, skin BLOB)")
	}
	s.begun = err == nil
	return err
}

func (s *session) end() (err error) {
	for _, rows := range s.kept {
		if rows != nil {
			err = errors.Join(err, rows.Close())
		}
	}
	if s.conn != nil {
		err = errors.Join(err, s.conn.Close())
	}
	return err
}

// insert adds a row. Most are far smaller than the largest, so that the last free bytes are used
// too.
func (s *session) insert() error {
	size := 1 + s.random.IntN(s.largest)>>s.random.IntN(12)
	_, err := s.conn.ExecContext(background, "INSERT INTO frogs VALUES (?, zeroblob(?))",
		fmt.Sprint("frog ", s.rows), size)
	if err == nil {
		s.rows++
		s.bytes += size
	}
	return err
}

// check compares the table with the rows that were inserted.
func (s *session) check() error {
	var rows, bytes int
	err := s.conn.QueryRowContext(background, "SELECT count(*), sum(length(skin)) FROM frogs").Scan(&rows, &bytes)
	if err == nil && (rows != s.rows || bytes != s.bytes) {
		err = fmt.Errorf("the table has %d rows of %d bytes; inserted: %d of %d", rows, bytes, s.rows, s.bytes)
	}
	return err
}

// keep replaces a result with a new one. It reads the first row alone, so that the result stays
// open.
func (s *session) keep(at int) error {
	if s.kept[at] != nil {
		if err := s.kept[at].Close(); err != nil {
			return err
		}
	}
	rows, err := s.conn.QueryContext(background, "SELECT name, skin FROM frogs ORDER BY length(skin)")
	s.kept[at] = rows
	if err == nil && !rows.Next() {
		err = rows.Err()
	}
	return err
}

// isFull reports whether the error is SQLite's answer for a NULL of malloc.
func isFull(err error) bool {
	e, ok := errors.AsType[sqlite3.Error](err)
	return ok && (e.Code == sqlite3.ErrNomem || e.ExtendedCode == sqlite3.ErrIoErrNoMem)
}
