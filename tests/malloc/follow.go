//go:build linux && cgo

package main

// #include <stdlib.h>
import "C"

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Bytes of the plan that follow opens, and of the blocks that it keeps. The pages of the C heap
// that follow doesn't use are for the Go heap's excess over its soft limit.
const (
	followRegion  = 32 * budget.MiB
	followCHeap   = 96 * budget.MiB
	followInC     = 24 * budget.MiB // and as much that is free again
	followLive    = 24 * budget.MiB
	followGarbage = 64 * budget.KiB // of one object
	followHuge    = 64 * budget.MiB // in huge pages
)

// kept is the live heap of follow.
var kept [][]byte

// follow fills a region, C's heap and the Go heap in a cgroup, and obeys commands on standard
// input:
//
//	garbage BYTES  allocate bytes on the Go heap, and keep none; print the collections
//	quiet          return Go's free memory to the system, and free most of each huge page
//	moved LIMIT    wait until the collector's limit is another one
//	full           open files until there is no free file descriptor
//	free           close them
func follow(_ args, out io.Writer) (int, error) {
	b, err := budget.Open(budget.Plan{
		Name:    "pond",
		Regions: []budget.RegionPlan{{Name: "level", Size: followRegion}},
		GoHeap:  budget.Rest,
		Pages:   budget.Pages{Prefault: budget.Off},
		CHeap:   budget.CHeapPlan{Size: followCHeap},
	})
	if err != nil {
		return 0, err
	}
	defer b.Close()
	_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*byte, error) {
		bytes := s.Bytes(followRegion / 2)
		for i := range bytes {
			bytes[i] = 1
		}
		return &bytes[0], nil
	})
	if err != nil {
		return 0, err
	}
	const each = budget.MiB
	var blocks [2 * followInC / each]unsafe.Pointer
	for i := range blocks {
		blocks[i] = C.malloc(each)
		clear(unsafe.Slice((*byte)(blocks[i]), each))
	}
	for _, block := range blocks[followInC/each:] { // free, and resident
		C.free(block)
	}
	for range followLive / followGarbage {
		kept = append(kept, fresh())
	}
	fmt.Fprintln(out, "limit", debug.SetMemoryLimit(-1), "share", b.Report().GoHeap.Limit)
	var files []*os.File
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		command, number := "", int64(0)
		_, _ = fmt.Sscan(lines.Text(), &command, &number) // a command may lack the number
		switch command {
		case "garbage":
			before := b.Report().GoHeap.Collections
			for range number / followGarbage {
				fresh()
			}
			heap := b.Report().GoHeap
			fmt.Fprintln(out, "collections", heap.Collections-before, "used", heap.Used)
		case "full":
			for {
				file, err := os.Open(os.DevNull)
				if err != nil {
					fmt.Fprintln(out, "full", len(files))
					break
				}
				files = append(files, file)
			}
		case "free":
			for _, file := range files {
				_ = file.Close() // only read
			}
			files = nil
		case "quiet":
			debug.FreeOSMemory()
			if err := freeHuge(); err != nil {
				return 0, err
			}
			fmt.Fprintln(out, "quiet")
		case "moved":
			end := time.Now().Add(5 * time.Minute)
			for debug.SetMemoryLimit(-1) == number && time.Now().Before(end) {
				time.Sleep(time.Millisecond)
			}
			fmt.Fprintln(out, "limit", debug.SetMemoryLimit(-1), "share", b.Report().GoHeap.Limit)
		}
	}
	runtime.KeepAlive(kept)
	fmt.Fprint(out, b.Report())
	return 0, nil
}

// fresh returns a new object of the Go heap, with all its bytes written.
//
//go:noinline
func fresh() []byte {
	block := make([]byte, followGarbage)
	for i := range block {
		block[i] = 1
	}
	return block
}

// freeHuge maps huge pages, and frees all but the first small page of each. The kernel counts the
// freed parts until it needs memory. On a kernel without huge pages, freeHuge maps small ones.
func freeHuge() error {
	huge, err := unix.Mmap(-1, 0, followHuge, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	_ = unix.Madvise(huge, unix.MADV_HUGEPAGE)
	for i := range huge {
		huge[i] = 1
	}
	_ = unix.Madvise(huge, unix.MADV_NOHUGEPAGE) // else the kernel makes huge pages of the rests
	for page := range slices.Chunk(huge, 2*budget.MiB) {
		if err := unix.Madvise(page[os.Getpagesize():], unix.MADV_DONTNEED); err != nil {
			return err
		}
	}
	return nil
}
