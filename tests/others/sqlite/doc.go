// Package sqlite rolls back a whole SQLite database in memory. The database is modernc.org/sqlite,
// which is SQLite translated to Go, with modernc's database/sql driver. SQLite and the driver are
// unchanged.
//
//	d, err := sqlite.Open(ctx, 16*budget.MiB, 6*budget.MiB) // a *sql.DB with a heap of 16 MiB
//	err = d.Take(ctx, tick)    // tables, indices, schema, settings, temporary tables
//	err = d.Restore(ctx, tick) // in place: the connection stays
//
// By SQLite's own hook, sqlite3_config(SQLITE_CONFIG_MALLOC), SQLite takes its memory from an
// arena.Heap in a state region (hook.go). A ring holds the last eight snapshots. Take and Restore
// run no SQL and name no table. They cost as much after a large change as after a small change.
//
// With modernc's SQLite as published, a program takes a snapshot by serializing the database, and
// restores it by reading it back. Each snapshot is then a copy on the Go heap, and lacks the
// temporary tables. All pages are parsed again after each restore.
//
// Use the package for tests that begin thousands of times with the same database, for simulations
// that go back, and for games with their rules in tables. The package can't roll back a file on
// disk.
//
// # Why the heap is enough
//
// Between two statements, only one address outside the heap leads into the heap: the connection's
// handle, which never changes. All other addresses into the heap are in the heap. So after Restore
// puts the bytes of an earlier moment back in place, the connection is as it was. These parts of
// SQLite are outside of the heap:
//
//   - Frames of C's stack, errno, and the texts and values that the driver passes to a statement.
//     They are in libc's memory, which is from modernc.org/memory. No call is active during Take
//     and Restore, so no frame is in use. The driver frees texts and values when a statement ends.
//   - Locks. The lock of a connection is in the heap, and is unlocked in each snapshot. The static
//     locks are Go globals that SQLite never destroys.
//   - The global list of pages that may be evicted, and its counts. A database in memory never
//     enters this list. Only the caches of files enter it, and the cache of sqlite3_deserialize. So
//     here temp_store is memory, and no file may be attached. With temp_store=file, a Restore would
//     leave pages of a temporary table in the list, and the table's file open.
//   - The state of random numbers: after a Restore, randomblob returns other bytes.
//   - The counters of sqlite3_status, which may drift.
//   - The driver's functions and collations. A connection takes them when it opens.
//
// A replacement of only modernc.org/memory, such as package memory of tests/others, puts libc's
// memory into the same heap. Then a Restore isn't sound, because libc keeps the addresses of C's
// frames in Go values. A test of package memory shows a frame and a block at one address.
//
// # Rows, transactions, statements
//
// [Database.Take] and [Database.Restore] wait for the only connection, so they run with no rows and
// no transaction of database/sql open. The ring's own calls don't wait. After a Restore:
//
//   - Rows that were open at Take and at Restore continue from their place at Take.
//   - Rows that were closed after Take are open again, and have no owner. All data is as it was,
//     and integrity_check is ok. DROP TABLE and VACUUM fail because a statement is in progress,
//     until a snapshot without these rows is restored. Close leaks the rows in the heap, which ends
//     with its region.
//   - A transaction that ended after Take is open again. ROLLBACK ends it.
//
// A prepared statement doesn't hold the connection. A statement that was prepared before Take works
// after Restore. A statement that was prepared after Take is gone after Restore, so close it before
// Restore. SQLite can't detect the use of a statement that is gone. The heap panics if SQLite frees
// an address that isn't a live block's.
//
// A process has one database with the hook, and this database has one connection.
//
// # Full
//
// If the database has no room in the heap, a statement returns SQLite's "out of memory (7)", and
// SQLite rolls the statement back. Reading, Take and Restore work as before. SQLite's memory as
// published has no bound, because this build of SQLite ignores PRAGMA hard_heap_limit.
//
// # Other processes
//
// The heap holds addresses, so hashes of the ring are comparable only within one process. Write
// saves SQLite's own serialization. Read copies a serialization into the database. As a test shows,
// it works in another process and on arm64.
package sqlite
