package budget

import (
	"slices"
	"strings"
	"sync"
)

const timelineSamples = 512 // about the pixels of a picture

// Timeline records the use of each arena over time, in a fixed number of samples on the Go heap.
// When all samples are used, each pair of neighbours becomes one sample with twice as many ticks.
// So the whole run always fits, with fewer details the longer it is, and a pair keeps the higher
// use. One goroutine calls Sample; any goroutine may call Read. The methods of a nil Timeline do
// nothing.
type Timeline struct {
	b      *Budget
	gauges []gauge // in map order, then C's heap if the budget has it
	names  []ArenaLine
	c      CHeapReport // as of the last Sample; only Sample uses it
	owed   uint64      // ticks that Sample hasn't written so far; only Sample uses it

	mu    sync.Mutex // guards cells
	cells cells
}

// TimelineData is a copy of a timeline, for pictures, pages and files. Sizes are in bytes.
type TimelineData struct {
	Budget string      `json:"budget"`
	Step   uint64      `json:"step"`  // ticks in a sample; the last may have fewer
	Ticks  uint64      `json:"ticks"` // in all
	Arenas []ArenaLine `json:"arenas"`
	// Expected is the plan's expectations, to draw and to check next to the arenas.
	Expected []Expected `json:"expected,omitempty"`
}

// ArenaLine is an arena over time.
type ArenaLine struct {
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
	MarkLoad   Mark = 1 << iota // a Load ended, or failed
	MarkRewind                  // the arena was emptied, and not loaded
	MarkFull                    // the arena was full
	MarkMoved                   // Reconfigure moved or resized it, or regions on both sides
	MarkWarn                    // the arena reached its warn share
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

// Timeline starts a record of each arena's use with this number of samples; 0 means 512. The
// goroutine that drives the program calls it once, at set-up. A second call, or a call after Seal
// or Close, is a caller's bug and panics. Timeline allocates 10 bytes on the Go heap for each
// sample of each arena; later only Read allocates. Read works even after Close.
//
// With a timeline, NextFrame and the end of each Load, Rewind and lease take some nanoseconds more.
func (b *Budget) Timeline(samples int) *Timeline {
	switch {
	case samples < 0:
		panic("budget: BUG: Timeline of a negative number of samples")
	case b.closed.Load():
		panic("budget: BUG: Timeline of budget " + b.plan.Name + ", which is closed")
	case b.sealed.Load():
		panic("budget: BUG: Timeline of budget " + b.plan.Name + " after Seal: call it at set-up")
	case samples == 0:
		samples = timelineSamples
	}
	names := b.arenaLines()
	t := &Timeline{b: b, gauges: make([]gauge, len(names)), names: names, cells: newCells(samples, len(names))}
	b.published.watch(t.gauges)
	return t
}

// Sample ends a tick. It records the highest use of each arena since the last Sample, as published
// ([Budget.Published]). One goroutine calls Sample: either the goroutine that drives the program,
// after NextFrame, or a goroutine only for Sample. The use of a Load is published when the Load
// ends, so its peak, temporaries included, counts for the tick of its end. A tick that ends during
// a Read is written with the next tick. After Close Sample adds nothing.
//
// Cost: a few nanoseconds an arena, without a Go allocation or a wait. Each time the number of
// ticks has doubled, Sample also merges all samples, which takes about a nanosecond for each sample
// of each arena. With a c_heap Sample takes the locks of C's malloc for a moment. A use of the
// c_heap that rose and fell since the last Sample counts only if it is the highest so far.
func (t *Timeline) Sample() {
	if t == nil || t.b.closed.Load() {
		return
	}
	t.sampleC()
	t.owed++
	if !t.mu.TryLock() {
		return
	}
	for ; t.owed > 0; t.owed-- {
		most, marks := t.cells.tick()
		for i := range t.gauges {
			t.gauges[i].take(&most[i], &marks[i])
		}
	}
	t.mu.Unlock()
}

// Read returns a copy of all samples. Any goroutine may call Read, even after Close. Sample doesn't
// wait for a running Read. A nil Timeline returns the zero TimelineData. Cost: two copies on the Go
// heap.
func (t *Timeline) Read() TimelineData {
	if t == nil {
		return TimelineData{}
	}
	copied := t.copyCells()
	d := TimelineData{Budget: t.b.plan.Name, Step: copied.step, Ticks: copied.ticks, Arenas: slices.Clone(t.names),
		Expected: slices.Clone(t.b.plan.Expected)}
	for i := range d.Arenas {
		line := &d.Arenas[i]
		if line.Size = t.b.plan.CHeap.Size; i < len(t.b.stacks) {
			line.Size = t.b.published.size(i)
		}
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

func (b *Budget) arenaLines() (list []ArenaLine) {
	notes := map[string]string{}
	for _, r := range b.plan.Regions {
		notes[r.Name] = r.Note
	}
	for _, st := range b.stacks {
		list = append(list, ArenaLine{Name: arenaName(st), Part: st.Part, Kind: st.Kind, Note: notes[st.Part]})
	}
	if b.cHeap {
		list = append(list, ArenaLine{Name: cHeapKey, Part: cHeapKey, Kind: cHeapKey})
	}
	return list
}

// sampleC passes the use of C's heap to its gauge. A use that rose and fell since the last Sample
// counts if it is the highest so far.
func (t *Timeline) sampleC() {
	if !t.b.cHeap {
		return
	}
	now, _ := t.b.cHeapFigures()
	was := &t.c
	most := now.Used
	if now.Peak > was.Peak {
		most = now.Peak
	}
	g := &t.gauges[len(t.gauges)-1]
	g.saw(most, now.Used)
	if now.Fulls != was.Fulls {
		g.mark(MarkFull)
	}
	if now.Warnings != was.Warnings {
		g.mark(MarkWarn)
	}
	t.c = now
}
