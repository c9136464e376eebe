package budget_test

import (
	"errors"
	"runtime"
	"slices"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// leaver makes a finalizer that ends the goroutine that runs it: all others run all the same.
func (h *house) leaver(s scope.Scope, m *modelStack) {
	h.id++
	id, to := h.id, m.top()
	if h.chance(3) {
		if m.tempOf == 0 {
			m.tempOf = len(m.scopes)
		}
		s, to = s.Temp(), &m.temp
	}
	h.leaves[id] = true
	to.ids = append(to.ids, id)
	s.Defer(func() {
		ran = append(ran, id)
		runtime.Goexit()
	})
}

// left says whether a finalizer that ended the goroutine was among those that ran from there on.
func (h *house) left(from int) bool {
	return slices.ContainsFunc(h.want[from:], func(id int64) bool { return h.leaves[id] })
}

// mayLeave does what runs the finalizers from there on, and ends as they say.
func (h *house) mayLeave(from int, do func()) {
	finished := false
	defer func() {
		assert.Equal(h.t, h.left(from), !finished, "a finalizer ended the goroutine: %q", h.log)
		if !finished {
			h.did["left"]++
		}
	}()
	do()
	finished = true
}

// closeTop closes the topmost scope as its user does: what a Try... met there comes back.
func (h *house) closeTop(s scope.Scope, m *modelStack) {
	from := len(h.want)
	full := m.top().full || m.tempOf == len(m.scopes) && m.temp.full
	fails := h.closeTo(m, len(m.scopes)-1)
	h.mayLeave(from, func() {
		err := s.Close()
		assert.Equal(h.t, fails || full, err != nil, "%q", h.log)
		assert.Equal(h.t, full, errors.Is(err, budget.ErrFull), "%q", h.log)
	})
}
