//go:build linux && cgo

// Malloc runs programs in C, which know no allocator, over package arena/with/malloc:
//
//	malloc [-size 64MiB] [-reserve 0] [-runtime 64KiB] [-trim 0] [-fronts 0]
//	       [-warn 0] [-profile 512KiB] PROGRAM [NUMBER or NAME ...]
//
// Without -size the static heap serves. The last line of the output is the result of the C program:
// 0, or the line of work.c that found a fault.
package main

// #cgo CFLAGS: -fno-builtin-malloc -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free
// #cgo LDFLAGS: -lpthread -ldl
// #include <stdlib.h>
// #include "work.h"
import "C"

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/with/malloc"
	"github.com/upfront-mem/upfront/budget"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "malloc:", err)
		os.Exit(1)
	}
}

// args are the arguments of a program.
type args []string

func (a args) number(i int) uint64 {
	if i >= len(a) {
		return 0
	}
	n, err := strconv.ParseUint(a[i], 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// programs return 0, or the line of a fault.
var programs = map[string]func(a args, out io.Writer) (int, error){
	"stress": func(a args, _ io.Writer) (int, error) {
		return int(C.work_stress(C.int(a.number(0)), C.uint64_t(a.number(1)), C.uint64_t(a.number(2)), 1)), nil
	},
	"model": func(a args, _ io.Writer) (int, error) {
		return int(C.work_model(C.uint64_t(a.number(0)), C.uint64_t(a.number(1)), C.uint64_t(a.number(2)))), nil
	},
	"edges": func(args, io.Writer) (int, error) { return int(C.work_edges()), nil },
	"fork":  func(a args, _ io.Writer) (int, error) { return int(C.work_fork(C.int(a.number(0)))), nil },
	"handlers": func(a args, _ io.Writer) (int, error) {
		if C.work_handlers() == 0 {
			return 1, errors.New("the library of handlers.c isn't loaded")
		}
		return int(C.work_fork(C.int(a.number(0)))), nil
	},
	"closed": func(a args, _ io.Writer) (int, error) {
		name := C.CString(a[0])
		defer C.free(unsafe.Pointer(name))
		return int(C.work_closed(name)), nil
	},
	"late": func(a args, _ io.Writer) (int, error) {
		name := C.CString(a[0])
		defer C.free(unsafe.Pointer(name))
		return int(C.work_late(name)), nil
	},
	"libc": func(args, io.Writer) (int, error) { return int(C.work_libc()), nil },
	"fill": fill,
	"lend": lend,
	"trim": trim,
	"exec": execs,
	"misuse": func(a args, _ io.Writer) (int, error) {
		name := C.CString(a[0])
		defer C.free(unsafe.Pointer(name))
		return int(C.work_misuse(name)), nil
	},
	"idle":   idle,
	"short":  short,
	"parks":  parks,
	"split":  split,
	"looks":  looks,
	"moves":  moves,
	"follow": follow,

	"requests": requests,
	"calls":    calls,
	"lines":    lines,
	"warn":     warn,
}

// fill fills the heap with blocks of a size, and frees them: twice, with the same number.
func fill(a args, out io.Writer) (int, error) {
	var first, second C.uint64_t
	line := C.work_fill(C.uint64_t(a.number(0)), &first)
	if line == 0 {
		line = C.work_fill(C.uint64_t(a.number(0)), &second)
	}
	fmt.Fprintln(out, "blocks", first, second)
	fmt.Fprintln(out, "caller", fullCaller())
	return int(line), nil
}

// workFill returns the address of the function in C.
func workFill() uintptr { return uintptr(C.work_fill_address()) }

// lend fills the heap without and with its reserve.
func lend(a args, out io.Writer) (int, error) {
	var without, with, after C.uint64_t
	size := C.uint64_t(a.number(0))
	line := C.work_fill(size, &without)
	err := malloc.CleanUp(func() error {
		line += C.work_fill(size, &with)
		err := malloc.CleanUp(func() error { return errors.New("of the function") }) // loans nest
		line += C.work_fill(size, &with)
		return err
	})
	line += C.work_fill(size, &after)
	fmt.Fprintln(out, "blocks", without, with, after, err)
	return int(line), nil
}

// short runs a work in each room from 0 to a number of bytes.
func short(a args, _ io.Writer) (int, error) {
	for room := uint64(0); room <= a.number(0); room += 16 {
		if line := C.work_short(C.uint64_t(room)); line != 0 {
			return int(line), fmt.Errorf("with room of %d bytes: line %d", room, int(line))
		}
	}
	return 0, nil
}

// parks prints the blocks in fronts after frees of many, after a refusal, after frees of many large
// ones of one size, and after frees of large ones of many sizes.
func parks(_ args, out io.Writer) (int, error) {
	line := C.work_spread(20_000, 64)
	freed := parked()
	var none C.uint64_t
	line += C.work_fill(1<<40, &none)
	refused := parked()
	line += C.work_spread(200, 4096)
	large := parked()
	line += C.work_fill(1<<40, &none)
	line += C.work_sizes(2048, 8192)
	fmt.Fprintln(out, "parked", freed, refused, large, parked())
	return int(line), nil
}

// split trims after frees of blocks that fronts keep, one in each page.
func split(_ args, out io.Writer) (int, error) {
	line := C.work_split(200)
	fmt.Fprintln(out, "trimmed", malloc.Trim())
	return int(line), nil
}

// looks prints the bytes that were trimmed after each look for free pages.
func looks(_ args, out io.Writer) (int, error) {
	line := C.work_spread(1000, 10_000)
	var after [6]uint64
	goesOn := false
	for i := range after {
		goesOn = look()
		after[i] = malloc.ReadStats().Trimmed
		if i == 3 {
			line += C.work_spread(1000, 10_000)
		}
	}
	for range 3 { // Go's threads may free some since
		goesOn = goesOn && look()
	}
	fmt.Fprintln(out, "goes on", goesOn)
	fmt.Fprintln(out, "looks", after)
	return int(line), nil
}

// moves makes blocks before Open, and changes and frees them after.
func moves(args, io.Writer) (int, error) {
	text := strings.Repeat("frog", 300)
	grows, shrinks, ends := C.CString(text), C.CString(text), C.CString(text)
	before := malloc.ReadStats().StaticUsed
	if _, err := open(budget.CHeapPlan{Size: 8 * budget.MiB}); err != nil {
		return 0, err
	}
	grows = (*C.char)(C.realloc(unsafe.Pointer(grows), 5000))
	shrinks = (*C.char)(C.realloc(unsafe.Pointer(shrinks), 500))
	C.free(unsafe.Pointer(ends))
	s := malloc.ReadStats()
	switch {
	case C.GoString(grows) != text || C.GoStringN(shrinks, 500) != text[:500]:
		return 1, errors.New("a block lost its contents")
	case before-s.StaticUsed < 2*1200+600 || s.Used < 5000: // a block that shrinks stays
		return 2, fmt.Errorf("%d bytes were static, then %d, and %d used", before, s.StaticUsed, s.Used)
	}
	C.free(unsafe.Pointer(grows))
	C.free(unsafe.Pointer(shrinks))
	return 0, nil
}

// resident returns the resident bytes of the process that no file has.
func resident() uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, text2, _ := strings.Cut(string(text), "RssAnon:")
	kib, err := strconv.ParseUint(strings.Fields(text2)[0], 10, 64)
	if err != nil {
		panic(err)
	}
	return kib << 10
}

// trim fills blocks, frees them, and either trims or waits for the thread that does.
func trim(a args, out io.Writer) (int, error) {
	start := resident()
	line := C.work_spread(C.uint64_t(a.number(0)), C.uint64_t(a.number(1)))
	full := resident()
	var bytes uint64
	if a.number(2) == 0 {
		bytes = malloc.Trim()
		fmt.Fprintln(out, "again", malloc.Trim())
	}
	if a.number(2) != 0 {
		bytes = trimmed(full / 2)
	}
	fmt.Fprintln(out, "resident", start, full, resident(), "trimmed", bytes, malloc.ReadStats().Trimmed)
	return int(line), nil
}

// trimmed waits for the thread to trim so many bytes, for a minute at most.
func trimmed(enough uint64) (bytes uint64) {
	for end := time.Now().Add(time.Minute); bytes < enough &&
		time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		bytes = malloc.ReadStats().Trimmed
	}
	return bytes
}

