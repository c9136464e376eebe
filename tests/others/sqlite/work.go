package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"hash/crc32"
)

// fill makes a table of rows, each about 125 bytes with its index.
func fill(ctx context.Context, db *sql.DB, rows int) error {
	return statements(ctx, db, "CREATE TABLE items (id INTEGER PRIMARY KEY, owner INTEGER, name TEXT, data BLOB)",
		"CREATE INDEX items_owner ON items (owner)",
		fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			INSERT INTO items SELECT i, i * 7919 %% 1009, printf('item %%d', i), zeroblob(72) FROM n`, rows))
}

// change deletes a third of the rows, updates all others, and makes a table.
func change(ctx context.Context, db *sql.DB) error {
	return statements(ctx, db, "DELETE FROM items WHERE id % 3 = 0",
		"UPDATE items SET owner = owner + 1, name = name || '!'", "CREATE TABLE gone (item INTEGER REFERENCES items)")
}

// double doubles the rows, up to `times` times, and returns the first error.
func double(ctx context.Context, db *sql.DB, times int) error {
	for range times {
		if err := statements(ctx, db, "INSERT INTO items SELECT NULL, owner, name, data FROM items"); err != nil {
			return err
		}
	}
	return nil
}

func statements(ctx context.Context, db *sql.DB, statements ...string) error {
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// sum returns a checksum of the schema and of all rows, after SQLite's own check of the file.
func sum(ctx context.Context, db *sql.DB) (uint32, error) {
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&verdict); err != nil {
		return 0, err
	}
	if verdict != "ok" {
		return 0, fmt.Errorf("integrity_check: %s", verdict)
	}
	rows, err := db.QueryContext(ctx, `SELECT sql FROM sqlite_schema
		UNION ALL SELECT id || ' ' || owner || ' ' || name || ' ' || hex(data) FROM items`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	var of uint32
	for rows.Next() {
		var line sql.RawBytes
		if err := rows.Scan(&line); err != nil {
			return 0, err
		}
		of = crc32.Update(of, crc32.IEEETable, line)
	}
	return of, rows.Err()
}
