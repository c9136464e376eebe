//go:build rocksdb

// Command rocksdb fills, reads and closes a database of RocksDB on each goroutine. It needs
// Debian's package librocksdb-dev, hence the build tag rocksdb.
package main

// #cgo LDFLAGS: -lrocksdb
// #include <rocksdb/c.h>
// #include <stdlib.h>
//
// enum { rows = 40000, row = 200 };
//
// static void name(char *key, unsigned i) {
//     for (int n = 15; n >= 0; n--, i /= 10) key[n] = (char)('0' + i % 10);
// }
//
// // work writes rows in a mixed order, reads each, and reads them all in order. It returns a
// // checksum, or sets problem.
// static unsigned long work(rocksdb_t *db, char **problem) {
//     unsigned long sum = 0;
//     char key[16], value[row];
//     rocksdb_writeoptions_t *writes = rocksdb_writeoptions_create();
//     rocksdb_readoptions_t *reads = rocksdb_readoptions_create();
//     for (unsigned i = 0; i < rows && !*problem; i++) {
//         unsigned n = i * 7919 % rows;
//         name(key, n);
//         for (int at = 0; at < row; at++) value[at] = (char)(n * 31 + at * n);
//         rocksdb_put(db, writes, key, sizeof key, value, row / 2 + n % (row / 2), problem);
//     }
//     for (unsigned i = 0; i < rows && !*problem; i++) {
//         size_t length = 0;
//         name(key, i * 104729 % rows);
//         char *got = rocksdb_get(db, reads, key, sizeof key, &length, problem);
//         if (got) sum = sum * 31 + length + (unsigned char)got[length - 1];
//         rocksdb_free(got);
//     }
//     rocksdb_iterator_t *at = rocksdb_create_iterator(db, reads);
//     for (rocksdb_iter_seek_to_first(at); rocksdb_iter_valid(at); rocksdb_iter_next(at)) {
//         size_t length = 0;
//         sum = sum * 31 + (unsigned char)rocksdb_iter_value(at, &length)[0] + length;
//     }
//     rocksdb_iter_destroy(at);
//     rocksdb_readoptions_destroy(reads);
//     rocksdb_writeoptions_destroy(writes);
//     return sum;
// }
import "C"

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/upfront-mem/upfront/tests/bench/resident/process"
)

func main() {
	defer process.Open()()
	folder, err := os.MkdirTemp("", "rocksdb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	process.Main(func(goroutine int) (uint64, func(), error) {
		return database(filepath.Join(folder, fmt.Sprint(goroutine)))
	})
}

func database(path string) (sum uint64, free func(), err error) {
	if err := os.RemoveAll(path); err != nil {
		return 0, nil, err
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	options := C.rocksdb_options_create()
	C.rocksdb_options_set_create_if_missing(options, 1)
	C.rocksdb_options_set_write_buffer_size(options, 4<<20)
	var problem *C.char
	db := C.rocksdb_open(options, name, &problem)
	free = func() {
		C.rocksdb_options_destroy(options)
		if db != nil {
			C.rocksdb_close(db)
		}
	}
	if problem == nil {
		sum = uint64(C.work(db, &problem))
	}
	if problem != nil {
		err = errors.New(C.GoString(problem))
		C.rocksdb_free(unsafe.Pointer(problem))
	}
	return sum, free, err
}
