package budget_test

import (
	"errors"
	"slices"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// someLoad loads a part that somebody has, allowed or not.
func (h *house) someLoad() {
	part := h.random.IntN(len(h.parts))
	if h.parts[part].region != nil {
		_ = h.load(part, h.claim())
	}
}

// load loads a part with random contents and checks the verdict.
func (h *house) load(part int, claim houseClaim) error {
	p := h.parts[part]
	region := claim.region(p.region)
	h.say("load %s %s", p.name, claim.what)
	if !h.mayTouch(part, claim) {
		h.did["load refused"]++
		_, err := budget.Load(background, region, func(scope.Scope) (*frog, error) { panic("it should be refused") })
		assert.ErrorIs(h.t, err, budget.ErrLoading, "%q", h.log)
		return err
	}
	told := h.b.Report().ErrorCount
	from := len(h.want)
	fails := h.empty(part)
	began, left := false, h.left(from)
	h.loadID++
	l := &houseLoad{id: h.loadID, part: part, outer: claim.of}
	h.running = append(h.running, l)
	end, verdict := endThrough, false
	defer func() {
		h.running = slices.DeleteFunc(h.running, func(other *houseLoad) bool { return other == l })
		if !verdict { // a panic or Goexit goes through
			h.did["load failed"]++
			from := len(h.want)
			if end == endLoaded && began && !p.full() && len(p.scopes) == 1 {
				h.closeTemp(&p.modelStack) // it was loaded, but who closed the temporaries has gone
			}
			h.empty(part)
			if left || h.left(from) {
				h.did["load left"]++
			} else {
				assert.Contains(h.t, []int{endPanic, endGoexit, endThrough}, end, "%q", h.log)
			}
			assert.NotEqual(h.t, left, began, "no load begins when who emptied the region has gone: %q", h.log)
			h.check()
		}
	}()
	loaded, err := budget.Load(background, region, func(s scope.Scope) (*frog, error) {
		began, l.scope = true, s
		p.open()
		f := frogs.New(s)
		assert.Equal(h.t, fails, h.b.Report().ErrorCount > told, "%q", h.log)
		h.check()
		end = h.body(l, s)
		h.ended = append(h.ended, s)
		return f, h.finish(end, s)
	})
	verdict = true
	p.loaded = loaded
	from = len(h.want)
	h.judge(l, end, err)
	assert.False(h.t, h.left(from), "a finalizer ended the goroutine, and here it is: %q", h.log)
	return err
}

// judge holds what Load says against what happened in it.
func (h *house) judge(l *houseLoad, end int, err error) {
	p := h.parts[l.part]
	leftOpen := end == endLoaded && len(p.scopes) > 1
	var misuse *scope.Misuse
	assert.Equal(h.t, leftOpen, errors.As(err, &misuse), "%v: %q", err, h.log)
	if end == endLoaded && !p.full() && !leftOpen {
		assert.NoError(h.t, err, "%q", h.log)
		h.did["loaded"]++
		h.closeTemp(&p.modelStack)
		p.alive = true
		return
	}
	h.did["load failed"]++
	assert.Equal(h.t, end == endError, errors.Is(err, errLoader), "%v: %q", err, h.log)
	assert.Equal(h.t, end == endFull || end != endError && p.full(), errors.Is(err, budget.ErrFull), "%v: %q", err, h.log)
	assert.NotEqual(h.t, endGoexit, end, "%q", h.log)
	if end == endPanic || end == endThrough {
		assert.True(h.t, p.full(), "a panic is an error only after a full: %q", h.log)
	}
	h.empty(l.part)
}

// body does random things in a load and says how it ends.
func (h *house) body(l *houseLoad, s scope.Scope) int {
	p := h.parts[l.part]
	scopes := []scope.Scope{s}
	for range h.random.IntN(12) {
		top := scopes[len(scopes)-1]
		switch h.random.IntN(10) {
		case 0:
			if len(scopes) < 5 {
				h.say("open")
				scopes = append(scopes, top.Open("inner"))
				p.open()
			}
		case 1:
			if len(scopes) > 1 {
				h.say("close")
				scopes = scopes[:len(scopes)-1]
				h.closeTop(top, &p.modelStack)
			}
		case 2, 3:
			if len(h.running) < 4 {
				h.did["nested"]++
				h.step() // on this goroutine: a panic comes through
			}
		case 4:
			if len(h.running) < 4 {
				h.say("beside")
				o := h.beside(func() {
					if h.chance(2) {
						h.onPad(h.random.IntN(2))
						return
					}
					h.step()
				})
				assert.True(h.t, o.panicked == nil || o.panicked == "boom", "%v: %q", o.panicked, h.log)
				h.did["beside"]++
				h.say("back")
			}
		case 5, 6:
			h.onPad(h.random.IntN(2))
		case 7:
			h.padsComeAndGo()
		default:
			h.say("work in %s", p.name)
			h.work(top, &p.modelStack, 0)
		}
		h.check()
	}
	if h.chance(2) {
		return endLoaded
	}
	return h.random.IntN(endCount)
}
