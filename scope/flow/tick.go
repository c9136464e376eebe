package flow

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// due marks a delay or timer that ends in this tick.
const due = 1 << 31

// Tick counts down the delays and timers of all instances of a graph by one. Tick runs the links of
// each delay and timer that ends, in the order of nodes in an instance. Each run may take all of
// the runner's steps. After all runs Tick returns the error of the first run that had one, as from
// Fire. Cost: for an instance in which no delay or timer waits, two reads; for another, a read of
// each delay and timer of the graph, and the runs.
func (r *Runner) Tick(g *Graph) (err error) {
	r.mine(g)
	if r.change(ready, running, "Tick"); arena_c.Checked {
		r.byBeginner("Tick")
	}
	defer r.done()
	r.graph = nil
	g.alone()
	if g.pool == nil {
		return nil
	}
	for i := range uint64(g.pool.Count) {
		if *g.pool.State(i) != arena_c.ChunkLive || (*head)(g.pool.Chunk(i)).waiting == 0 {
			continue
		}
		if err1 := r.tick(place{g, Instance(g.pool.Handle(i))}); err == nil {
			err = err1
		}
	}
	return err
}

// tick first counts down the instance's delays and timers, then runs the due ones. So a delay that
// starts in this tick is counted down from the next tick on, wherever its node is.
func (r *Runner) tick(p place) (err error) {
	r.rest()
	r.goTo(p.graph, p.instance)
	timed, any := p.graph.root.Timed.Get(p.graph.blob), false
	for _, l := range timed {
		left := word(r.data, (*delay)(unsafe.Pointer(l.Get(p.graph.blob))).Left)
		switch *left {
		case 0:
			continue
		case due: // still due, because an action panicked in the last tick
		default:
			if *left--; *left != 0 {
				continue
			}
			*left = due
		}
		any = true
	}
	if !any {
		return nil
	}
	for _, l := range timed {
		n := (*delay)(unsafe.Pointer(l.Get(p.graph.blob)))
		if r.rest(); !r.goTo(p.graph, p.instance) {
			return err // an action freed the instance while the level ran its send
		}
		left := word(r.data, n.Left)
		if *left != due {
			continue // not due, or an earlier node restarted or stopped it
		}
		*left = 0
		if n.Tag == tagTimer {
			*left = uint32(max(n.Ticks.in(r.data), 1))
		} else {
			(*head)(r.data).waiting--
		}
		if err1 := r.begin(&n.node); err == nil {
			err = err1
		}
	}
	return err
}
