package main

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// clean are programs without a race: operations that goroutines may do at the same time.
var clean = map[string]func(*play){
	"shared-pool": func(p *play) {
		pool := frogs.SharedPool(p.scope(), 3)
		crowd(func(int) {
			if x := pool.Get(); x != nil {
				x.Age++
				pool.Live()
				pool.Put(x)
			}
			pool.Peak()
		})
	},
	"scratch": func(p *play) {
		crowd(func(int) {
			lent, err := p.budget.Lease(background)
			must(err)
			s := lent.Pick().Open("a")
			frogs.New(s).Age++
			frogs.New(s.Temp(64)).Age++
			frogs.Pool(s, 2).Get().Age++
			must(s.Close())
			must(lent.Scratches.Scratch(1).Do("use", func(s scope.Scope) error { s.Bytes(50)[0]++; return nil }))
			must(lent.Release())
		})
	},
	"two-budgets": func(p *play) {
		one, two := newHouse(open()), newHouse(p.budget)
		crowd(func(me int) {
			if me < 2 {
				[]*house{one, two}[me].play()
			}
		})
	},
	"pins": func(p *play) {
		region := p.budget.Region("systems")
		readers := make([]*budget.Reader, goroutines)
		for i := range readers {
			readers[i] = region.Reader(fmt.Sprint(i))
		}
		crowd(func(me int) {
			if me == 0 {
				loaded(p)
				p.budget.Published()
				return
			}
			if readers[me].Pin() {
				defer readers[me].Unpin()
				if x := budget.Get[frog](readers[me]); x != nil {
					look(x)
				}
			}
		})
	},
	"slots": func(p *play) {
		crowd(func(int) {
			slot, err := p.budget.Slots("match").Acquire()
			if err != nil {
				return // all slots are in use
			}
			_, err = budget.Load(background, slot, func(s scope.Scope) (*frog, error) {
				frogs.New(s.Temp(64)).Age++
				x := frogs.New(s)
				x.Age++
				return x, nil
			})
			must(err)
			must(slot.Release(background))
		})
	},
	"inside-a-load": func(p *play) {
		slot, err := p.budget.Slots("match").Acquire()
		must(err)
		_, err = budget.Load(background, p.budget.Region("systems"), func(s scope.Scope) (*frog, error) {
			crowd(func(int) { // one at a time, on any goroutine
				_, err := budget.Load(background, slot.In(s), func(s scope.Scope) (*frog, error) {
					frogs.New(s.Temp(64)).Age++
					return frogs.New(s), nil
				})
				if !errors.Is(err, budget.ErrLoading) {
					must(err)
				}
			})
			return frogs.New(s), nil
		})
		must(err)
	},
	"turn": func(p *play) {
		crowd(func(me int) {
			if me == 0 {
				frogs.New(p.budget.Frame()).Age++
				must(p.budget.NextFrame())
				return
			}
			p.budget.Published()
		})
	},
	"readers": func(p *play) {
		x := loaded(p).Get()
		m := newMap(p.scope())
		m.Set(7, frog{})
		crowd(func(int) {
			look(x)
			look(m.Get(7))
			for range m.All() {
				runtime.Gosched()
			}
		})
	},
}

// house is a budget during play.
type house struct {
	b       *budget.Budget
	scratch scope.Scratch
}

func newHouse(b *budget.Budget) *house { return &house{b, b.Scratch(3, 0)} }

func (h *house) play() {
	loadAndRewind(h.b)
	frogs.New(h.b.Frame()).Age++
	must(h.scratch.Do("play", func(s scope.Scope) error { s.Bytes(50); return nil }))
	must(h.b.NextFrame())
}

const goroutines, rounds = 4, 50

// crowd runs do many times on several goroutines.
func crowd(do func(me int)) {
	var all sync.WaitGroup
	for me := range goroutines {
		all.Go(func() {
			for range rounds {
				do(me)
				runtime.Gosched()
			}
		})
	}
	all.Wait()
}
