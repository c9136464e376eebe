// Package sqlite puts all memory of SQLite, used through [github.com/mattn/go-sqlite3], into a heap
// in a scope of a budget. A database in memory can't exceed the plan, and ends with its level.
//
//	level, err := budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*World, error) {
//		memory, err := sqlite.Use(s, 8*budget.MiB, 256*budget.KiB)
//		if err != nil {
//			return nil, err
//		}
//		db, err := sql.Open("sqlite3", ":memory:")
//		if err != nil {
//			return nil, err
//		}
//		s.Own(db) // closed before its memory ends
//		return &World{db, memory}, nil
//	})
//
// [Use] is the only call needed. [Memory.CleanUp] lends the reserve to a full database, and
// [Memory.Stats] returns the heap's counts. The package is a module of its own, and needs cgo.
//
// # Limits
//
// SQLite has one allocator in a process, so all databases share the heap. The driver's rows and
// arguments are on the Go heap and in malloc's. Files are the system's, and so are their mappings
// (mmap_size, the index of a WAL). Package budget/save can't restore SQLite's memory.
//
// # Full
//
// A statement that needs more memory than is free is rolled back and fails with "out of memory", an
// sqlite3.Error whose Code is sqlite3.ErrNomem. The database is intact, and a smaller statement may
// succeed.
//
// Without any free memory not even a DROP works, because it first takes memory. [Memory.CleanUp]
// lends the reserve for it, for a ROLLBACK, or for PRAGMA integrity_check. With PRAGMA
// secure_delete, which is on in Debian's SQLite, a DROP writes each page of the table and needs a
// reserve of its size.
//
// # The end
//
// When the scope closes, SQLite is shut down and frees its memory. Opening a database then fails
// with "out of memory" until the next call of [Use].
//
// Databases must be closed before that, with their rows, statements and transactions: call
// s.Own(db) after Use. A scope that closes while a database is open is a misuse. The error of its
// Rewind or Close reports it; if a Load replaces the level, Plan.OnError gets that error. The heap
// is then filled with zeros, which SQLite takes for closed objects, and SQLite and Use refuse all
// calls until the process ends.
//
// That isn't safe. A caller that continues to use open objects makes SQLite read memory that may
// hold other data by then, and write to it if the bytes look like a database. The driver does so
// itself when the collector finds rows that weren't closed. A goroutine inside SQLite can't be
// stopped. Checked builds end the process at such an access, and report the object that was there.
package sqlite
