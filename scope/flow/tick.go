package flow

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// due is what a delay or timer has left whose time has come in this tick.
const due = 1 << 31

// Tick takes one tick off the delays and timers of all instances of a graph, and runs what follows those
// whose time has come, in the order of instances and nodes. Each has all of the steps; one that takes
// more is an error like that of Fire, and the others run all the same: the error is that of the first.
// Cost: of an instance where nothing waits, a look at one word.
func (r *Runner) Tick(g *Graph) (err error) {
	r.mine(g)
	r.change(ready, running, "Tick")
	defer r.done()
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

// tick first looks at all, and then runs those that are due: what one of them begins waits from the next
// tick on, wherever its node lies.
func (r *Runner) tick(p place) (err error) {
	r.goTo(p)
	timed, any := p.graph.root.Timed.Get(p.graph.blob), false
	for _, l := range timed {
		left := r.state((*delay)(unsafe.Pointer(l.Get(p.graph.blob))).Left)
		if *left == 0 {
			continue
		}
		if *left--; *left == 0 {
			*left = due
			any = true
		}
	}
	if !any {
		return nil
	}
	for _, l := range timed {
		n := (*delay)(unsafe.Pointer(l.Get(p.graph.blob)))
		left := r.state(n.Left)
		if *left != due {
			continue // it isn't, or what ran before began it anew or stopped it
		}
		*left = 0
		if n.Tag == tagTimer {
			*left = uint32(max(n.Ticks.Get(r), 1))
		} else {
			(*head)(r.data).waiting--
		}
		if err1 := r.begin(&n.node); err == nil {
			err = err1
		}
	}
	return err
}
