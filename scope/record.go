package scope

import "github.com/upfront-mem/upfront/arena_c"

// Event is a step in the life of an arena, as far as its plan is concerned: what is in use, and how many of a table. Record
// gives them, and Play does them again in a dry arena.
type Event struct {
	Kind EventKind
	Size uint64       // what it says is the kind's
	Name string       // of the scope that opens
	Site arena_c.Site // who made what grew: in checked builds
}

// EventKind is what an Event is.
type EventKind uint8

// The kinds. Their numbers are those of files.
const (
	EventOpen    EventKind = 1 + iota // a scope opened
	EventClose                        // the topmost closed, with all that is in it
	EventGrow                         // Size bytes more, alignment included
	EventBack                         // Size bytes fewer: a constructor failed
	EventPeak                         // Size bytes were in use at once, beyond what else is told
	EventTemp                         // temporaries of Size bytes, of the topmost scope
	EventTempIn                       // likewise, of the newest temporaries
	EventTempEnd                      // the newest temporaries ended
	EventScopes                       // Size scopes were open at once, more than ever before
	EventPools                        // likewise, pools
	EventOwned                        // likewise, owned values
	EventLabels                       // likewise, labels
)

// sink is told of what changes in an arena, and knows what it was told.
type sink struct {
	tell   func(Event)
	temps  []openTemp // that are open, without C's
	cursor uint64     // from the arena's first byte
	far    uint64     // bytes of temps
	high   uint64     // the most that was in use, as far as it was told
	most   [4]uint64
}

type openTemp struct{ gen, bytes uint64 }

// Record has sink told of all that happens in the arena from now on, beginning with what is open and with the most that there
// ever was, until the arena is no more: by whoever uses the arena, while he does. Each Open and Close takes the long way, in
// release builds; what is made is told when the next scope of the arena opens or closes, its load ends, or its figures are
// read, and in checked builds one by one. What C does is told with what comes next. False, and nothing is: it is recorded already,
// or temporaries are open.
func (st *Stack) Record(tell func(Event)) bool {
	if st.sink != nil || st.row.Temp.Depth > 0 {
		return false
	}
	st.look()
	st.sink = &sink{tell: tell, temps: make([]openTemp, 0, st.row.Temp.Slots)}
	for i := range st.seen {
		st.sink.moved(st.seen[i].mark, arena_c.Site{})
		st.sink.opened(st.nameOf(st.h, uint64(i+1)))
	}
	st.see(oddRecorded)
	st.look()
	return true
}

// endTemps tells of the temporaries that ended, the newest first.
func (k *sink) endTemps(far *arena_c.Scopes) {
	if k == nil {
		return
	}
	for last := len(k.temps) - 1; last >= 0 && far.Find(k.temps[last].gen) == 0; last-- {
		k.far -= k.temps[last].bytes
		k.temps = k.temps[:last]
		k.tell(Event{Kind: EventTempEnd})
	}
}

// closed tells that the topmost scope closed, which began at a mark.
func (k *sink) closed(mark uint64) {
	if k != nil {
		k.cursor = mark
		k.tell(Event{Kind: EventClose})
	}
}

// opened tells that a scope opened.
func (k *sink) opened(name string) {
	if k != nil {
		k.tell(Event{Kind: EventOpen, Name: name})
	}
}

// moved tells where the near end's cursor is.
func (k *sink) moved(to uint64, site arena_c.Site) {
	if k == nil {
		return
	}
	switch {
	case to > k.cursor:
		k.tell(Event{Kind: EventGrow, Size: to - k.cursor, Site: site})
	case to < k.cursor:
		k.tell(Event{Kind: EventBack, Size: k.cursor - to})
	}
	k.cursor = to
	k.high = max(k.high, k.cursor+k.far)
}

// tellMost tells of peaks.
func (st *Stack) tellMost() {
	k := st.sink
	if k == nil {
		return
	}
	if peak := max(st.peakEver, st.row.Peak()); peak > k.high { // C's, or what was before
		k.tell(Event{Kind: EventPeak, Size: peak})
		k.high = peak
	}
	st.countMost()
	most := [...]uint64{st.mostScopes, st.mostPools, st.owned.used, uint64(st.labels.most)}
	for i, n := range most {
		if n > k.most[i] {
			k.most[i] = n
			k.tell(Event{Kind: EventScopes + EventKind(i), Size: n})
		}
	}
}

// tellTemp tells of the newest temporaries, of so many bytes. The node that ends them is theirs.
func (st *Stack) tellTemp(of Scope, gen, size uint64) {
	k, h := st.sink, st.h
	if k == nil {
		return
	}
	kind := EventTemp
	if of.isTemp() {
		kind = EventTempIn
	}
	bytes := st.row.Temp.Top().Edge - h.Limit
	k.temps = append(k.temps, openTemp{gen, bytes})
	k.tell(Event{Kind: kind, Size: size})
	k.cursor, k.far = h.Cursor-h.Start, k.far+bytes
	k.high = max(k.high, k.cursor+k.far)
}

// recordMade tells in checked builds of what was made last in s.
func recordMade(s Scope) {
	if !arena_c.Checked || s.h.Odd&oddRecorded == 0 || s.h.Back != 0 {
		return
	}
	var site arena_c.Site
	site.Note()
	stackOf(s.h).lookAt(site)
}
