package game

import (
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// crew are the workers. The first is the goroutine that runs the game; the
// others are started once and sleep between ticks.
type crew struct {
	workers []*worker
	thinks  bool // for bots, else it decides for the simulation
	done    chan struct{}
}

// worker is one of n goroutines and its two scratch arenas: one for results, one for the
// scratch of the queries that lead to them.
type worker struct {
	index     int
	scratches [2]scope.Scratch
	reader    *budget.Reader // of the level: nobody rewinds it while a worker is inside
	game      *Game
	wake      chan struct{}
	err       error                   // the first full of this map
	think     func(scope.Scope) error // its shares
	decide    func(scope.Scope) error
}

func newCrew(b *budget.Budget, workers int) *crew {
	c := &crew{done: make(chan struct{}, workers)}
	for i := range workers {
		w := &worker{index: i, wake: make(chan struct{}, 1)}
		w.scratches = [2]scope.Scratch{b.Scratch(i, 0), b.Scratch(i, 1)}
		w.reader = b.Region("level").Reader("worker")
		w.think, w.decide = w.thinkShare, w.decideShare // made once: play must not allocate
		c.workers = append(c.workers, w)
		if i > 0 {
			go w.loop(c.done)
		}
	}
	return c
}

func (c *crew) stop() {
	for _, w := range c.workers[1:] {
		close(w.wake)
	}
}

// run lets all workers do their shares, and waits for them: bots think, or the commands of this
// tick are filled.
func (c *crew) run(thinks bool) {
	c.thinks = thinks
	for _, w := range c.workers[1:] {
		w.wake <- struct{}{}
	}
	c.workers[0].work()
	for range c.workers[1:] {
		<-c.done
	}
}

func (w *worker) loop(done chan<- struct{}) {
	for range w.wake {
		w.work()
		done <- struct{}{}
	}
}

// work does this worker's share. To open a scope too many unwinds, as play has no other answer: to
// here, so that it ends the map and not the server.
func (w *worker) work() {
	if !w.reader.Pin() {
		return
	}
	defer w.reader.Unpin()
	share := w.decide
	if w.game.crew.thinks {
		share = w.think
	}
	if err := w.scratches[0].Do("share", share); err != nil && w.err == nil {
		w.err = err
	}
}

// thinkShare lets bots think.
func (w *worker) thinkShare(scope.Scope) error {
	g := w.game
	for i := w.index; i < len(g.Level.brains); i += len(g.crew.workers) {
		g.think(w, i)
	}
	return nil
}

// decideShare decides for players and frogs. It only reads the world, so who decides for whom makes
// no difference.
func (w *worker) decideShare(scope.Scope) error {
	g := w.game
	n := len(g.crew.workers)
	for i := w.index; i < len(g.playerCommands); i += n {
		g.decidePlayer(w, i)
	}
	for i := w.index; i < len(g.frogCommands); i += n {
		g.decideFrog(w, i)
	}
	return nil
}

// close ends a scope of a scratch arena and remembers whether it was full.
func (w *worker) close(s scope.Scope) {
	if err := s.Close(); err != nil && w.err == nil {
		w.err = err
		w.game.Level.Note("scratch full at tick", uint64(w.game.Level.Room.Tick))
	}
}
