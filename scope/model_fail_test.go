package scope_test

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
)

// finalize is every finalizer of Go.
func (m *modelMachine) finalize(id int) (err error) {
	m.readBook()
	m.check(!m.ran[id], "finalizer %d runs again", id)
	m.ran[id] = true
	m.trace = append(m.trace, uint64(id))
	if n := len(m.direct) - 1; n >= 0 && m.direct[n] == id {
		m.direct = m.direct[:n]
		return m.behave(id, nil)
	}
	want, e := m.next()
	m.check(e != nil && want == id, "finalizer %d runs, the next one is %d", id, want)
	if e == nil {
		return nil
	}
	m.finalizers++
	defer func() {
		v := recover()
		if v != nil {
			m.fail("panicked: " + fmt.Sprint(v))
			panic(v)
		}
		if err != nil {
			m.fail(err.Error())
		}
	}()
	return m.behave(id, e)
}

func (m *modelMachine) fail(text string) {
	m.failures++
	m.failed = append(m.failed, text)
}

// readBook looks at which finalizers C has run meanwhile.
func (m *modelMachine) readBook() {
	for ; m.read < m.book.Count; m.read++ {
		id := int(m.book.Log[m.read])
		want, _ := m.next()
		m.check(want == id && !m.ran[id], "finalizer %d runs in C, the next one is %d", id, want)
		m.ran[id] = true
		m.finalizers++
		m.trace = append(m.trace, uint64(id))
	}
}

// call runs fn, which is to call the finalizer, or fails to register it.
func (m *modelMachine) call(id int, fn func()) {
	m.direct = append(m.direct, id)
	n := len(m.direct)
	defer func() { m.direct = m.direct[:n-1] }()
	fn()
}

// modelFinalizer is what one does.
type modelFinalizer struct {
	how   finKind
	child int // finalizer of what it makes or owns
	pick  int // which of the held values it takes
}

type finKind int

const (
	finSucceeds finKind = iota
	finFails
	finPanics
	finExits
	finAllocates
	finOwns
	finOpens
	finCloses
	finUsesOtherPad
	finCancels
	finClosesNow
	finKinds
)

type modelPanic int

func (p modelPanic) String() string { return fmt.Sprintf("panic of %d", int(p)) }

type modelError int

func (e modelError) Error() string { return fmt.Sprintf("error of %d", int(e)) }

// behave does what the program says. e is nil when somebody called the finalizer out of its place: then its scope isn't
// closing, and it leaves it alone.
func (m *modelMachine) behave(id int, e *modelEntry) error {
	f := m.p.fins[id]
	switch f.how {
	case finFails:
		return modelError(id)
	case finPanics:
		panic(modelPanic(id))
	case finExits:
		m.exit()
	case finCancels:
		m.cancel(f.pick)
	case finClosesNow:
		m.closeNow(f.pick)
	case finUsesOtherPad:
		m.useOtherPad(f.child)
	}
	if e == nil {
		return nil
	}
	switch f.how {
	case finAllocates:
		m.check(points.TryNew(e.scope) == nil, "TryNew in a scope whose finalizers run")
		points.New(e.scope)
		m.check(false, "New in a scope whose finalizers run")
	case finOwns:
		m.call(f.child, func() {
			defer func() { m.check(m.ran[f.child], "what a closing scope doesn't take is closed") }()
			e.scope.Own(modelCloser(f.child))
		})
	case finOpens:
		m.refusedOpen(e.scope.Open)
		if m.arena.open != nil && m.top().floor != modelNone {
			m.refusedOpen(func(string) scope.Scope { return m.arena.open() })
		}
	case finCloses:
		m.refusedClose(e.scope)
		if m.top().floor != modelNone { // else the constructor of a temporary fails, which leaves the topmost scope open
			for _, l := range m.levels {
				m.refusedClose(l.scope)
			}
		}
	}
	return nil
}

// exit ends the goroutine. When that ends a load which had succeeded but for its temporaries, the rest closes too.
func (m *modelMachine) exit() {
	m.exiting = true
	if l := m.levels[0]; len(m.levels) == 1 && l.tempFloor == 0 {
		l.floor = 0
	}
	runtime.Goexit()
}

func (m *modelMachine) refusedClose(s scope.Scope) {
	err := s.Close()
	m.check(isMisuse(err), "Close from a finalizer: %v", err)
}

func isMisuse(err error) bool { return errors.As(err, new(*scope.Misuse)) }

func (m *modelMachine) refusedOpen(open func(string) scope.Scope) {
	defer func() {
		err, _ := recover().(error)
		m.check(isMisuse(err) || isFull(err) != nil, "Open from a finalizer: %v", err)
	}()
	open("from a finalizer")
	m.check(false, "a scope opens in one whose finalizers run")
}

// useOtherPad makes an object in a scope of another pad, which is all right.
func (m *modelMachine) useOtherPad(child int) {
	s := m.other.Open("from a finalizer")
	x := things.TryNew(s)
	if x == nil {
		m.check(m.size < 32, "the other pad has no room")
		_ = s.Close()
		return
	}
	*x = newThing(child)
	m.call(child, func() { m.check(s.Close() == nil && m.ran[child], "a scope of another pad closes in a finalizer") })
}

