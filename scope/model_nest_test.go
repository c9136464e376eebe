package scope_test

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// modelEnd is how a function that the program gave to Do ended.
type modelEnd struct {
	returned bool
	err      error
	left     bool // a scope was left open
	keeps    bool // what was made stays until it is cleared: a load that succeeds
}

// do opens the lowest scope, or one by Do, and runs the step's body in it, on a goroutine of its own.
func (m *modelMachine) do(st *modelStep, open func(fn func(scope.Scope) error) error) error {
	depth, failed := len(m.levels), len(m.failed)
	refused := depth == m.plan.Limits.Scopes
	var end modelEnd
	out := modelAttempt(func() error {
		return open(func(s scope.Scope) error {
			m.push(s)
			defer func() {
				end.left = len(m.levels) > depth+1
				end.keeps = m.arena.clear != nil && depth == 0 && end.returned && end.err == nil && !end.left && !m.stopped
				m.ending(depth)
				if end.keeps {
					m.levels[0].floor = modelNone
				}
			}()
			err := m.body(st)
			end.returned, end.err = true, err
			return err
		})
	})
	if refused {
		m.check(out.panicked == nil, "Do panics: %v", out.panicked)
		m.full("limits.scopes", 0, func() { panic(out.err) }) // the program hands it on
	}
	if end.keeps && !m.exiting {
		m.readBook()
		l := m.levels[0]
		m.ended(l.temps)
		l.temps, l.owner, l.tempFloor = nil, false, modelNone
		m.failed, l.lost = append(m.failed, l.lost...), nil
		m.take(failed) // told to the plan's OnError
	} else {
		m.closed(depth)
	}
	return m.doEnded(st, out, end, depth, m.take(failed))
}

// doEnded compares how it ended. Its error is the full that stopped the program, or nil.
func (m *modelMachine) doEnded(st *modelStep, out modelOutcome, end modelEnd, depth int, failed []string) error {
	remembers := m.stopped && !m.lost && m.toldAt >= depth
	switch {
	case m.exiting:
		m.check(out.exited, "it ended by %v, not Goexit", out)
		m.exiting = false
		m.lost = m.lost || m.stopped && m.toldAt >= depth
		return nil
	case m.stopped && m.toldAt < depth && out.panicked == cantDoWithout: // a scope around this one remembers the full
		panic(cantDoWithout)
	case !m.stopped && !end.returned:
		m.check(out.panicked == modelPanic(st.id), "it ended by %v", out)
		return nil
	}
	m.check(out.panicked == nil && !out.exited, "it ended by %+v: %v", out, out.panicked)
	m.check(end.err == nil || errors.Is(out.err, end.err), "%v isn't %v", out.err, end.err)
	full := isFull(out.err)
	m.check(!remembers || full != nil && full.Key == m.key, "it ended by %v, not full", out)
	m.judge(out.err, failed, end.err != nil, end.left, remembers)
	if remembers {
		m.toldAt = modelTold
	}
	return out.err
}

// rewind clears what a load kept.
func (m *modelMachine) rewind() {
	m.ending(0)
	out := modelAttempt(m.arena.clear)
	m.closed(0)
	m.check(out.exited == m.exiting && out.panicked == nil, "Rewind ended by %v", out)
	if !m.exiting {
		m.judge(out.err, m.take(0))
	}
}

// open opens a scope by hand, and closes it or leaves that to who encloses it.
func (m *modelMachine) open(st *modelStep) error {
	depth, failed := len(m.levels), len(m.failed)
	var s scope.Scope
	key := ""
	if depth == m.plan.Limits.Scopes {
		key = "limits.scopes"
	}
	m.full(key, 0, func() { s = m.top().scope.Open("by hand") })
	m.push(s)
	err := m.body(st)
	if st.kind == stepLeaveOpen {
		return err
	}
	for len(m.levels) > depth+1 { // left open
		m.check(isMisuse(s.Close()), "Close of a covered scope")
		err = m.close(len(m.levels)-1, len(m.failed), err)
	}
	return m.close(depth, failed, err)
}

