// Package sqlite rolls back a whole SQLite database in memory. The database is modernc.org/sqlite,
// which is SQLite translated to Go, with its database/sql driver. Both are unchanged.
//
//	d, err := sqlite.Open(ctx, 16*budget.MiB, 6*budget.MiB) // a *sql.DB with a heap of 16 MiB
//	err = d.Take(ctx, tick)    // tables, indices, schema, settings, temporary tables
//	err = d.Restore(ctx, tick) // in place: the connection stays
//
// SQLite's own hook, sqlite3_config(SQLITE_CONFIG_MALLOC), has it take its memory from an
// arena.Heap in a state region (hook.go). A ring holds the last eight snapshots. Take and Restore
// run no SQL, name no table, and cost the same after a small and a large change.
//
// As published, a program serializes the database and reads it back. Each snapshot is then a copy
// on the Go heap without temporary tables, and all pages are parsed again after each restore.
//
// Use the package for tests that begin thousands of times with the same database, for simulations
// that go back, and for games whose rules are in tables. It can't roll back a file on disk.
//
// # Why the heap is enough
//
// Between two statements, one address outside the heap leads into it: the connection's handle, and
// the handle never changes. All other addresses into the heap are in the heap. If the bytes of an
// earlier moment are put back at the same place, the connection is as it was. These parts of SQLite
// are outside:
//
//   - Frames of C's stack, errno, and the texts and values that the driver passes to a statement.
//     They are in libc's memory, from modernc.org/memory. No call is active during Take and
//     Restore, so no frame is in use. The driver frees texts and values when a statement ends.
//   - Locks. The lock of a connection is in the heap, and is open in each snapshot. The static
//     locks are Go globals that SQLite never destroys.
//   - The global list of pages that may be evicted, and its counts. A database in memory never
//     enters it: only caches of files do, and that of sqlite3_deserialize. So temp_store is memory
//     here, and no file may be attached. With temp_store=file, a Restore would leave pages of a
//     temporary table in the list, and its file open.
//   - The state of random numbers: after a Restore, randomblob returns other bytes.
//   - The counters of sqlite3_status, which may drift.
//   - The driver's functions and collations. A connection takes them when it opens.
//
// A replacement of modernc.org/memory alone, such as package memory of this module's folder, puts
// libc's memory into the same heap. A Restore isn't sound then: libc keeps the addresses of C's
// frames in Go values. A test of that package has a frame and a block at one address.
//
// # Rows, transactions, statements
//
// [Database.Take] and [Database.Restore] wait for the only connection, so they run with no rows and
// no transaction of database/sql open. The ring's own calls don't wait. Then:
//
//   - Rows that are open in both Take and Restore continue from their place in Take.
//   - Rows that were closed after Take are open again after Restore, and have no owner. All data is
//     as it was, and integrity_check is ok. DROP TABLE and VACUUM fail with a statement in
//     progress, until a snapshot without the rows is restored. Close leaks them in the heap, which
//     ends with its region.
//   - A transaction that ended after Take is open again after Restore. ROLLBACK ends it.
//
// A prepared statement doesn't hold the connection. One that was prepared before Take works after
// Restore. One that was prepared after Take is gone after Restore: close it before. SQLite can't
// detect its use; the heap panics if SQLite frees an address of no live block.
//
// A process has one database with the hook, and the database one connection.
//
// # Full
//
// A database larger than the heap is SQLite's "out of memory (7)". SQLite rolls the statement back.
// The database can be read, taken and restored as before. As published there is no such bound: this
// build of SQLite ignores PRAGMA hard_heap_limit.
//
// # Other processes
//
// The heap holds addresses, so a hash of the ring is comparable within its process only. Write
// saves SQLite's own serialization. Read copies one into the database: in another process, and on
// arm64, as a test shows.
package sqlite
