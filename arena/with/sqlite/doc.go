// Package sqlite puts all memory of SQLite, as [github.com/mattn/go-sqlite3] has it, into a heap of
// a budget: a database is as large as the plan says, and what is too much for it is SQLite's own
// error. It is a module of its own, and needs cgo.
//
// It can't give each database a budget of its own: SQLite has one memory in a process. It doesn't
// govern what isn't SQLite's: what the driver makes of rows and arguments lies on the Go heap and in
// malloc's, files are the system's, and what SQLite maps of them (mmap_size, the index of a WAL) too.
// A scope with a heap isn't state that package budget/save may put back.
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
// # Full
//
// A statement that needs more than there is fails with sqlite3.ErrNomem, "out of memory", and is
// rolled back; the database is sound, and a smaller statement may fit. What is full to the brim can't
// even drop a table, which takes memory first: [Memory.CleanUp] lends it the reserve for that, for a
// ROLLBACK, or for PRAGMA integrity_check. With PRAGMA secure_delete, which Debian's SQLite has on, a
// DROP writes each page of the table, and needs a reserve of its size. The error is an sqlite3.Error
// whose Code is sqlite3.ErrNomem: ask with errors.As.
//
// # The end
//
// When the scope closes, SQLite is shut down and has given back every byte. From then on it refuses:
// a database that is opened is "out of memory", until another scope calls [Use].
//
// Databases end before the scope does, and all that is open in them: rows, statements, transactions.
// Have s.Own close them, behind Use. A scope that closes under an open one is a misuse, and the error of
// its Rewind or Close says so; where a Load replaces what was there, it is Plan.OnError's. Then the heap
// is overwritten with zeros, which SQLite takes for what is closed, SQLite refuses whatever is asked of
// it, and Use is refused until the process ends. That isn't safety: who goes on to use what was open
// has SQLite read memory that somebody else fills, and if these bytes look like a database, write there;
// the driver does so when the collector finds rows that nobody closed. A goroutine that is inside SQLite
// while its memory ends can't be stopped either. Checked builds end the process at such an access, and
// say what lay there.
package sqlite