// close closes the topmost scope, at a depth, by hand.
func (m *modelMachine) close(depth, failed int, met error) error {
	m.ending(depth)
	s := m.top().scope
	defer func() { // also when a finalizer ends the goroutine
		m.closed(depth)
		m.failed = m.failed[:failed]
	}()
	err := s.Close()
	m.readBook()
	full := isFull(err)
	remembers := m.stopped && m.triedAt == depth
	m.check(!remembers || full != nil && full.Key == m.key, "Close tells what the scope met: %v", err)
	m.judge(err, m.failed[failed:], remembers)
	if remembers {
		m.toldAt = modelTold
	}
	return errors.Join(met, err)
}

func (m *modelMachine) account(st *modelStep) error {
	l := m.top()
	name := fmt.Sprint("account ", st.n%4)
	key := ""
	if !l.names[name] {
		if m.accounts == m.plan.Limits.Accounts {
			key = "limits.accounts"
		} else {
			l.names[name] = true
			m.accounts++
			m.most.Accounts = max(m.most.Accounts, m.accounts)
		}
	}
	account := func() (want, got error) {
		got = scope.Account(l.scope, name, func() error {
			want = m.body(st)
			return want
		})
		return want, got
	}
	if key != "" {
		m.full(key, 0, func() { _, _ = account() })
	}
	want, got := account()
	m.check(want == got, "Account gives %v, not %v", got, want)
	return got
}

// construct makes an object whose constructor is the step's body. When that fails, all that it made in the scope is gone.
func (m *modelMachine) construct(st *modelStep) error {
	s, list := m.place(st)
	key := m.ask(st, s, 8, 32)
	if key != "" {
		m.full(key, 0, func() { _, _ = things.Make(s, func(*thing) error { return nil }) })
	}
	c := modelConstruction{m: m, st: st, scope: s, list: list, depth: len(m.levels), failed: len(m.failed), floor: len(*list)}
	c.cursor = m.cursor(m.top().scope)
	c.before, _, _ = m.arena.stats()
	defer c.end()
	x, err := things.Make(s, c.body)
	m.judge(err, m.failed[c.failed:], c.err != nil)
	m.check(c.err == nil || errors.Is(err, c.err), "Make gives %v, not %v", err, c.err)
	if c.made = err == nil; c.made {
		m.check(x.ID == int64(st.id), "Make gives what was made")
		*list = append(*list, &modelEntry{id: st.id, scope: s})
	}
	return err
}

// modelConstruction is a constructor at work.
type modelConstruction struct {
	m             *modelMachine
	st            *modelStep
	scope         scope.Scope
	list          *[]*modelEntry
	depth, failed int
	floor         int // of the list
	cursor        uint64
	before        scope.Stats
	began, made   bool
	left          bool // it returned with a scope open
	err           error
}

func (c *modelConstruction) body(x *thing) error {
	m := c.m
	c.began = true
	m.check(*x == thing{}, "a new object is zero")
	m.note(unsafe.Pointer(x))
	*x = newThing(c.st.id)
	returned := false
	defer func() {
		c.left = returned && c.err == nil && len(m.levels) > c.depth
		if returned && c.err == nil && !c.left {
			return
		}
		m.ending(c.depth)
		if !c.st.temp {
			m.levels[c.depth-1].floor = c.floor
			return
		}
		for _, l := range m.levels {
			if l.owner {
				l.tempFloor = c.floor
			}
		}
	}()
	c.err = m.body(c.st)
	if m.stopped && c.err == nil {
		c.err = errStopped
	}
	returned = true
	return c.err
}

