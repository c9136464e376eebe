// Package row has the rows of the table that make others prints. A row counts the memory and the
// collections of a whole process, so each program runs in a process of its own.
package row

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/upfront-mem/upfront/budget"
)

// Program is one way to do a task: with this library, or on the Go heap.
type Program struct {
	Task string // "sqlite": the programs of one task stand together
	Name string // "in a region", "on the Go heap"
	// Run does the task, and passes the part that counts to m.Measure. A short run does a small
	// part of the work, for a test.
	Run func(ctx context.Context, m *Meter, short bool) error
}

// Row is the figures of a program, in JSON from its process to the table.
type Row struct {
	Task, Name  string
	Resident    uint64        // bytes of the process at the end of the measured part
	Outside     uint64        // bytes of Resident that are outside (budget.Outside)
	MaybeGo     uint64        // bytes of Outside that may be Go's
	Garbage     uint64        // bytes allocated on the Go heap in the measured part
	Collections uint32        // of the Go heap in the measured part
	Time        time.Duration // of all processors in the measured part, the collector's included
	More        []Figure      // the task's own figures
	Bound       string        // how the program behaves at its bound, in words
}

// Figure is a number of one task.
type Figure struct {
	Name  string
	Value float64
	Unit  string
}

// Meter fills a Row.
type Meter struct{ Row Row }

// Measure runs do once, and sets the row's resident memory, garbage, collections and
// processor time.
func (m *Meter) Measure(do func() error) error {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := processorTime()
	err := do()
	m.Row.Time = processorTime() - start
	runtime.ReadMemStats(&after)
	m.Row.Garbage = after.TotalAlloc - before.TotalAlloc
	m.Row.Collections = after.NumGC - before.NumGC
	if err != nil {
		return err
	}
	if m.Row.Resident, err = Resident(); err != nil {
		return err
	}
	// A program without a budget has no report.
	b, err := budget.Open(budget.Plan{Name: "look"})
	if err != nil {
		return err
	}
	o := b.Report().Outside
	m.Row.Outside, m.Row.MaybeGo = o.Bytes, o.Error
	return b.Close()
}

// processorTime returns the time that processors spent in this process.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // the arguments are right
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Add adds a figure of the task's own.
func (m *Meter) Add(name string, value float64, unit string) {
	m.Row.More = append(m.Row.More, Figure{name, value, unit})
}

// Resident returns the bytes of the process that are in memory.
func Resident() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(status), "VmRSS:")
	line, _, _ := strings.Cut(after, "kB")
	kib, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
	if !found || err != nil {
		return 0, fmt.Errorf("/proc/self/status has no VmRSS: %q", line)
	}
	return kib << 10, nil
}
