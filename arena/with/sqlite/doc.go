// Package sqlite puts all memory of SQLite, used through [github.com/mattn/go-sqlite3], into a heap
// in a scope of a budget. A database in memory can't grow beyond the plan, and ends with its level.
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
// [Memory.Stats] counts the bytes. The package is a module of its own, and needs cgo.
//
// # Limits
//
// SQLite has one memory in a process, so a database can't have a budget of its own. Only SQLite's
// memory is in the heap: the driver's rows and arguments are on the Go heap and in malloc's. Files
// are the system's, and so are their mappings (mmap_size, the index of a WAL). A scope with a heap
// isn't state that package budget/save may restore.
//
// # Full
//
// A statement that needs more memory than is free fails with "out of memory" and is rolled back: an
// sqlite3.Error whose Code is sqlite3.ErrNomem, which errors.As finds. The database is intact, and
// a smaller statement may fit.
//
// A database without any free memory can't even drop a table, because that takes memory first.
// [Memory.CleanUp] lends the reserve for that, for a ROLLBACK, or for PRAGMA integrity_check. With
// PRAGMA secure_delete, which Debian's SQLite has on, a DROP writes each page of the table and
// needs a reserve of its size.
//
// # The end
//
// When the scope closes, SQLite is shut down and has freed every byte. Opening a database then
// fails with "out of memory" until another scope calls [Use].
//
// Databases must be closed before that, with their rows, statements and transactions: call
// s.Own(db) after Use. A scope that closes under an open database is a misuse. The error of its
// Rewind or Close reports it; if a Load replaces the level, Plan.OnError gets that error. The heap
// is then filled with zeros, which SQLite takes for closed objects, and SQLite and Use refuse all
// calls until the process ends.
//
// That isn't safe. A caller that goes on with open objects makes SQLite read memory with a new
// owner, and write to it if the bytes look like a database. The driver does so itself when the
// collector finds rows that weren't closed. A goroutine inside SQLite can't be stopped either.
// Checked builds end the process at such an access, and report the memory's old contents.
package sqlite