// end is run whatever ends the constructor.
func (c *modelConstruction) end() {
	m := c.m
	if c.made {
		return
	}
	v := recover()
	if !c.began { // nobody knew that there is no room
		m.full("", 0, func() { panic(v) })
	}
	m.readBook()
	m.drop(c.depth)
	forgotten := m.stopped && m.triedAt >= c.depth // by a scope that the constructor left open
	m.lost = m.lost || forgotten
	m.ended((*c.list)[c.floor:])
	*c.list = (*c.list)[:c.floor]
	for _, l := range m.levels {
		l.floor, l.tempFloor = modelNone, modelNone
	}
	failed := m.take(c.failed) // Make tells
	if v != nil || m.exiting { // or who closes the scope, when it unwinds
		l := m.levels[c.depth-1]
		for _, other := range m.levels {
			if c.st.temp && other.owner {
				l = other
			}
		}
		l.lost = append(l.lost, failed...)
	}
	s, _, _ := m.arena.stats()
	m.check(m.p.temps || s.Used == c.before.Used && s.Objects == c.before.Objects, "%d bytes are used, %d were", s.Used, c.before.Used)
	m.check(c.st.temp || m.cursor(c.scope) == c.cursor, "the cursor isn't where it was")
	if v == nil || v == modelPanic(c.st.id) && c.st.end == endPanic && !m.stopped || forgotten && v == cantDoWithout {
		return
	}
	if err, _ := v.(error); c.left && !m.stopped {
		m.check(isMisuse(err), "a constructor that leaves a scope open: %v", v)
		return
	}
	panic(v)
}

// modelArena is where a program runs.
type modelArena struct {
	key   string                                   // of the plan that gives its size
	begin func(fn func(scope.Scope) error) error   // opens the lowest scope and runs fn in it
	clear func() error                             // closes what begin left, or nil
	open  func() scope.Scope                       // opens a scope on top, or nil
	stats func() (s scope.Stats, held, failed int) // held and failed are -1 where they aren't told
}

func modelPad(b *budget.Budget) modelArena {
	pad := b.Pad(0, 0)
	return modelArena{
		key:   "pads.size",
		begin: func(fn func(scope.Scope) error) error { return pad.Do("root", fn) },
		open:  func() scope.Scope { return pad.Open("on top") },
		stats: func() (scope.Stats, int, int) {
			s := pad.Stats()
			return s, s.Held, s.Failed
		},
	}
}

func modelRegion(t *testing.T, b *budget.Budget) modelArena {
	level := b.Region("level")
	return modelArena{
		key: "regions[0].size",
		begin: func(fn func(scope.Scope) error) error {
			_, err := budget.Load(t.Context(), level, func(s scope.Scope) (*point, error) { return nil, fn(s) })
			return err
		},
		clear: func() error { return level.Rewind(t.Context()) },
		stats: func() (scope.Stats, int, int) {
			r := level.Report()
			return scope.Stats{Used: r.Used, Objects: r.Objects, Finalizers: r.Finalizers}, -1, -1
		},
	}
}

// modelOutcome is how a function ended.
type modelOutcome struct {
	err      error
	panicked any
	exited   bool // by Goexit
}

// modelAttempt runs fn on a goroutine of its own, so that it may end in any way.
func modelAttempt(fn func() error) modelOutcome {
	done := make(chan modelOutcome)
	go func() {
		o := modelOutcome{exited: true}
		defer func() {
			if v := recover(); v != nil {
				o = modelOutcome{panicked: v}
			}
			done <- o
		}()
		o.err = fn()
		o.exited = false
	}()
	return <-done
}

// misuse does what must be refused and change nothing.
func (m *modelMachine) misuse(st *modelStep) {
	covered := m.levels[st.id%len(m.levels)].scope
	if covered != m.top().scope {
		m.check(isMisuse(covered.Close()), "Close of a covered scope")
		m.call(st.id, func() {
			defer func() {
				if v := recover(); v != nil {
					err, _ := v.(error)
					m.check(isMisuse(err) && m.ran[st.id], "Own in a covered scope: %v", v)
				}
			}()
			covered.Own(modelCloser(st.id))
			m.check(false, "a covered scope owns something")
		})
	}
	if m.stale != (scope.Scope{}) {
		m.check(errors.Is(m.stale.Close(), scope.ErrClosed), "Close of a closed scope")
	}
}

// note takes an address into the trace, or the cursor.
func (m *modelMachine) note(p unsafe.Pointer) {
	stats, _, _ := m.arena.stats()
	m.trace = append(m.trace, stats.Used)
	if m.exact {
		m.trace = append(m.trace, uint64(uintptr(p)-m.base))
	}
}
