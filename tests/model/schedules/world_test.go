package schedules_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// small returns a plan that is opened quickly, in a block.
func small() budget.Plan {
	return budget.Plan{Name: "schedules",
		Regions: []budget.RegionPlan{{Name: "level", Size: 8 * budget.KiB},
			{Name: "room", Size: 8 * budget.KiB, Slots: parts - 1}},
		Pages:  budget.Pages{Prefault: budget.Off, Guards: budget.Off},
		Limits: budget.Limits{Scopes: 2, Pools: 1, Owned: 4, Labels: 1}}
}

type frog struct{ ID, Not int64 }

var (
	frogs      = scope.Plain[frog]()
	errFails   = errors.New("the function of the load fails")
	background = context.Background()
)

// world is a real budget, and three goroutines that follow orders. All of it is in a bubble of
// synctest.
type world struct {
	verbs
	block    []byte
	b        *budget.Budget
	level    budget.Region
	readers  [goroutines]*budget.Reader // of level
	slots    *budget.Slots
	acquired []budget.Region // so far
	proofs   [2]scope.Scope  // of the last load of level, and of the one before
	hands    [goroutines]*hand
	things   [most]contents
	made     int
	told     int8
	serial   int64
	through  bool // no goroutine is held
	closed   bool
	met      sync.Mutex
}

// contents is the contents of a load.
type contents struct {
	id           int64
	loaded       budget.Loaded[frog]
	over         bool // its load has ended
	began, ended int  // its finalizer
	resume       chan order
}

// hand is a goroutine that follows orders.
type hand struct {
	orders, resume chan order
	at             place
	came           result
	err            error
	ctx            context.Context
	cancel         context.CancelFunc
}

func newWorld(v verbs) *world {
	w := &world{verbs: v}
	for i := range w.hands {
		h := &hand{orders: make(chan order), resume: make(chan order)}
		h.ctx, h.cancel = context.WithCancel(background)
		w.hands[i] = h
		go func() {
			for do := range h.orders {
				w.obey(i, h, do)
			}
		}()
	}
	for i := range w.things {
		w.things[i].resume = make(chan order)
	}
	synctest.Wait() // until they listen
	w.open()
	return w
}

func (w *world) open() {
	p := small()
	p.OnError = func(error) { w.told++ }
	if w.block == nil {
		w.block = make([]byte, must(p.Need()))
	}
	w.b = must(budget.OpenIn(w.block, p))
	w.level, w.slots, w.closed = w.b.Region("level"), w.b.Slots("room"), false
	for i := range w.readers {
		w.readers[i] = w.level.Reader(routineNames[i])
	}
}

// must returns v of a call that every schedule makes alike.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// end ends the goroutines, at any place. It returns false if one can't end.
func (w *world) end() bool {
	w.through = true
	for range 100 {
		if w.idle() {
			for _, h := range w.hands {
				close(h.orders)
			}
			_ = w.b.Close()
			return true
		}
		for _, h := range w.hands {
			tell(h.resume, goOn)
			h.cancel()
		}
		for i := range w.things {
			tell(w.things[i].resume, goOn)
		}
		time.Sleep(2 * closeWait)
		synctest.Wait()
	}
	return false
}

func (w *world) idle() bool {
	for _, h := range w.hands {
		if h.at != idle {
			return false
		}
	}
	return true
}

// clear empties the budget at the end of a schedule, when no operation is running.
func (w *world) clear() error {
	w.through = true
	ctx, cancel := context.WithTimeout(background, closeWait)
	defer cancel()
	if w.closed {
		w.open()
	} else if err := w.level.Rewind(ctx); err != nil {
		return err
	}
	for _, room := range w.acquired {
		// The schedule may have closed the budget.
		if err := room.Release(ctx); err != nil && !errors.Is(err, budget.ErrClosed) {
			return err
		}
	}
	w.acquired = w.acquired[:0]
	if free := w.slots.Available(); free != parts-1 {
		return fmt.Errorf("of the slots %d are free", free)
	}
	if !w.readers[0].Pin() {
		return errors.New("level can't be pinned")
	}
	w.readers[0].Unpin()
	return nil
}

// begin starts a schedule, from an empty budget, or one with a level and a room.
func (w *world) begin(full bool) {
	w.through = true
	for i := range w.made {
		w.things[i] = contents{resume: w.things[i].resume}
	}
	w.made, w.proofs = 0, [2]scope.Scope{}
	if full {
		must(0, w.loads(w.hands[0], w.level, loadRoom))
		must(0, w.acquires())
		must(0, w.loads(w.hands[0], w.room(1), loadRoom))
	}
	for _, h := range w.hands {
		h.came, h.err = nothing, nil
	}
	w.told, w.through = 0, false
}

// obey runs an operation.
func (w *world) obey(who int, h *hand, do order) {
	h.at, h.came, h.err = held, nothing, nil
	came, err := unexpected, error(nil)
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a panic: %v", v)
		}
		w.meet()
		h.at, h.came, h.err = idle, came, err
		if do == closeBudget && (came == done || came == leaks) {
			w.closed = true
		}
	}()
	if do == pinLevel {
		came = w.pins(h, w.readers[who])
	} else if r := w.region(do); do.pins() {
		came = w.pins(h, r.Reader(routineNames[who]))
	} else {
		err = w.does(h, r, do)
		came = resultOf(err)
	}
}

