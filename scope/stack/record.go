package stack

import "github.com/upfront-mem/upfront/arena_c"

// Event is a step in the life of an arena: a scope or temporaries that open or end, a change of the
// bytes in use, or a new highest number of scopes, pools, owned values or labels. [Stack.Record]
// reports events, and [Stack.Play] repeats them in a dry arena.
type Event struct {
	Kind EventKind
	Size uint64       // its meaning depends on Kind
	Name string       // of the scope that opens
	Site arena_c.Site // in checked builds: the place that made the bytes
}

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds. Files contain their numbers.
const (
	EventOpen  EventKind = 1 + iota // a scope opened
	EventClose                      // the topmost scope closed, with all that is in it
	EventGrow                       // Size bytes more, alignment included
	EventBack                       // Size bytes fewer: a constructor failed
	// Size bytes were in use at once, more than the other events show
	EventPeak
	EventTemp    // temporaries of Size bytes, of the topmost scope
	EventTempIn  // temporaries of Size bytes, of the newest temporaries
	EventTempEnd // the newest temporaries ended
	EventScopes  // Size scopes were open at once, more than ever before
	EventPools   // Size pools were open at once, more than ever before
	EventOwned   // Size owned values were in use at once, more than ever before
	EventLabels  // Size labels were in use at once, more than ever before
)

// sink reports the changes of an arena, and keeps the state that it has reported.
type sink struct {
	tell   func(Event)
	temps  []openTemp // open temporaries, except temporaries of C
	cursor uint64     // from the arena's first byte
	far    uint64     // bytes of temps
	high   uint64     // the highest use reported
	most   [4]uint64
}

type openTemp struct{ gen, bytes uint64 }

// Record calls tell with each change of the arena, from now on until the arena is closed. The first
// calls are for the open scopes and for the peaks so far. If the arena is recorded already, or
// temporaries are open, Record returns false and does nothing.
//
// The goroutine that uses the arena calls tell. Each Open and Close takes its slow path. Checked
// builds report each allocation at once. Other builds report new bytes when the ledger looks next.
// Changes by C code are reported with the next event.
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

func (k *sink) closed(mark uint64) {
	if k != nil {
		k.cursor = mark
		k.tell(Event{Kind: EventClose})
	}
}

func (k *sink) opened(name string) {
	if k != nil {
		k.tell(Event{Kind: EventOpen, Name: name})
	}
}

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

func (st *Stack) tellMost() {
	k := st.sink
	if k == nil {
		return
	}
	// a peak that C reached, or from before the recording
	if peak := max(st.peakEver, st.row.Peak()); peak > k.high {
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

// tellTemp reports the newest temporaries, of size bytes in an end, with the node that ends them.
func (st *Stack) tellTemp(of *arena_c.Scopes, gen, size uint64) {
	k, h := st.sink, st.h
	if k == nil {
		return
	}
	kind := EventTemp
	if of.Back != 0 {
		kind = EventTempIn
	}
	bytes := st.row.Temp.Top().Edge - h.Limit
	k.temps = append(k.temps, openTemp{gen, bytes})
	k.tell(Event{Kind: kind, Size: size})
	k.cursor, k.far = h.Cursor-h.Start, k.far+bytes
	k.high = max(k.high, k.cursor+k.far)
}

// NoteMade reports the newest allocation of an end, in checked builds.
func NoteMade(h *arena_c.Scopes) {
	if !arena_c.Checked || h.Odd&oddRecorded == 0 || h.Back != 0 {
		return
	}
	var site arena_c.Site
	site.Note()
	Of(h).lookAt(site)
}
