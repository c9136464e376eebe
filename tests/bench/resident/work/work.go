// Package work is a program whose resident memory climbs while its Go heap is small. Each of 16
// goroutines opens an SQLite file by cgo, runs three grouping queries and closes the file, six
// times. The commands next to this package run the work with different mallocs: see README.md in
// the folder above.
package work

import (
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"os"
	"sync"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/upfront-mem/upfront/tests/bench/resident/process"
)

const (
	goroutines = 16
	rounds     = 6
)

const visits = `
CREATE TABLE visit(id INTEGER PRIMARY KEY, visitor, page, ms, agent);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)
INSERT INTO visit SELECT i, 'visitor ' || (i * 7919 % 5003),
	'/page/' || (i * 104729 % 997) || '/of/' || (i % 13), i * 31 % 2000,
	'agent ' || (i * 15485863 % 20011) || ' with a name as long as a browser has'
FROM n`

var queries = []string{
	"SELECT page, count(*) AS n, sum(ms) FROM visit GROUP BY page ORDER BY n DESC, page LIMIT 10",
	"SELECT visitor, max(ms), group_concat(id) FROM visit GROUP BY visitor ORDER BY visitor LIMIT 10",
	"SELECT substr(agent, 1, 12), count(DISTINCT page) AS n, avg(ms) FROM visit GROUP BY 1 ORDER BY n DESC, 1 LIMIT 10",
}

// Main is the program: FILE make writes the file of visits, and FILE HOW works with it. It prints
// the figures of the process as JSON: resident and peak bytes, CPU time in ms, and a checksum of
// the results. If HOW is "round", Main calls trim after each round; if it is "end", once, after
// the last. plan is the size of the program's plan, which Main prints too.
func Main(plan uint64, trim func()) {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: FILE HOW")
	}
	file, how := os.Args[1], os.Args[2]
	if how == "make" {
		if err := create(file); err != nil {
			log.Fatal(err)
		}
		return
	}
	sum := uint64(0)
	for round := range rounds {
		of, err := together(file)
		if err != nil {
			log.Fatal(err)
		}
		sum = sum*31 + of
		if how == "round" || how == "end" && round == rounds-1 {
			trim()
		}
	}
	time.Sleep(process.Idle)
	f, err := process.Figures()
	if err != nil {
		log.Fatal(err)
	}
	f["plan"], f["sum"] = float64(plan), float64(sum>>12) // a float64 has no more bits
	if err := process.AddOutside(f); err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		log.Fatal(err)
	}
}

func create(file string) error {
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		return err
	}
	_, err = db.Exec(visits)
	return errors.Join(err, db.Close())
}

// together queries the file in all goroutines. When it returns, no connection is open.
func together(file string) (sum uint64, err error) {
	var all sync.WaitGroup
	var sums [goroutines]uint64
	var errs [goroutines]error
	for i := range goroutines {
		all.Go(func() { sums[i], errs[i] = alone(file) })
	}
	all.Wait()
	for _, of := range sums {
		sum = sum*31 + of
	}
	return sum, errors.Join(errs[:]...)
}

func alone(file string) (sum uint64, err error) {
	db, err := sql.Open("sqlite3", "file:"+file+"?mode=ro")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, query := range queries {
		of, err := results(db, query)
		if err != nil {
			return 0, err
		}
		sum = sum*31 + of
	}
	return sum, nil
}

func results(db *sql.DB, query string) (sum uint64, err error) {
	rows, err := db.Query(query)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var a, b, c string
		if err := rows.Scan(&a, &b, &c); err != nil {
			return 0, err
		}
		for _, x := range a + b + c {
			sum = sum*31 + uint64(x)
		}
	}
	return sum, rows.Err()
}
