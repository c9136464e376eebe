package sqlite

import (
	"errors"
	"fmt"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/upfront-mem/upfront/arena"
)

// The heap of SQLite, and the address of its block. SQLite has one allocator for each process.
var (
	heap      arena.Heap
	base      unsafe.Pointer // nil: SQLite reports that it's out of memory
	installed bool
)

// use has SQLite take its memory from h, a heap on the block. It returns an error if a connection
// is open: without one SQLite holds no memory.
func use(h arena.Heap, block []byte) error {
	if base != nil && heap.Stats().Live != 0 {
		return errors.New("sqlite: another database is open in this process; close it first")
	}
	if !installed {
		tls := libc.NewTLS()
		defer tls.Close()
		args := tls.Alloc(8)
		defer tls.Free(8)
		of := libc.VaList(args, uintptr(unsafe.Pointer(&methods)))
		if code := sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_MALLOC, of); code != sqlite3.SQLITE_OK {
			return fmt.Errorf("sqlite: sqlite3_config returned %d: SQLite is in use; call Open before "+
				"other calls of the driver", code)
		}
		installed = true
	}
	heap, base = h, unsafe.Pointer(unsafe.SliceData(block))
	return nil
}

// end ends the use of h.
func end(h arena.Heap) {
	if heap == h {
		heap, base = arena.Heap{}, nil
	}
}

// methods are the functions of SQLite's sqlite3_mem_methods, as its translation to Go calls them.
var methods = sqlite3.Tsqlite3_mem_methods{
	FxMalloc:   pointer(alloc),
	FxFree:     pointer(release),
	FxRealloc:  pointer(resize),
	FxSize:     pointer(sizeOf),
	FxRoundup:  pointer(roundUp),
	FxInit:     pointer(func(*libc.TLS, uintptr) int32 { return sqlite3.SQLITE_OK }),
	FxShutdown: pointer(func(*libc.TLS, uintptr) {}),
}

// pointer returns the C function pointer of fn, which isn't a closure.
func pointer[F any](fn F) uintptr { return *(*uintptr)(unsafe.Pointer(&fn)) }

// at returns the pointer of an address in the heap.
func at(p uintptr) unsafe.Pointer { return unsafe.Add(base, p-uintptr(base)) }

func alloc(_ *libc.TLS, size int32) uintptr {
	if base == nil {
		return 0
	}
	return uintptr(heap.Alloc(uint64(size), 8))
}

func resize(_ *libc.TLS, p uintptr, size int32) uintptr {
	q, err := heap.Realloc(at(p), uint64(size))
	must(err)
	return uintptr(q)
}

func release(_ *libc.TLS, p uintptr) { must(heap.Free(at(p))) }

func sizeOf(_ *libc.TLS, p uintptr) int32 {
	size, err := heap.SizeOf(at(p))
	must(err)
	return int32(size)
}

func roundUp(_ *libc.TLS, size int32) int32 { return (size + 7) &^ 7 }

// must panics if SQLite passes an address of no live block: of a statement that began after the
// snapshot that was restored.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
