package budget_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/budget"
)

func (h *house) rewind(part int) {
	p := h.parts[part]
	if p.region == nil {
		return
	}
	claim := h.claim()
	region := claim.region(p.region)
	h.say("rewind %s %s", p.name, claim.what)
	if !h.mayTouch(part, claim) {
		h.did["rewind refused"]++
		assert.ErrorIs(h.t, region.Rewind(background), budget.ErrLoading)
		return
	}
	h.did["rewound"]++
	from := len(h.want)
	fails := h.empty(part)
	h.mayLeave(from, func() { assert.Equal(h.t, fails, region.Rewind(background) != nil, "%q", h.log) })
}

func (h *house) acquire() {
	h.say("acquire")
	region, err := h.b.Slots("room").Acquire()
	for _, p := range h.parts {
		if p.slot < 0 || p.region != nil {
			continue
		}
		if assert.NoError(h.t, err, "%q", h.log) {
			h.did["acquired"]++
			assert.Equal(h.t, p.name, region.Name(), "the first free one")
			p.region = region
		}
		return
	}
	h.did["no slot free"]++
	assert.ErrorIs(h.t, err, budget.ErrFull, "%q", h.log)
}

func (h *house) release(part int) {
	p := h.parts[part]
	if p.region == nil {
		return
	}
	h.say("release %s", p.name)
	if p.slot < 0 {
		assert.ErrorContains(h.t, p.region.Release(background), "which has no slots; Rewind it")
		return
	}
	claim := h.claim()
	region := claim.region(p.region)
	if !h.mayTouch(part, claim) {
		h.did["rewind refused"]++
		assert.ErrorIs(h.t, region.Release(background), budget.ErrLoading)
		return
	}
	h.did["released"]++
	from := len(h.want)
	fails := h.empty(part)
	p.stale, p.region = append(p.stale, region), nil
	h.mayLeave(from, func() { assert.Equal(h.t, fails, region.Release(background) != nil, "%q", h.log) })
}

// stale uses what was given back: a slot that was released, or pads.
func (h *house) stale() {
	h.say("stale")
	for _, p := range h.parts {
		if len(p.stale) == 0 {
			continue
		}
		h.did["stale refused"]++
		old := p.stale[h.random.IntN(len(p.stale))]
		_, err := budget.Load[frog](background, old, nil)
		for _, err := range []error{err, old.Rewind(background), old.Release(background)} {
			assert.ErrorIs(h.t, err, budget.ErrClosed)
		}
	}
	if len(h.given) > 0 {
		h.did["given twice"]++
		old := h.given[h.random.IntN(len(h.given))]
		assert.ErrorContains(h.t, old.Give(), "which were given back before")
		assert.Panics(h.t, func() { old.Pad(h.random.IntN(2)).Open("stale") })
	}
}

// reconfigure moves a unit between two regions, or makes one larger for nothing.
func (h *house) reconfigure() {
	plan := h.plan
	plan.Regions = slices.Clone(plan.Regions)
	bytes := func(i int) uint64 { return uint64(max(1, plan.Regions[i].Slots)) * houseUnit }
	from, to := h.random.IntN(len(plan.Regions)), h.random.IntN(len(plan.Regions))
	units := max(bytes(from), bytes(to)) / houseUnit // of a region with slots, one for each
	less := units * houseUnit / uint64(max(1, plan.Regions[from].Slots))
	if plan.Regions[from].Size <= less {
		return
	}
	plan.Regions[from].Size -= less
	plan.Regions[to].Size += units * houseUnit / uint64(max(1, plan.Regions[to].Slots))
	sum := !h.chance(8)
	if !sum {
		plan.Regions[to].Size += houseUnit
	}
	h.say("reconfigure %d to %d", from, to)
	err := h.b.Reconfigure(background, plan)
	loaded := from != to && slices.ContainsFunc(h.parts, func(p *housePart) bool {
		return len(p.scopes) > 0 && min(from, to) <= p.level && p.level <= max(from, to)
	})
	switch {
	case !sum:
		h.did["redraw refused: sum"]++
		assert.ErrorContains(h.t, err, "Reconfigure: the regions have", "%q", h.log)
	case len(h.running) > 0:
		h.did["redraw refused: loading"]++
		assert.ErrorIs(h.t, err, budget.ErrLoading, "%q", h.log)
	case loaded:
		h.did["redraw refused: loaded"]++
		assert.ErrorContains(h.t, err, "is loaded; Rewind it first", "%q", h.log)
	default:
		assert.NoError(h.t, err, "%q", h.log)
		if from != to {
			h.did["redrawn"]++
		}
		h.plan = plan
	}
}

