// Command duckdb prints the report of a program whose library has a malloc of its own. DuckDB's
// builds for Go on linux/amd64 link jemalloc, so a c_heap doesn't bound DuckDB's memory. The report
// says so, and has that memory as outside.
package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"os"

	_ "github.com/duckdb/duckdb-go/v2"

	_ "github.com/upfront-mem/upfront/arena/with/malloc"
	"github.com/upfront-mem/upfront/budget"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// run fills a table in memory, and prints the report as JSON.
func run() (err error) {
	b, err := budget.Open(budget.Plan{Name: "numbers", CHeap: budget.CHeapPlan{Size: 64 * budget.MiB}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.Exec("CREATE TABLE n AS SELECT i, hash(i) AS h FROM range(8_000_000) t(i)"); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(b.Report())
}
