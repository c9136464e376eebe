package model_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// part is a region or a slot.
type part struct {
	arena  *arena
	level  int
	slot   bool
	region budget.Region // zero: a free slot
	loaded budget.Loaded[uint64]
	alive  bool
}

// load is a running load.
type load struct {
	part  *part
	scope scope.Scope
	outer *load
}

// lease is a leased pair of scratch arenas.
type lease struct {
	budget.Lease
	pair int
}

// along returns the parts that are emptied with a part, bottom first.
func (w *world) along(p *part) (list []*part) {
	for _, other := range w.parts {
		if other == p || other.level > p.level {
			list = append(list, other)
		}
	}
	return list
}

// claim returns the region as a holder of a load's scope has it, that load, and whether it may be
// changed.
func (w *world) claim(p *part) (region budget.Region, inside *load, may bool) {
	switch {
	case len(w.over) > 0 && w.chance(8):
		return p.region.In(w.over[w.random.IntN(len(w.over))]), nil, false
	case len(w.running) > 0 && !w.chance(6):
		l := w.running[w.random.IntN(len(w.running))]
		if w.chance(2) {
			l = w.running[len(w.running)-1]
		}
		busy := slices.ContainsFunc(w.running, func(other *load) bool { return other.outer == l })
		return p.region.In(l.scope), l, p.level > l.part.level && !busy
	}
	for _, l := range w.running {
		for _, other := range w.along(l.part) {
			if slices.Contains(w.along(p), other) {
				return p.region, nil, false
			}
		}
	}
	return p.region, nil, true
}

// emptying returns the refusals of the scopes of parts, reported when these are emptied, top first.
func (w *world) emptying(parts []*part) (t reported) {
	w.emptied = parts
	for _, p := range parts {
		for _, s := range p.arena.near {
			t.add(s.tell())
		}
	}
	return t
}

// empty compares parts that were emptied.
func (w *world) empty(parts []*part) (t reported) {
	w.emptied = nil
	for _, p := range slices.Backward(parts) {
		p.alive = false
		t.add(w.closedTo(p.arena, 0))
	}
	return t
}

// note expects errors in the report, unless a Goexit ended the call that reports them.
func (w *world) note(t reported) {
	if t.any() && !t.exits {
		w.reported++
	}
}

// load loads a part with a random body.
func (w *world) load() {
	p := w.parts[w.random.IntN(len(w.parts))]
	if p.region == (budget.Region{}) || len(w.running) > 2 {
		return
	}
	region, outer, may := w.claim(p)
	w.say("load %s, may: %v", p.arena.name, may)
	if !may {
		w.did["load refused"]++
		_, err := budget.Load(background, region, func(scope.Scope) (*uint64, error) { panic("it should be refused") })
		w.check(errors.Is(err, budget.ErrLoading), "a Load that is refused: %v", err)
		return
	}
	w.did["load"]++
	along, then, a := w.along(p), len(w.ran), p.arena
	before := w.emptying(along)
	l := &load{part: p, outer: outer}
	var inner ended
	var t reported
	var goesOn, began bool
	w.layer(func() (err error) {
		p.loaded, err = budget.Load(background, region, func(real scope.Scope) (x *uint64, err error) {
			began = true
			before.add(w.empty(along))
			before.add(w.since(then))
			w.note(before)
			w.compare()
			l.scope = real
			w.running = append(w.running, l)
			s := a.open(real, a.name)
			s.layer = true
			err = w.inside(&inner, func() {
				t, goesOn = w.verdict(a, 0, 0, inner)
				then, w.emptied = len(w.ran), along
			}, func() error {
				x = longs.New(real)
				w.keep(s, bytesAt(x, 8), 8)
				if w.chance(3) {
					w.temp(s)
					for _, temp := range a.far {
						w.object(temp)
					}
				}
				return w.body(s)
			})
			return x, err
		})
		return err
	}, func(e ended) {
		w.check(began || e.exited, "a load begins when who empties the region is gone: %v", e)
		if !began {
			w.empty(along)
			return
		}
		w.running = slices.DeleteFunc(w.running, func(other *load) bool { return other == l })
		w.over = append(w.over, l.scope)
		if !t.any() && !goesOn && !inner.exited {
			w.kept(p, along, e, then)
			return
		}
		w.did["load failed"]++
		after, verdict := w.empty(along), t.any()
		after.add(w.since(then))
		if t.add(after); !verdict {
			w.note(after)
		}
		if !goesOn && !e.exited {
			w.expect("Load", e.err, t)
		}
		w.check(goesOn == (e.thrown != nil) || e.exited, "Load panics with %v, its function did: %v",
			e.thrown, inner.thrown)
	})
}

// kept compares a load that succeeded: its temporaries are gone.
func (w *world) kept(p *part, along []*part, e ended, then int) {
	a := p.arena
	s := a.top()
	s.froze, w.emptied = true, nil
	after := then // the finalizers that ran after those of the temporaries
	for i, id := range w.ran[then:] {
		if w.finalizers[id].of.far {
			after = then + i + 1
		}
	}
	rest := w.since(after)
	var t reported
	for len(a.far) > 0 {
		t.add(w.closed(newest(a.far)))
	}
	t.add(w.since(then))
	if t.exits {
		w.did["load left"]++
		rest.add(w.empty(along)) // the caller of Load doesn't get the result
		w.note(rest)
		return
	}
	t.add(s.lost)
	w.note(t)
	s.lost = reported{}
	w.check(e.err == nil && e.thrown == nil && !e.exited, "Load, which should succeed: %v", e)
	w.did["loaded"]++
	p.alive = true
}

