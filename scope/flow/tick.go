package flow

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// due is what a delay or timer has left whose time has come in this tick.
const due = 1 << 31

// Tick takes one tick off the delays and timers of all instances of a graph, and runs what follows
// those whose time has come, in the order of instances and nodes. Each has all of the steps; one
// that takes more is an error like that of Fire, and the others run all the same: the error is that
// of the first. Cost: of an instance where nothing waits, a look at one word.
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

// tick first looks at all, and then runs those that are due: what one of them begins waits from the
// next tick on, wherever its node lies.
func (r *Runner) tick(p place) (err error) {
	r.rest()
	r.goTo(p.graph, p.instance)
	timed, any := p.graph.root.Timed.Get(p.graph.blob), false
	for _, l := range timed {
		left := word(r.data, (*delay)(unsafe.Pointer(l.Get(p.graph.blob))).Left)
		switch *left {
		case 0:
			continue
		case due: // still, as an action panicked in the tick before
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
			return err // an action has freed it, where what it sent was done
		}
		left := word(r.data, n.Left)
		if *left != due {
			continue // it isn't, or what ran before began it anew or stopped it
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
