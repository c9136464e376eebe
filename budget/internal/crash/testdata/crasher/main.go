// Command crasher crashes in the way that its argument names.
package main

// #cgo LDFLAGS: -lpthread
// #include <pthread.h>
// #include <stdint.h>
// #include <stdio.h>
// #include <string.h>
//
// static size_t describe(const void *arg, const char *name, uintptr_t address, char *out, size_t room) {
//     size_t length = strlen(name);
//     (void)room;
//     memcpy(out, "TEXT: byte ", 11);
//     out[11] = (char)('0' + (address - (uintptr_t)arg) % 10);
//     memcpy(out + 12, " of ", 4);
//     memcpy(out + 16, name, length);
//     out[16 + length] = '\n';
//     return 17 + length;
// }
// static size_t describe_after(const void *arg, const char *name, uintptr_t address, char *out, size_t room) {
//     (void)name, (void)address, (void)room;
//     memcpy(out, "TEXT: no longer  \n", 18);
//     out[16] = (char)('0' + (uintptr_t)arg);
//     return 18;
// }
// static size_t describe_badly(const void *arg, const char *name, uintptr_t address, char *out, size_t room) {
//     (void)name, (void)address, (void)out, (void)room;
//     return (size_t)*(volatile const char *)arg;
// }
// static size_t describe_nothing(const void *arg, const char *name, uintptr_t address, char *out, size_t room) {
//     (void)arg, (void)name, (void)address, (void)out, (void)room;
//     return 0;
// }
// static void *function(int which) {
//     static size_t (*const all[])(const void *, const char *, uintptr_t, char *, size_t) = {describe, describe_after, describe_badly,
//         describe_nothing};
//     return (void *)all[which];
// }
// static __attribute__((noinline)) int deep_in_c(volatile char *p) { return *p; }
// static __attribute__((noinline)) int read_in_c(char *p) { return deep_in_c(p) + 1; }
// static void *run(void *p) { deep_in_c(p); return NULL; }
// static void read_in_thread(char *p) {
//     pthread_t thread;
//     pthread_create(&thread, NULL, run, p);
//     pthread_join(thread, NULL);
// }
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/budget/internal/crash"
)

const size = 1 << 16

func main() {
	block := without(size)
	base := unsafe.Pointer(unsafe.SliceData(block))
	at := unsafe.Add(base, 4097)
	ways[os.Args[1]](crash.Range{Name: "the block", Base: base, Size: size, Describe: C.function(0),
		Arg: uintptr(base)}, (*byte)(at))
	fmt.Println("alive")
}

