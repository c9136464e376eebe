//go:build linux && cgo

package main

// #cgo CFLAGS: -fno-builtin-malloc
// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stddef.h>
// #include <stdlib.h>
//
// typedef char *(*get)(void);
//
// static void *load(const char *path) {
//     void *library = dlopen(path, RTLD_NOW);
//     return library == NULL ? NULL : dlsym(library, "get");
// }
//
// static int touch(void *f) { return ((get)f)()[0]++; }
//
// static long fill(void) {
//     size_t n;
//     long blocks = 0;
//     for (n = 65536; n != 0; n /= 4)
//         while (malloc(n) != NULL)
//             blocks++;
//     return blocks;
// }
import "C"

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"unsafe"
)

// late loads a library, fills C's malloc, and lets a thread that was there before use the library's
// thread-local data.
func late(args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("want the path of a library")
	}
	begin, done := make(chan unsafe.Pointer), make(chan int)
	go func() {
		runtime.LockOSThread()
		begin <- nil
		done <- int(C.touch(<-begin))
	}()
	<-begin
	get := C.load(C.CString(args[0]))
	if get == nil {
		return errors.New("the library doesn't load: " + C.GoString(C.dlerror()))
	}
	if C.fill() == 0 {
		return errors.New("no block was free")
	}
	begin <- get
	if n := <-done; n != 0 {
		return fmt.Errorf("the thread's data was %d; want 0", n)
	}
	fmt.Fprintln(out, "alive")
	return nil
}
