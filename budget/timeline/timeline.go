// Package timeline records the use of each arena of a budget over time, for pictures and files:
//
//	use := timeline.Start(b, 0) // at set-up
//	use.Sample()                // each tick
//	view.Timeline(file, use.Read())
package timeline

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/internal/seam"
)

var watch = seam.Watch.(func(*budget.Budget) seam.Watched)

const (
	defaultSamples = 512 // about the pixels of a picture
	mostSamples    = 1 << 20
)

// Timeline records the use of each arena over time, in a fixed number of samples on the Go heap.
// When all samples are used, each pair of neighbours becomes one sample with twice as many ticks.
// So the whole run always fits, with fewer details the longer it is, and a pair keeps the higher
// use. One goroutine calls Sample; any goroutine may call Read. The methods of a nil Timeline do
// nothing.
type Timeline struct {
	of    seam.Watched
	empty Data   // without samples
	owed  uint64 // ticks that Sample hasn't written so far; only Sample uses it

	mu    sync.Mutex // guards cells
	cells cells
}

// Data is a copy of a timeline, for pictures, pages and files. Sizes are in bytes.
type Data struct {
	Budget string  `json:"budget"`
	Step   uint64  `json:"step"`  // ticks in a sample; the last may have fewer
	Ticks  uint64  `json:"ticks"` // in all
	Arenas []Arena `json:"arenas"`
	// Expected is the plan's expectations, to draw and to check next to the arenas.
	Expected []budget.Expected `json:"expected,omitempty"`
}

// Arena is an arena over time.
type Arena struct {
	Name  string   `json:"name"`            // as in a Report: "room 3"
	Part  string   `json:"part"`            // as in a Report: "room"
	Kind  string   `json:"kind"`            // as in a Report: "slot"
	Size  uint64   `json:"size"`            // at Read: Reconfigure may have changed it
	Most  []uint64 `json:"most"`            // highest use in the ticks of each sample
	Marks []Mark   `json:"marks,omitempty"` // events of each sample; nil: none at all
	Note  string   `json:"note,omitempty"`  // the region's, in the plan
}

// Mark is the set of an arena's events in the ticks of a sample, a bit for each kind of event.
type Mark uint16

// The events of a Mark.
const (
	MarkLoad   = Mark(seam.Load)   // a Load ended, or failed
	MarkRewind = Mark(seam.Rewind) // the arena was emptied, and not loaded
	MarkFull   = Mark(seam.Full)   // the arena was full
	MarkMoved  = Mark(seam.Moved)  // Reconfigure moved or resized it, or regions on both sides
	MarkWarn   = Mark(seam.Warn)   // the arena reached its warn share
)

var markNames = []string{"load", "rewind", "full", "moved", "warning"}

// String returns the names of the events: "load, full".
func (m Mark) String() string {
	var names []string
	for i, name := range markNames {
		if m&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Start starts a record of each arena's use with this number of samples, up to 2^20; 0 means 512.
// The goroutine that drives the program calls it once for a budget, at set-up. A second call, a
// call after Seal or Close, or another number of samples is a caller's bug and panics. Start
// allocates 10 bytes on the Go heap for each sample of each arena; later only Read allocates. Read
// works even after Close.
//
// With a timeline, NextFrame and the end of each Load, Rewind and lease take some nanoseconds more.
func Start(b *budget.Budget, samples int) *Timeline {
	if samples < 0 || samples > mostSamples {
		panic(fmt.Sprintf("timeline: BUG: Start with %d samples: give 0 (the default, %d) to %d", samples,
			defaultSamples, mostSamples))
	}
	if samples == 0 {
		samples = defaultSamples
	}
	t := &Timeline{of: watch(b)}
	r := b.Published()
	t.empty = Data{Budget: r.Name, Arenas: []Arena{}, Expected: r.Plan.Expected}
	notes := map[string]string{}
	for _, region := range r.Plan.Regions {
		notes[region.Name] = region.Note
	}
	for i := range t.of.Gauges {
		a := &r.CHeap.ArenaReport
		if i < len(r.Arenas) {
			a = &r.Arenas[i]
		}
		t.empty.Arenas = append(t.empty.Arenas, Arena{Name: a.Name, Part: a.Part, Kind: a.Kind, Note: notes[a.Part]})
	}
	t.cells = newCells(samples, len(t.of.Gauges))
	return t
}

// Sample ends a tick. It records the highest use of each arena since the last Sample, as published
// ([budget.Budget.Published]). One goroutine calls Sample: either the goroutine that drives the
// program, after NextFrame, or a goroutine only for Sample. The use of a Load is published when the
// Load ends, so its peak, temporaries included, counts for the tick of its end. A tick that ends
// during a Read is written with the next tick. After Close Sample adds nothing.
//
// Cost: a few nanoseconds an arena, without a Go allocation or a wait. Each time the number of
// ticks has doubled, Sample also merges all samples, which takes about a nanosecond for each sample
// of each arena. With a c_heap Sample takes the locks of C's malloc for a moment. A use of the
// c_heap that rose and fell since the last Sample counts only if it is the highest so far.
func (t *Timeline) Sample() {
	if t == nil || t.of.Closed.Load() {
		return
	}
	if t.of.CHeap != nil {
		t.of.CHeap()
	}
	t.owed++
	if !t.mu.TryLock() {
		return
	}
	gauges := t.of.Gauges
	for ; t.owed > 0; t.owed-- {
		most, marks := t.cells.tick()
		for i := range gauges {
			gauges[i].Take(&most[i], &marks[i])
		}
	}
	t.mu.Unlock()
}

// Read returns a copy of all samples. Any goroutine may call Read, even after Close. Sample doesn't
// wait for a running Read. A nil Timeline returns the zero Data. Cost: two copies on the Go
// heap.
func (t *Timeline) Read() Data {
	if t == nil {
		return Data{}
	}
	copied := t.copyCells()
	d := t.empty
	d.Step, d.Ticks = copied.step, copied.ticks
	d.Arenas, d.Expected = slices.Clone(d.Arenas), slices.Clone(d.Expected)
	for i := range d.Arenas {
		line := &d.Arenas[i]
		line.Size = t.of.Size(i)
		line.Most, line.Marks = copied.line(i)
	}
	return d
}

// copyCells allocates before it takes the lock, because Sample doesn't wait for the lock.
func (t *Timeline) copyCells() cells {
	to := newCells(t.cells.samples, t.cells.arenas)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cells.copyTo(&to)
	return to
}
