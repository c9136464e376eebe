package sqlite

// #include <stddef.h>
//
// // SQLite's, declared here because a build tag selects the driver's header or the system's.
// typedef struct {
//     void *(*malloc)(int);
//     void (*free)(void *);
//     void *(*realloc)(void *, int);
//     int (*size)(void *);
//     int (*roundup)(int);
//     int (*init)(void *);
//     void (*shutdown)(void *);
//     void *data;
// } methods;
// enum { OK = 0, NOMEM = 7, CONFIG_MALLOC = 4 };
// int sqlite3_config(int, ...);
// int sqlite3_initialize(void);
// int sqlite3_shutdown(void);
//
// // The heap's functions, and their first argument; without a context all calls are refused.
// static void *context;
// static void *(*heap_malloc)(void *, size_t);
// static void *(*heap_realloc)(void *, void *, size_t);
// static void (*heap_free)(void *, void *);
// static size_t (*heap_size)(void *, void *);
//
// static void *now(void) { return __atomic_load_n(&context, __ATOMIC_ACQUIRE); }
// static void *malloc_now(int size) {
//     void *c = now();
//     return c == NULL ? NULL : heap_malloc(c, (size_t)size);
// }
// static void *realloc_now(void *p, int size) {
//     void *c = now();
//     return c == NULL ? NULL : heap_realloc(c, p, (size_t)size);
// }
// static void free_now(void *p) {
//     void *c = now();
//     if (c != NULL)
//         heap_free(c, p);
// }
// static int size_now(void *p) {
//     void *c = now();
//     return c == NULL ? 0 : (int)heap_size(c, p);
// }
// static int roundup_now(int size) { return (size + 7) & ~7; }
// static int init_now(void *unused) { return (void)unused, now() == NULL ? NOMEM : OK; }
// static void shutdown_now(void *unused) { (void)unused; }
//
// static void refuse(void) { __atomic_store_n(&context, NULL, __ATOMIC_RELEASE); }
//
// // Both return SQLite's code. Call take while SQLite isn't in use.
// static int take(void) {
//     static const methods ours = {malloc_now, free_now, realloc_now, size_now,
//                                  roundup_now, init_now, shutdown_now, NULL};
//     return sqlite3_config(CONFIG_MALLOC, &ours);
// }
// static int begin(void *c, void *m, void *r, void *f, void *s) {
//     heap_malloc = (void *(*)(void *, size_t))m;
//     heap_realloc = (void *(*)(void *, void *, size_t))r;
//     heap_free = (void (*)(void *, void *))f;
//     heap_size = (size_t (*)(void *, void *))s;
//     __atomic_store_n(&context, c, __ATOMIC_RELEASE);
//     return sqlite3_initialize();
// }
//
// static void end(void) {
//     sqlite3_shutdown();
//     refuse();
// }
import "C"

