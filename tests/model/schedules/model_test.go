package schedules_test

// order is what a goroutine may be told: to begin an operation, or to go on with the one that it is in.
type order uint8

const (
	loadLevel order = iota
	loadRoom
	loadRoomIn // with In of the scope that the last load of level was given, which may be over
	rewindLevel
	rewindRoom
	rewindRoomIn
	pinLevel
	pinRoom
	acquire
	release
	releaseIn
	closeBudget
	operations // how many there are

	goOn   = iota - 1 // it unpins; its finalizer, or the function of its load, returns
	fail              // the function of its load returns an error
	giveUp            // the context ends of who waits for pins; of Close, its ten milliseconds
	orders
)

// inside says whether the operation proves that it is inside of a load of level.
func (o order) inside() bool { return o == loadRoomIn || o == rewindRoomIn || o == releaseIn }

func (o order) loads() bool    { return o <= loadRoomIn }
func (o order) releases() bool { return o == release || o == releaseIn }

// place is where a goroutine is. Of those from held on others can't tell which.
type place uint8

const (
	idle   place = iota
	within       // in the function of its load
	pinned
	held // in a finalizer, or waiting

	waits   // held, for pins
	ends    // held, in a finalizer
	outlast // held, since its load's function has ended before what is inside
	places
)

// result is what an operation came to.
type result uint8

const (
	nothing result = iota // yet
	done
	leaks      // a Close that names slots that were never released
	notPinned  // Pin is false
	loading    // ErrLoading
	closed     // ErrClosed
	full       // ErrFull
	failed     // the error of the load's function
	waited     // the error names who has it pinned, and nothing has changed
	unexpected // another error, or a panic
	results
)

// state is that of what a load makes.
type state uint8

const (
	unmade state = iota
	making       // its load is at work
	alive        // Loaded.Get gives it
	ending       // its finalizer is at work
	gone
	broken // none of these: it has other bytes, its finalizer ran twice, or it went without
	states
)

const (
	goroutines = 3
	parts      = 3 // a region, level, and above it one with two slots
	level      = 0
	most       = 8 // loads: two at the start, and one for each of six operations
	nobody     = -1
)

// seen is all that can be seen of a budget after a step.
type seen struct {
	routines [goroutines]seenRoutine
	contents [most]state // by load
	free     int8        // slots
	told     int8        // errors for the report
}

type seenRoutine struct {
	at   place
	came result // of the last operation
}

// model is a budget as its documentation has it: no locks, no words, one thing at a time.
type model struct {
	parts           [parts]part
	routines        [goroutines]routine
	contents        [most]content
	made            int8  // contents
	room, roomOwner int8  // what the last Acquire gave, and to which owner; room is nobody before
	proof           int8  // what the load makes whose scope is used as proof; nobody before
	begun           int8  // operations
	tried           order // of a closed budget: each operation up to this
	told            int8
	closed          bool
}

type part struct {
	content int8 // what is in there, or nobody
	by      int8 // the goroutine whose operation touches it, the innermost
	shut    bool // for those who would pin it
	pins    int8
	owner   int8 // how often it was released
	taken   bool
}

type content struct {
	part  int8
	state state
}

type routine struct {
	at           place
	came         result
	does         order
	part         int8 // the lowest that its operation touches
	content      int8 // what its load makes, or is being finalized
	outer, inner int8
	fails        bool // the function of its load
}

// newModel is an empty budget.
func newModel() (m model) {
	m.room, m.proof = nobody, nobody
	for i := range m.parts {
		m.parts[i].content, m.parts[i].by = nobody, nobody
	}
	for i := range m.routines {
		m.routines[i].outer, m.routines[i].inner = nobody, nobody
	}
	return m
}

// newModelFull has level loaded, and a room.
func newModelFull() model {
	m := newModel()
	for _, s := range []step{{0, loadLevel}, {0, goOn}, {0, acquire}, {0, loadRoom}, {0, goOn}} {
		m.take(s)
	}
	m.routines, m.proof, m.begun = newModel().routines, nobody, 0
	return m
}

func (m *model) seen() (s seen) {
	for i, w := range m.routines {
		s.routines[i] = seenRoutine{min(w.at, held), w.came}
	}
	for i, c := range m.contents {
		s.contents[i] = c.state
	}
	for _, p := range m.parts[1:] {
		if !p.taken {
			s.free++
		}
	}
	s.told = m.told
	return s
}

// along are the parts that go when one is emptied, bottom first.
func along(part int8) []int8 {
	if part == level {
		return []int8{0, 1, 2}
	}
	return []int8{part}
}

// choices are the steps that may come next. Goroutines that are idle are all alike: the first stands for them. A closed budget
// is asked for each operation once.
func (m *model) choices(limit int8) (list []step) {
	if m.closed {
		for do := m.tried; do < operations; do++ {
			if m.makesSense(do) {
				return []step{{0, do}}
			}
		}
		return nil
	}
	began := m.begun == limit
	for i, w := range m.routines {
		who := int8(i)
		switch w.at {
		case idle:
			for do := order(0); do < operations && !began; do++ {
				if m.makesSense(do) {
					list = append(list, step{who, do})
				}
			}
			began = true
		case within:
			list = append(list, step{who, goOn}, step{who, fail})
		case pinned, ends:
			list = append(list, step{who, goOn})
		case waits:
			list = append(list, step{who, giveUp})
		}
	}
	return list
}