// execs starts programs, which Go does without libc.
func execs(args, io.Writer) (int, error) {
	for range 5 {
		if text, err := exec.Command("/bin/echo", "a child").Output(); err != nil || string(text) != "a child\n" {
			return 1, fmt.Errorf("%q: %w", text, err)
		}
	}
	return 0, nil
}

// idle does a steady work between two lines on standard error, which a trace of system calls shows.
// With a second number, the work goes on until the goroutine that trims has trimmed.
func idle(a args, _ io.Writer) (int, error) {
	line := C.work_stress(4, 20000, 10000, 1) // threads have their stacks
	base, size := heap()
	before := malloc.ReadStats().Trimmed
	fmt.Fprintf(os.Stderr, "steady begins %#x %#x\n", base, size)
	line += C.work_stress(4, C.uint64_t(a.number(0)), 10000, 2)
	if a.number(1) != 0 {
		trimmed(before + 1)
	}
	fmt.Fprintln(os.Stderr, "steady ends")
	return int(line), nil
}

// size is a size of a plan, such as 64MiB.
type size uint64

func (s *size) String() string { return strconv.FormatUint(uint64(*s), 10) }

func (s *size) Set(text string) error {
	n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSuffix(text, "KiB"), "MiB"), 10, 64)
	switch {
	case strings.HasSuffix(text, "KiB"):
		n *= budget.KiB
	case strings.HasSuffix(text, "MiB"):
		n *= budget.MiB
	}
	*s = size(n)
	return err
}

