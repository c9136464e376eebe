package budget

import (
	"slices"
	"strings"
	"sync"
)

const timelineSamples = 512 // a picture has about as many pixels

// Timeline is what each arena held over time, in memory that is taken at set-up, on the Go heap: when all samples are used, neighbours become
// one, and each stands for twice as many ticks. So the whole run is always there, ever coarser, and no peak is lost.
// Sample belongs to one goroutine, Read is for any. A nil Timeline is one that is off: its methods do nothing.
type Timeline struct {
	b      *Budget
	gauges []gauge // by arena
	names  []ArenaLine
	owed   uint64 // ticks that Sample couldn't write yet; only Sample's

	mu    sync.Mutex // guards what follows
	cells cells
}

// TimelineData is a copy of a timeline, for pictures, pages and files. Sizes are bytes.
type TimelineData struct {
	Budget string      `json:"budget"`
	Step   uint64      `json:"step"`  // ticks a sample; the last may have fewer
	Ticks  uint64      `json:"ticks"` // in all
	Arenas []ArenaLine `json:"arenas"`
}

// ArenaLine is an arena over time.
type ArenaLine struct {
	Name  string   `json:"name"`            // as in a Report: "room 3"
	Part  string   `json:"part"`            // likewise: "room"
	Kind  string   `json:"kind"`            // likewise: "slot"
	Size  uint64   `json:"size"`            // now: Reconfigure may have moved it
	Most  []uint64 `json:"most"`            // the most that it held in the ticks of each sample
	Marks []Mark   `json:"marks,omitempty"` // what happened in each; nil: nothing ever did
}

// Mark says what happened to an arena in the ticks of a sample: the sum of these.
type Mark uint16

// What a Mark is the sum of.
const (
	MarkLoad   Mark = 1 << iota // a Load of it ended, also one that failed
	MarkRewind                  // it was emptied, and not loaded
	MarkFull                    // it was full
	MarkMoved                   // Reconfigure moved it, or gave it another size
)

var markNames = []string{"load", "rewind", "full", "moved"}

// String names what happened: "load, full".
func (m Mark) String() string {
	var names []string
	for i, name := range markNames {
		if m&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Timeline begins to record what each arena holds, in so many samples; 0 means 512. A budget has one at
// most, made at set-up by the goroutine that drives the program: a second one is a caller's bug and panics, and so is
// one after Seal or Close. It takes 10 bytes of the Go heap for each sample of each arena, now, and nothing later. After
// Close it can still be read.
//
// With a timeline NextFrame costs some nanoseconds more, and so does the end of each Load, Rewind and lease. Without
// one, nothing does.
func (b *Budget) Timeline(samples int) *Timeline {
	switch {
	case samples < 0:
		panic("budget: BUG: Timeline of a negative number of samples")
	case b.closed.Load():
		panic("budget: BUG: Timeline of budget " + b.plan.Name + ", which is closed")
	case b.sealed.Load():
		panic("budget: BUG: Timeline of budget " + b.plan.Name + " after Seal: ask for it at set-up")
	case samples == 0:
		samples = timelineSamples
	}
	t := &Timeline{b: b, gauges: make([]gauge, len(b.stacks)), names: b.arenaLines(), cells: newCells(samples, len(b.stacks))}
	b.published.watch(t.gauges)
	return t
}

// Sample ends a tick: the most that each arena held since the last Sample, as far as it was published
// ([Budget.Published]). It belongs to one goroutine: that which drives the program, after NextFrame, or one of its own.
// What a Load at work has made so far isn't published: its peak, temporaries included, is that of the tick in which it
// ends. A tick that ends while another goroutine is in Read is written with the next one. After Close nothing is added.
//
// Cost: a few nanoseconds an arena, no Go allocation, no wait; and each time the run has become twice as long, a pass
// over all samples, about a nanosecond for each of each arena.
func (t *Timeline) Sample() {
	if t == nil || t.b.closed.Load() {
		return
	}
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

// Read is a copy of all samples. Any goroutine may ask, also after Close; who samples doesn't wait for it. Of a nil
// Timeline it is the zero TimelineData. Cost: two copies on the Go heap.
func (t *Timeline) Read() TimelineData {
	if t == nil {
		return TimelineData{}
	}
	copied := t.copyCells()
	d := TimelineData{Budget: t.b.plan.Name, Step: copied.step, Ticks: copied.ticks, Arenas: slices.Clone(t.names)}
	for i := range d.Arenas {
		line := &d.Arenas[i]
		line.Size = t.b.published.size(i)
		line.Most, line.Marks = copied.line(i)
	}
	return d
}

// copyCells has the memory before it takes the lock: then it holds up Sample, which doesn't wait, for a moment.
func (t *Timeline) copyCells() cells {
	to := newCells(t.cells.samples, t.cells.arenas)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cells.copyTo(&to)
	return to
}

// arenaLines are the names of all arenas.
func (b *Budget) arenaLines() (list []ArenaLine) {
	for _, st := range b.stacks {
		list = append(list, ArenaLine{Name: arenaName(st), Part: st.Part, Kind: st.Kind})
	}
	return list
}