func (h *house) take() {
	h.say("take")
	wait := time.Minute
	if len(h.free) == 0 {
		wait = 10 * time.Microsecond
	}
	ctx, cancel := context.WithTimeout(background, wait)
	defer cancel()
	lent, err := h.b.Pads.Take(ctx)
	if len(h.free) == 0 {
		h.did["none to lend"]++
		assert.ErrorIs(h.t, err, context.DeadlineExceeded, "%q", h.log)
		assert.ErrorContains(h.t, err, "2 of 3 are lent, 1 are asked for by number")
		return
	}
	assert.NoError(h.t, err, "%q", h.log)
	h.did["lent"]++
	h.lent = append(h.lent, houseLent{lent, h.free[0]})
	h.free = h.free[1:]
}

// give gives a pair back, with scopes open or without.
func (h *house) give() {
	if len(h.lent) == 0 {
		return
	}
	i := h.random.IntN(len(h.lent))
	l := h.lent[i]
	h.say("give %d", l.pair)
	from, open, full := len(h.want), false, false
	for k := range 2 {
		pad := &h.pads[2*l.pair+1-k].modelStack
		open, full = open || len(pad.scopes) > 0, full || pad.full()
		h.closeTo(pad, 0)
	}
	h.did["given"]++
	if open {
		h.did["given with scopes open"]++
	}
	h.lent = slices.Delete(h.lent, i, i+1)
	h.given, h.free = append(h.given, l.Lent), append(h.free, l.pair)
	h.mayLeave(from, func() {
		err := l.Give()
		assert.Equal(h.t, open, err != nil, "%v: %q", err, h.log)
		assert.Equal(h.t, full, errors.Is(err, budget.ErrFull), "%v: %q", err, h.log)
	})
}

func (h *house) endFrame() {
	h.say("turn")
	h.did["turned"]++
	from := len(h.want)
	full := h.frame[h.turn].full()
	fails := h.closeTo(&h.frame[h.turn], 1)
	h.turn = 1 - h.turn
	fails = h.closeTo(&h.frame[h.turn], 0) || fails
	h.frame[h.turn].open()
	h.mayLeave(from, func() {
		err := h.b.Turn()
		assert.Equal(h.t, fails || full, err != nil, "%q", h.log)
		assert.Equal(h.t, full, errors.Is(err, budget.ErrFull), "%q", h.log)
	})
}

// padsComeAndGo takes pads, opens a scope on them, or gives them back: mostly the same pair.
func (h *house) padsComeAndGo() {
	if len(h.lent) == 0 {
		h.take()
		return
	}
	if h.chance(2) {
		h.onPad(2*h.lent[0].pair + h.random.IntN(2))
		return
	}
	h.give()
}

// onPad opens a scope on a pad, or works in the topmost one, or closes it.
func (h *house) onPad(index int) {
	pad, ok := h.pad(index)
	if !ok {
		return
	}
	p := h.pads[index]
	if depth := len(p.scopes); depth == 0 || depth < 6 && h.chance(4) {
		h.say("pad %d opens", index)
		p.tops = append(p.tops[:depth], pad.Open("a scope"))
		p.modelStack.open()
		return
	}
	top := p.tops[len(p.scopes)-1]
	if h.chance(2) {
		h.say("pad %d works", index)
		h.work(top, &p.modelStack, 1+index)
		return
	}
	h.say("pad %d closes", index)
	h.closeTop(top, &p.modelStack)
}
