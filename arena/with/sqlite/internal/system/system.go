// Package system restores SQLite's original malloc, for comparison in tests. It also allocates as
// SQLite does.
package system

// #include <stddef.h>
//
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
// enum { CONFIG_MALLOC = 4, CONFIG_GETMALLOC = 5 };
// int sqlite3_config(int, ...);
// int sqlite3_shutdown(void);
// void *sqlite3_malloc64(unsigned long long);
// void sqlite3_free(void *);
//
// static methods first;
// static void remember(void) { sqlite3_config(CONFIG_GETMALLOC, &first); }
// static int use(void) { return sqlite3_config(CONFIG_MALLOC, &first); }
import "C"

import (
	"unsafe"

	"github.com/mattn/go-sqlite3"
)

func init() { C.remember() }

// Use makes SQLite use the system's memory until Shutdown. SQLite must be shut down, without an
// open database.
func Use() error {
	if code := C.use(); code != 0 {
		return sqlite3.ErrNo(code)
	}
	return nil
}

// Shutdown shuts SQLite down. No database may be open.
func Shutdown() { C.sqlite3_shutdown() }

// Alloc returns a block of SQLite's memory, or nil.
func Alloc(size uint64) unsafe.Pointer { return C.sqlite3_malloc64(C.ulonglong(size)) }

// Free frees a block of Alloc.
func Free(block unsafe.Pointer) { C.sqlite3_free(block) }
