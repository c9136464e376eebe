//go:build linux && cgo

package main

import (
	"database/sql"
	"fmt"

	_ "github.com/mattn/go-sqlite3"
)

// statement answers queries with a database. One of its queries prepares a statement for each call,
// and never closes it.
func statement() (round func() error, err error) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE frogs(name TEXT, age INTEGER)"); err != nil {
		return nil, err
	}
	calls := 0
	return func() error {
		calls++
		if _, err := db.Exec("INSERT INTO frogs VALUES (?, ?)", "frog", calls); err != nil {
			return err
		}
		if calls%16 == 0 {
			_, err = db.Exec("DELETE FROM frogs")
		}
		if err == nil {
			_, err = older(db, calls)
		}
		return err
	}, nil
}

const olderFrogs = "SELECT count(*) FROM frogs WHERE age > ? AND name = ?"

func older(db *sql.DB, age int) (count int, err error) {
	query, err := db.Prepare(olderFrogs) // the leak: statement
	if err != nil {
		return 0, fmt.Errorf("frogs older than %d: %w", age, err)
	}
	err = query.QueryRow(age, "frog").Scan(&count)
	return count, err
}
