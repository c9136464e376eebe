package game

import (
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Crew holds the workers of a game, or of several games in turn. The first worker is the goroutine
// that runs the game; the others are started once and sleep between ticks.
type Crew struct {
	workers []*worker
	game    *Game // the current game
	thinks  bool  // true: bots think; false: players and frogs decide
	// The method tickGame as a value. It is made once, since a tick must not allocate.
	tick func(scope.Scope) error
	done chan struct{}
}

// worker is one goroutine of a crew and its two scratch arenas: one for results, one for the
// queries that lead to them.
type worker struct {
	crew      *Crew
	index     int
	scratches [2]scope.Scratch
	reader    *budget.Reader // of the region level; a pinned region can't be rewound
	wake      chan struct{}
	err       error                   // the first ErrFull since the last call of full
	think     func(scope.Scope) error // thinkShare and decideShare as values
	decide    func(scope.Scope) error
}

func newCrew(b *budget.Budget, workers int) *Crew {
	c := &Crew{done: make(chan struct{}, workers)}
	c.tick = c.tickGame
	for i := range workers {
		w := c.hire(b, i)
		w.reader = b.Region("level").Reader("worker")
		w.wake = make(chan struct{}, 1)
		if i > 0 {
			go w.loop(c.done)
		}
	}
	return c
}

// Alone returns a crew of only the caller's goroutine. It uses the scratch arenas of a worker of
// the budget. It pins no region, because the goroutine that ticks a room also rewinds it.
func Alone(b *budget.Budget, worker int) *Crew {
	c := &Crew{}
	c.tick = c.tickGame
	c.hire(b, worker)
	return c
}

// hire adds a worker with the budget's scratch arenas of that number, and returns it.
func (c *Crew) hire(b *budget.Budget, scratch int) *worker {
	w := &worker{crew: c, index: len(c.workers)}
	w.scratches = [2]scope.Scratch{b.Scratch(scratch, 0), b.Scratch(scratch, 1)}
	w.think, w.decide = w.thinkShare, w.decideShare
	c.workers = append(c.workers, w)
	return w
}

func (c *Crew) stop() {
	for _, w := range c.workers[1:] {
		close(w.wake)
	}
}

func (c *Crew) tickGame(s scope.Scope) error { return c.game.tick(c, s) }

// full returns the first ErrFull of the workers, and clears it.
func (c *Crew) full() (err error) {
	for _, w := range c.workers {
		if err == nil {
			err = w.err
		}
		w.err = nil
	}
	return err
}

// run lets all workers do their shares of a game, and waits for them. If thinks is true, bots make
// their inputs; otherwise the workers fill the commands of this tick.
func (c *Crew) run(g *Game, thinks bool) {
	c.game, c.thinks = g, thinks
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

// work does this worker's share. An ErrFull of a scope unwinds to here; it ends the map, not the
// server.
func (w *worker) work() {
	if w.reader != nil {
		if !w.reader.Pin() {
			return
		}
		defer w.reader.Unpin()
	}
	share := w.decide
	if w.crew.thinks {
		share = w.think
	}
	if err := w.scratches[0].Do("share", share); err != nil && w.err == nil {
		w.err = err
	}
}

func (w *worker) thinkShare(scope.Scope) error {
	g := w.crew.game
	for i := w.index; i < len(g.Level.brains); i += len(w.crew.workers) {
		g.think(w, i)
	}
	return nil
}

// decideShare decides for this worker's share of players and frogs. It only reads the world, so the
// split makes no difference.
func (w *worker) decideShare(scope.Scope) error {
	g := w.crew.game
	n := len(w.crew.workers)
	for i := w.index; i < len(g.playerCommands); i += n {
		g.decidePlayer(w, i)
	}
	for i := w.index; i < len(g.frogCommands); i += n {
		g.decideFrog(w, i)
	}
	return nil
}

// close closes a scope of a scratch arena, and keeps the worker's first error.
func (w *worker) close(s scope.Scope) {
	if err := s.Close(); err != nil && w.err == nil {
		w.err = err
		w.crew.game.Level.Note("scratch full at tick", uint64(w.crew.game.Level.Room.Tick))
	}
}