// without returns memory without access.
func without(size int) []byte {
	block, err := syscall.Mmap(-1, 0, size, syscall.PROT_NONE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	check(err)
	return block
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

var sink byte

func use(b byte) { sink += b }

var ways = map[string]func(crash.Range, *byte){
	"unwatched": func(_ crash.Range, p *byte) { use(*p) },
	"read":      func(r crash.Range, p *byte) { check(crash.Watch(r)); use(*p) },
	"write":     func(r crash.Range, p *byte) { check(crash.Watch(r)); *p = 1 },
	"c": func(r crash.Range, p *byte) {
		check(crash.Watch(r))
		C.read_in_c((*C.char)(unsafe.Pointer(p)))
	},
	"thread": func(r crash.Range, p *byte) {
		check(crash.Watch(r))
		C.read_in_thread((*C.char)(unsafe.Pointer(p)))
	},
	"thread unwatched": func(_ crash.Range, p *byte) { C.read_in_thread((*C.char)(unsafe.Pointer(p))) },
	"goroutine": func(r crash.Range, p *byte) {
		check(crash.Watch(r))
		go func() { use(*p) }()
		time.Sleep(10 * time.Minute) // the program ends before
	},
	"last": func(r crash.Range, p *byte) {
		check(crash.Watch(r))
		use(*(*byte)(unsafe.Add(r.Base, size-1)))
	},
	"behind": func(r crash.Range, p *byte) {
		r.Size /= 2
		check(crash.Watch(r))
		use(*(*byte)(unsafe.Add(r.Base, size/2)))
	},
	"nil": func(r crash.Range, _ *byte) {
		check(crash.Watch(r))
		var nothing *int
		*nothing = 1
	},
	"nil recovered": func(r crash.Range, _ *byte) {
		check(crash.Watch(r))
		defer func() { fmt.Println("recovered:", recover()) }()
		var nothing *int
		*nothing = 1
	},
	"recovered": func(r crash.Range, p *byte) {
		check(crash.Watch(r))
		debug.SetPanicOnFault(true)
		for range 2 {
			func() {
				defer func() { fmt.Println("recovered:", recover() != nil) }()
				*p = 1
			}()
		}
	},
	"sent": func(r crash.Range, _ *byte) {
		check(crash.Watch(r))
		check(syscall.Kill(syscall.Getpid(), syscall.SIGSEGV))
		time.Sleep(10 * time.Minute) // the program ends before
	},
	"bus": func(r crash.Range, _ *byte) {
		f, err := os.Create(filepath.Join(os.Args[2], "short"))
		check(err)
		block, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED) // of an empty file
		check(err)
		r.Base = unsafe.Pointer(unsafe.SliceData(block))
		r.Arg = uintptr(r.Base)
		check(crash.Watch(r))
		use(block[3])
	},
	"unreadable": func(r crash.Range, p *byte) { r.Describe = C.function(2); check(crash.Watch(r)); use(*p) },
	"silent":     func(r crash.Range, p *byte) { r.Describe = C.function(3); check(crash.Watch(r)); use(*p) },
	"unwatch":    func(r crash.Range, p *byte) { check(crash.Watch(r)); crash.Unwatch(r.Base, nil, 0); use(*p) },
	"after": func(r crash.Range, p *byte) {
		check(crash.Watch(r))
		crash.Unwatch(r.Base, C.function(1), 7)
		use(*p)
	},
	"anew": func(r crash.Range, p *byte) {
		check(crash.Watch(r))
		crash.Unwatch(r.Base, C.function(1), 7)
		r.Name = "another's block"
		check(crash.Watch(r))
		use(*p)
	},
	"full":     full,
	"parallel": parallel,
	"crowd":    crowd,
}

// full fills the table, and then reuses the place of a range that is no longer watched.
func full(r crash.Range, p *byte) {
	r.Size = 1
	err := crash.Watch(r)
	for ; err == nil; err = crash.Watch(r) {
		r.Base = unsafe.Add(r.Base, 1)
	}
	fmt.Println(strings.Contains(err.Error(), "the table of ranges is full: unwatch one of 128"))
	crash.Unwatch(unsafe.Add(r.Base, -1), C.function(1), 7)
	r.Base, r.Size, r.Name = unsafe.Pointer(p), 1, "the last block"
	check(crash.Watch(r))
	use(*p)
}

// parallel watches and unwatches while other goroutines recover from faults: each fault is
// described.
func parallel(r crash.Range, p *byte) {
	check(crash.Watch(r))
	var watchers sync.WaitGroup
	for range 4 {
		watchers.Go(func() {
			own := r
			own.Base = unsafe.Pointer(unsafe.SliceData(without(size)))
			for range 1000 {
				check(crash.Watch(own))
				crash.Unwatch(own.Base, nil, 0)
			}
		})
	}
	for range 2 {
		watchers.Go(func() {
			debug.SetPanicOnFault(true)
			for range 100 {
				func() {
					defer func() { _ = recover() }()
					*p = 1
				}()
			}
		})
	}
	watchers.Wait()
}

func crowd(r crash.Range, p *byte) {
	check(crash.Watch(r))
	for range 100 {
		go func() { *p = 1 }()
	}
	time.Sleep(10 * time.Minute) // the program ends before
}