// onWarn is the OnWarn of the plan, while a program sets it.
var onWarn atomic.Pointer[func(budget.Warning)]

func open(c budget.CHeapPlan) (*budget.Budget, error) {
	return budget.Open(budget.Plan{
		Name:    "pond",
		Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Pages:   budget.Pages{Prefault: budget.Off},
		CHeap:   c,
		OnWarn: func(w budget.Warning) {
			if does := onWarn.Load(); does != nil {
				(*does)(w)
			}
		},
	})
}

func profileOf(rate size) uint64 {
	if rate == 1 {
		return budget.NoProfile
	}
	return uint64(rate)
}

func run(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("malloc", flag.ContinueOnError)
	var bytes, reserve, part size
	flags.Var(&bytes, "size", "of the plan's c_heap; 0: the static heap serves")
	flags.Var(&reserve, "reserve", "of the size")
	flags.Var(&part, "runtime", "of the size, for Go's runtime; 0: the default")
	after := flags.Duration("trim", 0, "the plan's trim")
	var rate size
	flags.Var(&rate, "profile", "the plan's profile; 0: the default, 1: none")
	share := flags.Int("warn", 0, "the plan's warn, in percent")
	fronts := flags.Int("fronts", 0, "the plan's fronts; 0: the default")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	program, ok := programs[flags.Arg(0)]
	if !ok {
		return fmt.Errorf("there is no program %q", flags.Arg(0))
	}
	if bytes != 0 {
		b, err := open(budget.CHeapPlan{Size: uint64(bytes), Reserve: uint64(reserve), Runtime: uint64(part),
			Trim: *after, Fronts: *fronts, Warn: budget.Percent(*share), Profile: profileOf(rate)})
		if err != nil {
			return err
		}
		defer b.Close()
		for _, line := range b.Report().NotGranted {
			fmt.Fprintln(out, "not granted:", line)
		}
	}
	line, err := program(args(flags.Args()[1:]), out)
	if err != nil {
		return err
	}
	s := malloc.ReadStats()
	fmt.Fprintf(out, "size %d used %d live %d fulls %d static %d of %d\n", s.Size, s.Used, s.Live, s.Fulls,
		s.StaticUsed, s.Static)
	fmt.Fprintf(out, "walk %d\n", walk())
	fmt.Fprintf(out, "answer %d\n", line)
	return nil
}
