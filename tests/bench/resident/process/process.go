// Package process runs a library in C on goroutines, and prints the figures of its process. With
// the build tag c_heap, C's malloc is in a plan. Nothing else of the program changes.
package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/upfront-mem/upfront/budget"
)

// Goroutines is the number of goroutines that work at the same time.
const Goroutines = 8

// Idle is the time between the last round and the measurement. The trim of 1 s in a plan needs up
// to 2 s.
const Idle = 3 * time.Second

// Task does the work of one goroutine in one round. It returns a checksum of the results, and a
// function that frees the memory that the task uses until then.
type Task func(goroutine int) (sum uint64, free func(), err error)

// Main runs the task in rounds, and prints the figures of the process as JSON. In a round all
// goroutines work, wait for each other, and free their memory. The program's first argument is the
// number of rounds. The figures are from the end of an idle time, but of a single round, and after
// "end", without it. After "end", a c_heap returns its free memory first.
func Main(task Task) {
	log.SetFlags(0)
	if len(os.Args) != 2 && !slices.Equal(os.Args[2:], []string{"end"}) {
		log.Fatal("usage: ROUNDS [end]")
	}
	rounds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	sum, used := uint64(0), 0.0
	for range rounds {
		of, now, err := round(task)
		if err != nil {
			log.Fatal(err)
		}
		sum, used = sum*31+of, max(used, now)
	}
	switch {
	case len(os.Args) > 2:
		trim()
	case rounds > 1:
		time.Sleep(Idle)
	}
	f, err := Figures()
	if err != nil {
		log.Fatal(err)
	}
	f["used"], f["sum"] = used, float64(sum>>12) // a float64 has no more bits
	if err := AddOutside(f); err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		log.Fatal(err)
	}
}

// round returns a checksum, and the anonymous resident bytes while all tasks use their memory.
func round(task Task) (sum uint64, used float64, err error) {
	var sums [Goroutines]uint64
	var frees [Goroutines]func()
	var errs [Goroutines]error
	each(func(i int) { sums[i], frees[i], errs[i] = task(i) })
	if err := errors.Join(errs[:]...); err != nil {
		return 0, 0, err
	}
	f, err := Figures()
	if err != nil {
		return 0, 0, err
	}
	each(func(i int) { frees[i]() })
	for _, of := range sums {
		sum = sum*31 + of
	}
	return sum, f["anonymous"], nil
}

func each(do func(i int)) {
	var all sync.WaitGroup
	for i := range Goroutines {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// AddOutside adds the bytes outside (budget.Outside), and the part of them that may be Go's. It
// opens a budget, because a program as published has none.
func AddOutside(f map[string]float64) error {
	b, err := budget.Open(budget.Plan{Name: "look"})
	if err != nil {
		return err
	}
	o := b.Report().Outside
	if f["outside"], f["outside_error"] = float64(o.Bytes), float64(o.Error); o.Unknown != "" {
		err = errors.New(o.Unknown)
	}
	return errors.Join(err, b.Close())
}

// Figures returns the bytes of this process that are resident, at most resident, and resident
// without files; its CPU time in ms; and the bytes and collections of the Go heap since its start.
func Figures() (map[string]float64, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return nil, err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	f := map[string]float64{"CPU": float64(used.Utime.Nano()+used.Stime.Nano()) / 1e6,
		"garbage": float64(memory.TotalAlloc), "collections": float64(memory.NumGC)}
	for line := range strings.Lines(string(status)) {
		for name, figure := range map[string]string{"VmRSS": "resident", "VmHWM": "peak", "RssAnon": "anonymous"} {
			var kilobytes float64
			if n, _ := fmt.Sscanf(line, name+": %f kB", &kilobytes); n == 1 {
				f[figure] = 1024 * kilobytes
			}
		}
	}
	return f, nil
}
