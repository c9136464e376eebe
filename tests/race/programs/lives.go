package main

import (
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// lives are a goroutine that reads an object, and another that ends its life, or has another there.
var lives = map[string]func(*play){
	"close": func(p *play) {
		s := p.scope()
		x := frogs.New(s)
		p.pair(
			func() { look(x) },         // life/close first
			func() { must(s.Close()) }, // life/close second
		)
	},
	"reused": func(p *play) {
		scratch := p.budget.Scratch(0, 0)
		s := scratch.Open("a")
		stale := frogs.New(s)
		p.pair(
			func() {
				must(s.Close())
				frogs.New(scratch.Open("b")).Age = 1 // life/reused first
			},
			func() { stale.Age = 2 }, // life/reused second
		)
	},
	"rewind": func(p *play) {
		x := loaded(p).Get()
		p.pair(
			func() { look(x) }, // life/rewind first
			func() { must(p.budget.Region("systems").Rewind(background)) }, // life/rewind second
		)
	},
	"load": func(p *play) {
		x := loaded(p).Get()
		p.pair(
			func() { look(x) },   // life/load first
			func() { loaded(p) }, // life/load second
		)
	},
	"temp": func(p *play) {
		_, err := budget.Load(background, p.budget.Region("systems"), func(s scope.Scope) (*frog, error) {
			t := s.Open("inner")
			x := frogs.New(t.Temp(64))
			p.pair(
				func() { look(x) },         // life/temp first
				func() { must(t.Close()) }, // life/temp second
			)
			return nil, nil
		})
		must(err)
	},
	"make-fails": func(p *play) {
		s := p.scope()
		var x *frog
		_, err := frogs.Make(s, func(made *frog) error { x = made; return nil })
		must(err)
		p.pair(
			func() { look(x) }, // life/make-fails first
			func() { frogs.Make(s, func(*frog) error { frogs.New(s); return errFails }); must(s.Close()) }, // life/make-fails second
		)
	},
	"release": func(p *play) {
		slot, err := p.budget.Slots("match").Acquire()
		must(err)
		loaded, err := budget.Load(background, slot, func(s scope.Scope) (*frog, error) { return frogs.New(s), nil })
		must(err)
		x := loaded.Get()
		p.pair(
			func() { look(x) },                        // life/release first
			func() { must(slot.Release(background)) }, // life/release second
		)
	},
	"budget": func(p *play) {
		x := loaded(p).Get()
		p.pair(
			func() { look(x) },                // life/budget first
			func() { must(p.budget.Close()) }, // life/budget second
		)
	},
	"turn": func(p *play) {
		x := frogs.New(p.budget.Frame())
		must(p.budget.NextFrame())
		p.pair(
			func() { look(x) },                    // life/turn first
			func() { must(p.budget.NextFrame()) }, // life/turn second
		)
	},
	"give": func(p *play) {
		lent, err := p.budget.Lease(background)
		must(err)
		x := frogs.New(lent.Pick().Open("a"))
		p.pair(
			func() { look(x) },        // life/give first
			func() { lent.Release() }, // life/give second
		)
	},
	"put": func(p *play) {
		pool := frogs.Pool(p.scope(), 4)
		x := pool.Get()
		p.pair(
			func() { look(x) },     // life/put first
			func() { pool.Put(x) }, // life/put second
		)
	},
	"put-shared": func(p *play) {
		pool := frogs.SharedPool(p.scope(), 4)
		x := pool.Get()
		p.pair(
			func() { look(x) },     // life/put-shared first
			func() { pool.Put(x) }, // life/put-shared second
		)
	},
	"put-object": func(p *play) {
		pool := living.Pool(p.scope(), 4)
		x := pool.Get()
		p.pair(
			func() { look(x) },           // life/put-object first
			func() { must(pool.Put(x)) }, // life/put-object second
		)
	},
	"put-handle": func(p *play) {
		pool := frogs.HandlePool(p.scope(), 4)
		x, h := pool.Get()
		p.pair(
			func() { look(x) },     // life/put-handle first
			func() { pool.Put(h) }, // life/put-handle second
		)
	},
}

// loaded has a frog in the region systems.
func loaded(p *play) budget.Loaded[frog] {
	l, err := budget.Load(background, p.budget.Region("systems"), func(s scope.Scope) (*frog, error) { return frogs.New(s), nil })
	must(err)
	return l
}