// region returns the region of an operation.
func (w *world) region(do order) budget.Region {
	switch {
	case do == loadLevel || do == rewindLevel:
		return w.level
	case do == acquire || do == closeBudget:
		return budget.Region{}
	case do == rewindFormer || do == pinFormer:
		return w.room(2)
	case do == loadRoomFormer:
		return w.room(1).In(w.proofs[1])
	case do.inside():
		return w.room(1).In(w.proofs[0])
	}
	return w.room(1)
}

// room returns the result of the last Acquire, the last but one, and so on.
func (w *world) room(back int) budget.Region { return w.acquired[len(w.acquired)-back] }

func (w *world) does(h *hand, r budget.Region, do order) error {
	switch {
	case do.loads():
		return w.loads(h, r, do)
	case do.releases():
		return w.release(r, h.ctx)
	case do == acquire:
		return w.acquires()
	case do == closeBudget:
		return w.close(w.b)
	}
	return w.rewind(r, h.ctx)
}

// meet is for the race detector, which doesn't see the clock's wake-ups. It orders the goroutines:
// the next one runs after the state of this one is seen.
func (w *world) meet() {
	w.met.Lock()
	defer w.met.Unlock()
}

func (w *world) loads(h *hand, r budget.Region, do order) error {
	var t *contents
	loaded, err := w.load(h.ctx, r, func(s scope.Scope) (*frog, error) {
		w.meet()
		t = &w.things[w.made]
		w.made++
		w.serial++
		t.id = w.serial
		if do == loadLevel {
			w.proofs = [2]scope.Scope{s, w.proofs[0]}
		}
		w.later(s, func() {
			w.meet()
			t.began++
			if !w.through {
				<-t.resume
			}
			t.ended++
		})
		f := frogs.New(s)
		*f = frog{t.id, ^t.id}
		if w.hold(h, within) == fail {
			return nil, errFails
		}
		return f, nil
	})
	if t != nil {
		t.loaded, t.over = loaded, true
	}
	return err
}

func (w *world) pins(h *hand, reader *budget.Reader) result {
	if !w.pin(reader) {
		return notPinned
	}
	w.hold(h, pinned)
	w.unpin(reader)
	return done
}

func (w *world) acquires() error {
	r, err := w.acquire(w.slots)
	if err == nil {
		w.acquired = append(w.acquired, r)
	}
	return err
}

// hold waits at a place for the next order.
func (w *world) hold(h *hand, at place) order {
	if w.through {
		return goOn
	}
	h.at = at
	do := <-h.resume
	h.at = held
	return do
}

func resultOf(err error) result {
	switch {
	case err == nil:
		return done
	case errors.Is(err, budget.ErrLoading):
		return loading
	case errors.Is(err, budget.ErrClosed):
		return closed
	case errors.Is(err, budget.ErrFull):
		return full
	case errors.Is(err, errFails):
		return failed
	case errors.Is(err, context.Canceled) && strings.Contains(err.Error(), " has pinned region "),
		strings.HasSuffix(err.Error(), "call Unpin, then Close again"):
		return waited
	case strings.Contains(err.Error(), "never released: ") && strings.Contains(err.Error(), `slot "room `):
		return leaks
	}
	return unexpected
}

// The longest waits of package budget for pins: all of Close's, and the time between two looks. The
// clock is the bubble's.
const (
	closeWait = 10 * time.Millisecond
	lookWait  = time.Millisecond
)

// take has a goroutine take a step, and waits until all are held. It returns false if the goroutine
// isn't at the model's place.
func (w *world) take(s step, from *routine) bool {
	w.meet()
	h, there := w.hands[s.who], true
	switch {
	case s.do < operations:
		there = tell(h.orders, s.do)
	case s.do == giveUp && from.does == closeBudget:
		time.Sleep(2 * closeWait)
	case s.do == giveUp:
		h.cancel()
		h.ctx, h.cancel = context.WithCancel(background)
	case from.at == ends:
		there = tell(w.things[from.content].resume, s.do)
	default:
		there = tell(h.resume, s.do)
	}
	synctest.Wait()
	if from.at == pinned {
		time.Sleep(2 * lookWait)
		synctest.Wait()
	}
	return there
}

// tell sends an order. It returns false if the goroutine doesn't wait for one.
func tell(to chan order, do order) bool {
	select {
	case to <- do:
		return true
	default:
		return false
	}
}

func (w *world) seen() (s seen) {
	for i, h := range w.hands {
		s.routines[i] = seenRoutine{h.at, h.came}
	}
	for i := range w.made {
		s.contents[i] = w.stateOf(&w.things[i])
	}
	s.free, s.told = int8(w.slots.Available()), w.told
	return s
}

func (w *world) stateOf(t *contents) state {
	f := w.get(t.loaded)
	switch {
	case t.began == 0 && f == nil && !t.over:
		return making
	case t.began == 0 && f != nil && *f == frog{t.id, ^t.id}:
		return alive
	case t.began == 1 && t.ended == 0 && f == nil:
		return ending
	case t.began == 1 && t.ended == 1 && f == nil:
		return gone
	}
	return broken
}
