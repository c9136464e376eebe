// Package sqlite puts all memory of SQLite, used through [github.com/mattn/go-sqlite3], into a heap
// in a scope of a budget. A database in memory can't exceed the plan, and ends with the scope's
// level.
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
// [Use] is the only call needed. Here the heap has 8 MiB, and its reserve 256 KiB of them.
// [Memory.CleanUp] lends the reserve to a full database, and [Memory.Stats] returns the heap's
// counts. The package is a module of its own, and needs cgo.
//
// # Limits
//
// SQLite has one allocator in a process, so all databases share the heap. The driver's rows and
// arguments are on the Go heap and in malloc's. Files and their mappings (mmap_size, the index of a
// WAL) are the system's memory. Package budget/save can't restore SQLite's memory.
//
// # Full
//
// A statement that needs more memory than is free is rolled back and fails with "out of memory", an
// sqlite3.Error whose Code is sqlite3.ErrNomem. The database is intact, and a smaller statement may
// succeed.
//
// Without any free memory not even a DROP works, because a DROP first takes memory.
// [Memory.CleanUp] lends the reserve to a DROP, a ROLLBACK, or a PRAGMA integrity_check. With
// PRAGMA secure_delete, which is on in Debian's SQLite, a DROP writes each page of the table and
// needs a reserve of the table's size.
//
// # The end
//
// When the scope closes, SQLite is shut down and frees its memory. Opening a database then fails
// with "out of memory" until the next call of [Use].
//
// Before the scope closes, databases must be closed, with their rows, statements and transactions:
// call s.Own(db) after Use. It is a misuse if the scope closes while a database is open. Rewind or
// Close then returns an error; if a Load replaces the level, Plan.OnError gets the error. The heap
// is then filled with zeros, which SQLite takes for closed objects. Until the process ends SQLite
// can't allocate, and Use returns an error.
//
// After such a misuse the program isn't safe. A caller that continues to use open objects makes
// SQLite read memory that may hold other data by then. If the bytes look like a database, SQLite
// also writes to them. The driver itself uses an open object when the collector finds rows that
// weren't closed. A goroutine inside SQLite can't be stopped. Checked builds end the process at an
// access to the freed heap, and report the object that was there.
package sqlite
