package index

import (
	"context"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// regional is a world in a region of a budget.
type regional struct {
	b    *budget.Budget
	ring *save.Ring // nil without history
	grid *Grid
	*match
}

// match is the game's own part of the state.
type match struct{ ids [entities]ID } // by number

// The region has room for the state and, with history, for nine images: eight ticks, and a spare
// for images from outside.
const (
	stateSize   = 1000 * budget.KiB
	historySize = 9920 * budget.KiB
)

var matchMaker = scope.Plain[match]()

func openRegion(history bool) (*regional, error) {
	size := uint64(stateSize)
	if history {
		size = historySize
	}
	b, err := budget.Open(budget.Plan{Name: "index", Limits: budget.Limits{Pools: 1},
		Regions: []budget.RegionPlan{{Name: "world", Size: size, State: true}}})
	if err != nil {
		return nil, err
	}
	w, region := &regional{b: b}, b.Region("world")
	_, err = budget.Load(context.Background(), region, func(s scope.Scope) (*match, error) {
		if !history {
			w.match, w.grid = matchMaker.New(s), NewGrid(region, s, entities)
			return w.match, nil
		}
		var state *save.State
		state, w.match = save.Begin(region, s, matchMaker)
		w.grid = NewGrid(region, s, entities)
		w.grid.In(state)
		w.ring = save.NewRing(s, ticks, state)
		return w.match, nil
	})
	return w, err
}

func (w *regional) insert(number uint32, box Box) (err error) {
	w.ids[number], err = w.grid.Insert(number, box)
	return err
}

func (w *regional) remove(number uint32)              { w.grid.Remove(w.ids[number]) }
func (w *regional) move(number uint32, box Box) error { return w.grid.Move(w.ids[number], box) }

func (w *regional) at(number uint32) Box {
	box, _ := w.grid.At(w.ids[number])
	return box
}

func (w *regional) near(area Box) (sum uint64) {
	w.grid.Search(area, func(number uint32, _ Box) bool {
		sum += uint64(number)
		return true
	})
	return sum
}

func (w *regional) take(tick uint64) error {
	if w.ring == nil {
		return nil
	}
	return w.ring.Take(tick)
}

// look goes back to each tick that a player saw, and at last to the present.
func (w *regional) look(tick uint64, shots *[rays]shot) (sum uint64, err error) {
	now := tick
	for _, s := range shots {
		if w.ring != nil && now != tick-s.age {
			now = tick - s.age
			if err := w.ring.Restore(context.Background(), now); err != nil {
				return 0, err
			}
		}
		sum += w.near(s.at)
	}
	if now != tick {
		err = w.ring.Restore(context.Background(), tick)
	}
	return sum, err
}

func (w *regional) bound() string {
	_, full := w.grid.Insert(entities, Box{})
	if w.ring == nil {
		return full.Error()
	}
	return full.Error() + "; a ninth snapshot replaces the oldest"
}

// inUse returns the bytes of the entities, their records in the pool, the cells and the IDs.
func (w *regional) inUse() int {
	return w.grid.entities.Live()*(32+9) + 8*cells*cells + 8*entities
}

func (w *regional) close() error { return w.b.Close() }