import (
	"fmt"
	"sync/atomic"

	"github.com/mattn/go-sqlite3"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// Memory is SQLite's memory from Use until the scope closes. Any goroutine may call the methods
// while the scope is open.
type Memory struct {
	block   []byte
	heap    arena.Heap
	shared  arena.Shared
	reserve uint64
	lent    int    // number of clean-ups that run
	idle    uint64 // live blocks while no database is open
}

// current is the Memory that SQLite uses, one for a process. It stays lost after a misuse.
var (
	current atomic.Pointer[Memory]
	lost    = new(Memory)
)

// Use puts all memory of SQLite, for every database of the process, into a heap of size bytes in s,
// until s closes. Call it before a database is opened. The reserve is the part of size for
// [Memory.CleanUp], at most half of it. It has the meaning of CHeapPlan.Reserve in package budget.
//
// Use returns a [scope.Misuse] if the reserve is more than half of size. It also does so if SQLite
// was used before, is in a scope already, or was in a scope that closed under an open database. It
// returns an error that wraps [scope.ErrFull] if size is too small for SQLite to begin. If s has no
// room, Use unwinds.
//
// A database with a table takes some 76,000 bytes. The heap itself takes some 3,000 bytes of size,
// and 16 bytes for each block. No other goroutine may call SQLite during Use and while s closes. In
// between, any goroutine may. Cost: some microseconds, and an entry in the table of limits.owned.
func Use(s scope.Scope, size, reserve uint64) (*Memory, error) {
	if reserve > size/2 {
		return nil, misuse("sqlite.Use: the reserve of %d bytes is a part of the size, %d bytes, and more than half "+
			"of it; raise the size", reserve, size)
	}
	m := &Memory{block: s.BytesUnzeroed(int(size), 64), reserve: reserve}
	var err error
	if m.heap, err = arena.NewHeap(m.block, 256); err != nil {
		return nil, tooSmall(size, err)
	}
	if m.shared, err = m.heap.Shared(); err != nil {
		return nil, tooSmall(size, err)
	}
	m.heap.Reserve(reserve)
	s.Own(ending{m})
	if !current.CompareAndSwap(nil, m) {
		return nil, refused()
	}
	if err = m.begin(size); err != nil {
		current.Store(nil)
		return nil, err
	}
	m.idle = m.Stats().Live
	return m, nil
}

func refused() error {
	if current.Load() == lost {
		return misuse("sqlite.Use: a scope closed under an open database; SQLite is unusable until the process ends")
	}
	return misuse("sqlite.Use: SQLite is in an open scope already: one at a time")
}

func misuse(format string, args ...any) error {
	return &scope.Misuse{Text: fmt.Sprintf(format, args...)}
}

func tooSmall(size uint64, err error) error {
	return fmt.Errorf("sqlite.Use: a size of %d bytes is too small for SQLite to begin; raise it: %w: %w",
		size, scope.ErrFull, err)
}

// begin makes SQLite allocate from m.
func (m *Memory) begin(size uint64) error {
	if C.take() != C.OK {
		return misuse("sqlite.Use: SQLite was used before, and has its memory elsewhere: call Use before a database " +
			"is opened")
	}
	f := m.shared.Functions()
	if code := C.begin(f.Context, f.Malloc, f.Realloc, f.Free, f.Size); code != C.OK {
		C.end()
		return tooSmall(size, sqlite3.ErrNo(code))
	}
	return nil
}

// CleanUp runs fn, such as a ROLLBACK, a DROP or a check, and returns fn's error. While fn runs,
// all databases may use the reserve. Memory that fn leaves allocated is missing from the reserve
// until it is freed. After the scope has closed CleanUp returns a [scope.Misuse], and fn doesn't
// run. Cost: six calls into C.
func (m *Memory) CleanUp(fn func() error) error {
	if current.Load() != m {
		return misuse("sqlite: Memory.CleanUp: its scope is closed")
	}
	m.lend(1)
	defer m.lend(-1)
	return fn()
}

func (m *Memory) lend(more int) {
	if current.Load() != m { // fn closed the scope
		return
	}
	m.shared.Locked(func() {
		m.lent += more
		if m.lent == 0 {
			m.heap.Reserve(m.reserve)
		} else {
			m.heap.Reserve(0)
		}
	})
}

// Stats returns the heap's counts, including 16 bytes of header for each block, and one block for
// the heap's lock. All counts are zero after the scope has closed. Cost: two calls into C.
func (m *Memory) Stats() (stats arena.HeapStats) {
	if current.Load() == m {
		m.shared.Locked(func() { stats = m.heap.Stats() })
	}
	return stats
}

// ending is the value that the scope closes.
type ending struct{ *Memory }

// Close shuts SQLite down. If a database is open, SQLite is lost.
func (e ending) Close() error {
	m := e.Memory
	if current.Load() != m {
		return nil // Use was refused
	}
	var open uint64
	m.shared.Locked(func() {
		if open = m.heap.Stats().Live - m.idle; open != 0 {
			C.refuse()
		}
	})
	if open != 0 {
		current.Store(lost)
		clear(m.block)
		return misuse("sqlite: the scope closes under an open database: SQLite has %d blocks there. Close databases, "+
			"rows and transactions first: s.Own(db) after sqlite.Use", open)
	}
	C.end()
	current.Store(nil)
	return m.shared.Err()
}
