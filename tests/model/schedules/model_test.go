package schedules_test

const (
	goroutines = 3
	parts      = 3 // a region, level, and above it one with two slots
	level      = 0
	most       = 8 // loads: two at the start, and one for each of six operations
	none       = -1
)

// seen is the visible state of a budget after a step.
type seen struct {
	routines [goroutines]seenRoutine
	contents [most]state // by load
	free     int8        // slots
	told     int8        // errors in OnError
}

type seenRoutine struct {
	at   place
	came result // of the last operation
}

// model is a budget by its documentation, without locks or atomic words: one operation at a time.
type model struct {
	parts        [parts]part
	routines     [goroutines]routine
	contents     [most]content
	made         int8    // contents
	room, former given   // the results of the last Acquire and the one before
	proofs       [2]int8 // the contents of the last two loads of level, with their scopes
	begun        int8    // operations
	tried        order   // the last operation that was tried on a closed budget
	told         int8
	closed       bool
}

type part struct {
	content int8 // the number of its load, or none
	by      int8 // the goroutine whose operation touches it, the innermost
	shut    bool // a pin is refused
	pins    int8
	owner   int8 // the number of its releases
	taken   bool
}

// given is a slot and its owner; with the part none there is no slot.
type given struct{ part, owner int8 }

type content struct {
	part  int8
	state state
}

type routine struct {
	at           place
	came         result
	does         order
	part         int8 // the lowest part that its operation touches
	content      int8 // the number of its load, or the contents being finalized
	outer, inner int8
	fails        bool // the function of its load fails
}

// newModel returns an empty budget.
func newModel() (m model) {
	m.room.part, m.former.part, m.proofs = none, none, [2]int8{none, none}
	for i := range m.parts {
		m.parts[i].content, m.parts[i].by = none, none
	}
	for i := range m.routines {
		m.routines[i].outer, m.routines[i].inner = none, none
	}
	return m
}

// newModelFull returns a budget with level loaded, and a room.
func newModelFull() model {
	m := newModel()
	for _, s := range []step{{0, loadLevel}, {0, goOn}, {0, acquire}, {0, loadRoom}, {0, goOn}} {
		m.take(s)
	}
	m.routines, m.proofs, m.begun = newModel().routines, newModel().proofs, 0
	return m
}