// makesSense: who has no slot can't load it, and who was never given a scope can't show it.
func (m *model) makesSense(o order) bool {
	switch o {
	case loadRoom, rewindRoom, pinRoom, release:
		return m.room != nobody
	case loadRoomIn, rewindRoomIn, releaseIn:
		return m.room != nobody && m.proof != nobody
	}
	return true
}

// idle is how many goroutines there are that could begin.
func (m *model) idle() (n int) {
	for _, w := range m.routines {
		if w.at == idle {
			n++
		}
	}
	return n
}

// step is what one goroutine is told.
type step struct {
	who int8
	do  order
}

func (m *model) take(s step) {
	w := &m.routines[s.who]
	if s.do < operations {
		if m.begun++; m.closed {
			m.tried = s.do + 1
		}
		w.does, w.came = s.do, nothing
		w.came = m.begin(s.who)
		return
	}
	switch {
	case s.do == giveUp:
		m.end(s.who, waited)
	case w.at == pinned:
		m.unpin(s.who)
	case w.at == within:
		m.returns(s.who, s.do == fail)
	case w.at == ends:
		m.contents[w.content].state = gone
		m.parts[m.contents[w.content].part].content = nobody
		m.goOn(s.who)
	}
}

// begin gives nothing for what isn't over at once.
func (m *model) begin(who int8) result {
	w := &m.routines[who]
	w.part, w.outer, w.inner, w.fails = level, nobody, nobody, false
	stale := false
	switch w.does {
	case loadRoom, loadRoomIn, rewindRoom, rewindRoomIn, pinRoom, release, releaseIn:
		w.part = m.room
		stale = m.parts[m.room].owner != m.roomOwner
	case acquire:
		return m.acquire()
	}
	p := &m.parts[w.part]
	switch {
	case w.does == pinLevel || w.does == pinRoom:
		if p.shut || stale {
			return notPinned
		}
		p.pins++
		w.at = pinned
		return nothing
	case m.closed || stale:
		return closed
	case w.does.inside():
		if w.outer = m.outer(); w.outer == nobody {
			return loading
		}
		m.routines[w.outer].inner = who
	case m.busy(w):
		return loading
	}
	for _, i := range along(w.part) {
		m.parts[i].by = who
		m.parts[i].shut = true // inside it is, already
	}
	w.at = waits
	m.settle(who)
	return w.came
}

func (m *model) acquire() result {
	if m.closed {
		return closed
	}
	for i := int8(1); i < parts; i++ {
		if p := &m.parts[i]; !p.taken {
			p.taken = true
			m.room, m.roomOwner = i, p.owner
			return done
		}
	}
	return full
}

// outer is the load whose function was given the proof, if it runs and nobody else is inside.
func (m *model) outer() int8 {
	for i, w := range m.routines {
		if w.at == within && w.content == m.proof && w.inner == nobody {
			return int8(i)
		}
	}
	return nobody
}

// busy says whether somebody touches what w would.
func (m *model) busy(w *routine) bool {
	for _, i := range along(w.part) {
		if m.parts[i].by != nobody {
			return true
		}
	}
	return false
}

// settle lets a goroutine go on that waits for pins, if there are none.
func (m *model) settle(who int8) {
	w := &m.routines[who]
	if w.at != waits {
		return
	}
	for _, i := range along(w.part) {
		if m.parts[i].pins > 0 {
			return
		}
	}
	m.goOn(who)
}

func (m *model) unpin(who int8) {
	w := &m.routines[who]
	m.parts[w.part].pins--
	w.at, w.came = idle, done
	for i := range m.routines {
		m.settle(int8(i))
	}
}

// goOn is an operation that empties what it touches, top first: up to the next finalizer, its load's function, or its end.
func (m *model) goOn(who int8) {
	w := &m.routines[who]
	list := along(w.part)
	for i := len(list) - 1; i >= 0; i-- {
		if c := m.parts[list[i]].content; c != nobody {
			m.contents[c].state = ending
			w.at, w.content = ends, c
			return
		}
	}
	switch {
	case w.fails:
		m.end(who, failed)
	case w.does.loads():
		w.at, w.content = within, m.made
		m.contents[m.made] = content{w.part, making}
		m.parts[w.part].content = m.made
		if w.part == level {
			m.proof = m.made
		}
		m.made++
	case w.does == closeBudget:
		m.close(who)
	default:
		m.end(who, done)
	}
}

// returns is the end of a load's function. Who is inside ends first.
func (m *model) returns(who int8, fails bool) {
	w := &m.routines[who]
	w.fails = fails
	switch {
	case w.inner != nobody:
		w.at = outlast
		m.told++
	case fails:
		m.goOn(who)
	default:
		m.contents[w.content].state = alive
		m.end(who, done)
	}
}

func (m *model) close(who int8) {
	came := done
	for _, p := range m.parts {
		if p.taken {
			came = leaks
		}
	}
	m.closed = true
	m.end(who, came)
	for i := range m.parts {
		m.parts[i].shut = true
	}
}

// end gives the parts back, to the load outside or to all.
func (m *model) end(who int8, came result) {
	w := &m.routines[who]
	for _, i := range along(w.part) {
		m.parts[i].by = w.outer
		m.parts[i].shut = w.outer != nobody
	}
	if p := &m.parts[w.part]; w.does.releases() && came == done {
		p.taken = false
		p.owner++
	}
	w.at, w.came = idle, came
	if w.outer != nobody {
		outer := &m.routines[w.outer]
		outer.inner = nobody
		if outer.at == outlast {
			outer.at = within
			m.returns(w.outer, outer.fails)
		}
	}
}