// pickHeld is one of the held values that are there, or nil.
func (m *modelMachine) pickHeld(pick int) *modelEntry {
	var held []*modelEntry
	for _, l := range m.levels {
		for _, e := range slices.Concat(l.chain, l.temps) {
			if !e.done && (e.kind == entryHeld || e.kind == entryValue) {
				held = append(held, e)
			}
		}
	}
	if len(held) == 0 {
		return nil
	}
	return held[pick%len(held)]
}

func (m *modelMachine) cancel(pick int) {
	if e := m.pickHeld(pick); e != nil {
		m.check(e.held.Value() != nil || e.kind == entryHeld, "%d is there", e.id)
		m.check(e.held.Cancel(), "%d can be cancelled", e.id)
		m.pass(e)
		m.checkGone(e)
	}
}

func (m *modelMachine) checkGone(e *modelEntry) {
	m.check(e.held.Value() == nil && !e.held.Cancel() && errors.Is(e.held.CloseNow(), scope.ErrClosed), "%d is gone", e.id)
}

// closeNow closes a held value before its time. What that does is its caller's affair.
func (m *modelMachine) closeNow(pick int) {
	e := m.pickHeld(pick)
	if e == nil {
		return
	}
	m.pass(e)
	defer m.checkGone(e)
	if e.kind == entryValue {
		m.check(e.held.CloseNow() == nil, "nothing runs for %d", e.id)
		return
	}
	m.finalizers++
	m.call(e.id, func() {
		defer func() { m.check(m.ran[e.id], "CloseNow runs %d", e.id) }()
		err := e.held.CloseNow()
		m.check(err == nil && m.p.fins[e.id].how != finFails || err == modelError(e.id), "CloseNow of %d: %v", e.id, err)
	})
}

// ask is the model of requests for bytes, one after another. It gives the key of the plan when one of them is to be
// refused, else "".
func (m *modelMachine) ask(st *modelStep, s scope.Scope, align uint64, sizes ...uint64) (key string) {
	stats, _, _ := m.arena.stats()
	need, sum := stats.Used, uint64(0)
	for _, size := range sizes {
		sum += size
		need = (need+align-1)&-align + size
		if m.asks == m.refuse {
			m.leave(s, st.temp, (sum-1)&^7)
			return m.arena.key
		}
		if need > m.size && !m.unsure {
			return m.arena.key
		}
		m.asks++
		if st.temp {
			need = 0
		}
		m.needs = append(m.needs, need)
	}
	return ""
}

// leave leaves just so much room in the scope; for temporaries, none at either end.
func (m *modelMachine) leave(s scope.Scope, temp bool, room uint64) {
	if temp {
		s.Alloc(s.Free(), 1)
		s, room = m.top().scope, 0
	}
	s.Alloc(s.Free()-room, 1)
}

// refused notes that the program stops here.
func (m *modelMachine) refused(key string, at, toldAt int) {
	m.stopped, m.stoppedAt, m.key, m.toldAt = true, at, key, toldAt
}

// full runs fn, which a full unwinds when there is a key, and only then. The panic goes on. id is the finalizer that fn
// gives away, or 0.
func (m *modelMachine) full(key string, id int, fn func()) {
	at := len(m.trace)
	defer func() {
		v := recover()
		if v == nil {
			if m.exiting && (key != "" || m.unsure) { // what was refused ended the goroutine
				m.refused(cmp.Or(key, m.arena.key), at, modelTold)
			}
			return
		}
		err, _ := v.(error)
		full := isFull(err)
		m.check(full != nil && (full.Key == key || m.unsure && full.Key == m.arena.key), "it panics: %v", v)
		if full == nil {
			panic(v)
		}
		m.refused(full.Key, at, modelTold)
		switch m.p.fins[id].how {
		case finFails:
			m.check(errors.Is(full, modelError(id)), "what %d said is lost: %v", id, full)
		case finPanics:
			m.check(strings.Contains(full.Error(), modelPanic(id).String()), "the panic of %d is lost: %v", id, full)
		}
		panic(v)
	}()
	fn()
	m.check(key == "", "it isn't full: %s", key)
}

const cantDoWithout = "the program can't do without it"

// tried looks at the answer of a Try... and says whether there is one.
func (m *modelMachine) tried(st *modelStep, s scope.Scope, key string, p unsafe.Pointer) bool {
	if p != nil {
		m.check(key == "", "it isn't full: %s", key)
		return true
	}
	full := isFull(s.Err())
	m.check(full != nil && full.Key == m.arena.key && (key != "" || m.unsure), "Err after Try...: %v", s.Err())
	depth := len(m.levels) - 1
	for i, l := range m.levels {
		if st.temp && l.owner {
			depth = i
		}
	}
	m.refused(m.arena.key, len(m.trace), depth)
	m.triedAt = depth
	if st.n%3 == 0 {
		panic(cantDoWithout)
	}
	return false
}

// judge says that err is what it has to be: it names each failure, and is nil when there is no reason for one. A full
// that was lost on the way may be told by who remembers it.
func (m *modelMachine) judge(err error, failed []string, reasons ...bool) {
	for _, text := range failed {
		m.check(err != nil && strings.Contains(err.Error(), text), "an error is lost: %q, in: %v", text, err)
	}
	reason := len(failed) > 0 || slices.Contains(reasons, true) || m.lost && isFull(err) != nil
	m.check((err != nil) == reason, "the error is %v", err)
}