func (m *model) seen() (s seen) {
	for i, r := range m.routines {
		s.routines[i] = seenRoutine{min(r.at, held), r.came}
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

// along returns the parts that are emptied with a part, bottom first.
func along(part int8) []int8 {
	if part == level {
		return []int8{0, 1, 2}
	}
	return []int8{part}
}

// choices returns the possible next steps. Idle goroutines are equal: the first stands for all. A
// closed budget gets each operation once.
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
	for i, r := range m.routines {
		who := int8(i)
		switch r.at {
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

// makesSense reports whether an operation has its slot or its scope.
func (m *model) makesSense(o order) bool {
	switch o {
	case loadRoom, rewindRoom, pinRoom, release:
		return m.room.part != none
	case rewindFormer, pinFormer:
		return m.former.part != none
	case loadRoomIn, rewindRoomIn, releaseIn:
		return m.room.part != none && m.proofs[0] != none
	case loadRoomFormer:
		return m.room.part != none && m.proofs[1] != none
	}
	return true
}

// idle returns the number of goroutines that could begin an operation.
func (m *model) idle() (n int) {
	for _, r := range m.routines {
		if r.at == idle {
			n++
		}
	}
	return n
}

// step is an order to one goroutine.
type step struct {
	who int8
	do  order
}

func (m *model) take(s step) {
	r := &m.routines[s.who]
	if s.do < operations {
		if m.begun++; m.closed {
			m.tried = s.do + 1
		}
		r.does, r.came = s.do, nothing
		r.came = m.begin(s.who)
		return
	}
	switch {
	case s.do == giveUp:
		m.end(s.who, waited)
	case r.at == pinned:
		m.unpin(s.who)
	case r.at == within:
		m.returns(s.who, s.do == fail)
	case r.at == ends:
		m.contents[r.content].state = gone
		m.parts[m.contents[r.content].part].content = none
		m.goOn(s.who)
	}
}

// begin returns nothing if the operation continues.
func (m *model) begin(who int8) result {
	r := &m.routines[who]
	r.outer, r.inner, r.fails = none, none, false
	to := m.room
	switch r.does {
	case acquire:
		return m.acquire()
	case loadLevel, rewindLevel, pinLevel, closeBudget:
		to = given{level, 0}
	case rewindFormer, pinFormer:
		to = m.former
	}
	r.part = to.part
	p := &m.parts[r.part]
	stale := p.owner != to.owner
	switch {
	case r.does.pins():
		if p.shut || stale {
			return notPinned
		}
		p.pins++
		r.at = pinned
		return nothing
	case m.closed || stale:
		return closed
	case r.does.inside():
		proof := m.proofs[0]
		if r.does == loadRoomFormer {
			proof = m.proofs[1]
		}
		if r.outer = m.outer(proof); r.outer == none {
			return loading
		}
		m.routines[r.outer].inner = who
	case m.busy(r):
		return loading
	}
	for _, i := range along(r.part) {
		m.parts[i].by = who
		m.parts[i].shut = true // already shut, for a load inside
	}
	r.at = waits
	m.settle(who)
	return r.came
}

func (m *model) acquire() result {
	if m.closed {
		return closed
	}
	for i := int8(1); i < parts; i++ {
		if p := &m.parts[i]; !p.taken {
			p.taken = true
			m.room, m.former = given{i, p.owner}, m.room
			return done
		}
	}
	return full
}

// outer returns the load with that scope, if its function runs and no other load is inside.
func (m *model) outer(proof int8) int8 {
	for i, r := range m.routines {
		if r.at == within && r.content == proof && r.inner == none {
			return int8(i)
		}
	}
	return none
}

// busy reports whether another operation touches a part of r.
func (m *model) busy(r *routine) bool {
	for _, i := range along(r.part) {
		if m.parts[i].by != none {
			return true
		}
	}
	return false
}

// settle continues a goroutine that waits for pins, if there are none.
func (m *model) settle(who int8) {
	r := &m.routines[who]
	if r.at != waits {
		return
	}
	for _, i := range along(r.part) {
		if m.parts[i].pins > 0 {
			return
		}
	}
	m.goOn(who)
}

func (m *model) unpin(who int8) {
	r := &m.routines[who]
	m.parts[r.part].pins--
	r.at, r.came = idle, done
	for i := range m.routines {
		m.settle(int8(i))
	}
}

// goOn continues an operation that empties its parts, top first: up to the next finalizer, its
// load's function, or its end.
func (m *model) goOn(who int8) {
	r := &m.routines[who]
	list := along(r.part)
	for i := len(list) - 1; i >= 0; i-- {
		if c := m.parts[list[i]].content; c != none {
			m.contents[c].state = ending
			r.at, r.content = ends, c
			return
		}
	}
	switch {
	case r.fails:
		m.end(who, failed)
	case r.does.loads():
		r.at, r.content = within, m.made
		m.contents[m.made] = content{r.part, making}
		m.parts[r.part].content = m.made
		if r.part == level {
			m.proofs = [2]int8{m.made, m.proofs[0]}
		}
		m.made++
	case r.does == closeBudget:
		m.close(who)
	default:
		m.end(who, done)
	}
}

// returns ends a load's function. A load inside of it ends first.
func (m *model) returns(who int8, fails bool) {
	r := &m.routines[who]
	r.fails = fails
	switch {
	case r.inner != none:
		r.at = outlast
		m.told++
	case fails:
		m.goOn(who)
	default:
		m.contents[r.content].state = alive
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

// end releases the parts, to the load outside or to all.
func (m *model) end(who int8, came result) {
	r := &m.routines[who]
	for _, i := range along(r.part) {
		m.parts[i].by = r.outer
		m.parts[i].shut = r.outer != none
	}
	if p := &m.parts[r.part]; r.does.releases() && came == done {
		p.taken = false
		p.owner++
	}
	r.at, r.came = idle, came
	if r.outer != none {
		outer := &m.routines[r.outer]
		outer.inner = none
		if outer.at == outlast {
			outer.at = within
			m.returns(r.outer, outer.fails)
		}
	}
}
