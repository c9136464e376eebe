//go:build linux

// Command asker opens a budget, and then makes system calls on the budget's pages that a sealed
// budget never makes. It is the control of the test that watches frogpond's system calls.
package main

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/budget"
)

func main() {
	b, err := budget.Open(budget.Plan{Name: "asker", Regions: []budget.RegionPlan{{Name: "level", Size: 1 * budget.MiB}}})
	check(err)
	block := b.Base().Bytes()
	size := len(block) / 2 &^ 0xffff
	middle := block[size : size+64<<10]
	fmt.Printf("{\"budget_base\": \"%p\", \"budget_bytes\": %d}\n", block, len(block))

	fmt.Fprintln(os.Stderr, "budget sealed, bytes", len(block))
	b.Missing() // is no finding
	check(unix.Madvise(middle, unix.MADV_DONTNEED))
	check(unix.Mlock(middle[:4096]))
	check(unix.Munlock(middle[:4096]))
	check(unix.Mprotect(middle, unix.PROT_READ))
	check(unix.Mprotect(middle, unix.PROT_READ|unix.PROT_WRITE))
	_, err = unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(middle)), uintptr(len(middle)), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_FIXED|unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	check(err)
	check(unix.Msync(middle, unix.MS_ASYNC))
	ranges := [1]unix.Iovec{{Base: unsafe.SliceData(middle), Len: 4096}} // no argument says which
	unix.Syscall6(unix.SYS_PROCESS_MADVISE, ^uintptr(0), uintptr(unsafe.Pointer(&ranges)), 1, unix.MADV_COLD, 0, 0)
	base := uintptr(unsafe.Pointer(unsafe.SliceData(block)))
	unix.Syscall(unix.SYS_MSYNC, base-64<<10, 64<<10+1, unix.MS_ASYNC) // begins before it
	fmt.Fprintln(os.Stderr, "log closed by process", os.Getpid())
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