// rewind empties a part, or releases a slot.
func (w *world) rewind() {
	p := w.parts[w.random.IntN(len(w.parts))]
	if p.region == (budget.Region{}) {
		return
	}
	region, _, may := w.claim(p)
	release := p.slot && w.chance(2)
	w.say("rewind %s, may: %v, release: %v", p.arena.name, may, release)
	do := region.Rewind
	if release {
		do = region.Release
	}
	if !may {
		err := do(background)
		w.check(errors.Is(err, budget.ErrLoading), "a rewind that is refused: %v", err)
		return
	}
	along, then := w.along(p), len(w.ran)
	t := w.emptying(along)
	w.layer(func() error { return do(background) }, func(e ended) {
		t.add(w.empty(along))
		t.add(w.since(then))
		if !t.exits {
			w.expect("Rewind", e.err, t)
		}
		if release {
			p.region = budget.Region{}
		}
	})
}

// acquire takes the first free slot.
func (w *world) acquire() {
	w.say("acquire")
	region, err := w.b.Slots("room").Acquire()
	for _, p := range w.parts {
		if p.slot && p.region == (budget.Region{}) {
			w.check(err == nil && region.Name() == p.arena.name, "Acquire: %v", err)
			p.region = region
			return
		}
	}
	w.check(errors.Is(err, budget.ErrFull), "no slot is free: %v", err)
}

// nextFrame ends the frame.
func (w *world) nextFrame() {
	ending, next := w.frames[w.frame], w.frames[1-w.frame]
	for _, s := range slices.Concat(ending.near, ending.far) {
		if s.layered > 0 || s.layer && s != ending.near[0] {
			return // a load is running there
		}
	}
	w.say("next frame")
	t, then := reported{wrong: len(ending.near) > 1}, len(w.ran)
	t.add(ending.remembered(0, 0))
	for _, s := range next.near {
		t.add(s.tell())
	}
	w.layer(w.b.NextFrame, func(e ended) {
		t.add(w.closedTo(ending, 1))
		s := ending.near[0]
		s.froze, s.wrong, s.full = true, false, false
		t.add(w.closedTo(next, 0))
		t.add(w.since(then))
		w.frame = 1 - w.frame
		next.open(w.b.Frame(), "frame").opened.used = 0
		if !t.exits {
			w.expect("NextFrame", e.err, t)
		}
	})
}

// scratch returns a scratch arena for its current user.
func (w *world) scratch(index int) (scratch scope.Scratch, ok bool) {
	if index/2 <= worker {
		return w.b.Scratch(index/2, index%2), true
	}
	for _, l := range w.leases {
		if l.pair == index/2 {
			return l.Scratch(index % 2), true
		}
	}
	return scratch, false
}

// take leases a pair of scratch arenas.
func (w *world) take() {
	w.say("take")
	ctx, cancel := context.WithCancel(background)
	if len(w.free) == 0 {
		cancel()
	}
	defer cancel()
	l, err := w.b.Lease(ctx)
	if len(w.free) == 0 {
		w.check(errors.Is(err, context.Canceled), "Lease of none: %v", err)
		return
	}
	w.check(err == nil, "Lease: %v", err)
	pair := w.pairOf(l)
	at := slices.Index(w.free, pair)
	w.check(at >= 0, "Lease of pair %d, which is somebody's", pair)
	w.leases = append(w.leases, lease{l, pair})
	w.free = slices.Delete(w.free, at, at+1)
}

// pairOf returns the number of the leased pair: most often the goroutine's last one.
func (w *world) pairOf(l budget.Lease) int {
	var pair int
	arena := reflect.ValueOf(l.Scratches).FieldByName("first").Elem().FieldByName("Arena").String()
	if n, _ := fmt.Sscanf(arena, "scratch %d.0", &pair); n != 1 {
		return -1
	}
	return pair
}

// give releases a pair, once or twice. This closes its open scopes.
func (w *world) give() {
	if len(w.given) > 0 && w.chance(4) {
		w.check(w.given[w.random.IntN(len(w.given))].Release() != nil, "Release twice")
		return
	}
	if len(w.leases) == 0 {
		return
	}
	l := w.leases[0]
	first, second := w.scratches[2*l.pair], w.scratches[2*l.pair+1]
	for _, s := range slices.Concat(first.near, second.near, first.far, second.far) {
		if s.layered > 0 || s.layer {
			w.check(l.Release() != nil, "Release of what is in use")
			return
		}
	}
	w.say("give %d", l.pair)
	var t reported
	then := len(w.ran)
	for _, a := range []*arena{second, first} {
		if len(a.near) > 0 {
			t.wrong = true
			t.add(a.remembered(0, 0))
		}
	}
	w.layer(l.Release, func(e ended) {
		t.add(w.closedTo(second, 0))
		t.add(w.closedTo(first, 0))
		t.add(w.since(then))
		w.leases, w.given, w.free = w.leases[1:], append(w.given, l.Lease), append(w.free, l.pair)
		if !t.exits {
			w.expect(fmt.Sprint("Release of ", l.pair), e.err, t)
		}
	})
}
