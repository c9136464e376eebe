//go:build linux && cgo

package main

import (
	"context"
	"database/sql"

	"github.com/upfront-mem/upfront/arena/with/sqlite"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// region is statement for a database in a region. Another of its queries has the leak.
func region() (round func() error, err error) {
	loaded, err := budget.Load(context.Background(), level, func(s scope.Scope) (*sql.DB, error) {
		memory, err := sqlite.Use(s, 60*budget.MiB, 0)
		if err != nil {
			return nil, err
		}
		used = func() uint64 { return memory.Stats().Used }
		db, err := sql.Open("sqlite3", ":memory:")
		if err == nil {
			s.Own(db)
		}
		return db, err
	})
	if err != nil {
		return nil, err
	}
	db := loaded.Get()
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE frogs(name TEXT, age INTEGER); INSERT INTO frogs VALUES ('Lily', 3)")
	return func() error {
		if _, err := db.Exec("UPDATE frogs SET age = age + 1"); err != nil {
			return err
		}
		_, err := oldest(db)
		return err
	}, err
}

const oldestFrog = "SELECT coalesce(max(age), 0) FROM frogs"

func oldest(db *sql.DB) (age int, err error) {
	query, err := db.Prepare(oldestFrog) // the leak: region
	if err != nil {
		return 0, err
	}
	err = query.QueryRow().Scan(&age)
	return age, err
}
