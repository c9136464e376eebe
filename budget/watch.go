package budget

import "github.com/upfront-mem/upfront/budget/internal/seam"

// watched connects each arena to a gauge, which follows all publications from now on. A budget has
// one timeline.
func (b *Budget) watched() seam.Watched {
	if err := b.atSetUp("timeline.Start"); err != nil {
		panic(err)
	}
	w := seam.Watched{Gauges: make([]seam.Gauge, len(b.stacks)), Size: b.sizeOf, Closed: &b.closed}
	if b.cHeap {
		w.Gauges = append(w.Gauges, seam.Gauge{})
		w.CHeap = watchCHeap(b, &w.Gauges[len(b.stacks)])
	}
	b.published.watch(w.Gauges)
	return w
}

func (p *published) watch(gauges []seam.Gauge) {
	p.loads.Lock()
	defer p.loads.Unlock()
	p.beside.Lock()
	defer p.beside.Unlock()
	if p.watched.Load() {
		panic("budget: BUG: a second timeline.Start of a budget; any goroutine may Read the first")
	}
	p.watched.Store(true)
	for i := range p.list {
		f := &p.list[i]
		f.gauge = &gauges[i]
		f.gauge.Saw(f.Used, f.Used)
	}
}

// sizeOf returns the bytes of an arena, or of C's heap, which comes last.
func (b *Budget) sizeOf(arena int) uint64 {
	if arena == len(b.stacks) {
		return b.plan.CHeap.Size
	}
	return b.published.size(arena)
}

// watchCHeap returns a function that passes the use of C's heap to its gauge. A use that rose and
// fell since the last call counts if it is the highest so far.
func watchCHeap(b *Budget, g *seam.Gauge) func() {
	var was CHeapReport
	return func() {
		now, _ := b.cHeapFigures()
		most := now.Used
		if now.Peak > was.Peak {
			most = now.Peak
		}
		g.Saw(most, now.Used)
		if now.Fulls != was.Fulls {
			g.Mark(seam.Full)
		}
		if now.Warnings != was.Warnings {
			g.Mark(seam.Warn)
		}
		was = now
	}
}
