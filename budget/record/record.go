package record

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// Recording is one at work. Its methods are for any goroutine. A nil Recording is one that is off: its methods do nothing.
type Recording struct {
	mu    sync.Mutex // guards what follows
	to    io.Writer
	buf   []byte
	texts map[string]uint64
	sites map[arena_c.Site]uint64
	over  bool
	err   error // of the writer
}

// FirstLine is how the file of a recording begins.
const FirstLine = "upfront recording 1\n"

const (
	kinds    = 16 // an event's number is arena * kinds + kind
	kindMark = 0  // a text
	kindMade = 14 // a growth of so many bytes, and the text of who asked
	kindEnd  = 15 // Close
	bufSize  = 1 << 16
	textMax  = 1 << 12 // bytes of one: of longer ones that is the beginning
	textsMax = 1 << 16 // that have a number; others are written each time
)

// Start begins to record b, to w, from what there is now. Call it at set-up, before other goroutines use the budget, and
// once a budget: after Seal, or a second time, it is a caller's bug and an error, and so it is while temporaries are open.
// The error may be w's, too: then nothing is recorded. w may not use the budget; who opens or closes a scope waits for it.
func Start(b *budget.Budget, w io.Writer) (*Recording, error) {
	r := &Recording{to: w, buf: make([]byte, 0, bufSize), texts: map[string]uint64{}, sites: map[arena_c.Site]uint64{}}
	arenas := budget.ArenasOf(b)
	if err := arenas.AtSetUp("record.Start"); err != nil {
		return nil, err
	}
	plan, err := json.Marshal(b.Plan())
	if err != nil {
		return nil, err
	}
	r.buf = append(append(append(r.buf, FirstLine...), plan...), '\n')
	r.number(uint64(len(arenas.List())))
	for _, st := range arenas.List() {
		r.text(st.Arena)
	}
	if r.flush(); r.err != nil {
		return nil, r.err
	}
	for i, st := range arenas.List() {
		if !st.Record(func(e scope.Event) { r.event(uint64(i), e) }) {
			r.over = true // of those before it nothing is written
			return nil, fmt.Errorf("budget %q: BUG: record.Start: %s is recorded already, or has temporaries", b.Plan().Name, st.Arena)
		}
	}
	return r, nil
}

// Mark says what comes now: a map, a match, a request. Who replays it is told after which mark something didn't fit.
func (r *Recording) Mark(text string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.err != nil {
		return
	}
	r.number(kindMark)
	r.text(text)
	r.flushFull()
}

// Close writes the rest; what happens from then on isn't recorded. Close it after the budget. The error is the first of
// the writer, after which nothing was written; a second Close says the same.
func (r *Recording) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.number(kindEnd)
		r.flush()
	}
	r.over = true
	return r.err
}

// event writes what an arena tells.
func (r *Recording) event(arena uint64, e scope.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || r.err != nil {
		return
	}
	kind := uint64(e.Kind)
	if e.Site != (arena_c.Site{}) {
		kind = kindMade
	}
	r.number(arena*kinds + kind)
	switch e.Kind {
	case scope.EventOpen:
		r.text(e.Name)
	case scope.EventClose, scope.EventTempEnd:
	default:
		r.number(e.Size)
	}
	if kind == kindMade {
		r.site(e.Site)
	}
	r.flushFull()
}

func (r *Recording) number(n uint64) { r.buf = binary.AppendUvarint(r.buf, n) }

func (r *Recording) text(text string) {
	text = text[:min(len(text), textMax)]
	if n, known := r.texts[text]; known {
		r.number(n)
		return
	}
	r.number(uint64(len(r.texts)))
	r.number(uint64(len(text)))
	r.buf = append(r.buf, text...)
	if len(r.texts) < textsMax {
		r.texts[strings.Clone(text)] = uint64(len(r.texts))
	}
}

// site is the text of the calls that led there. Most are known, by a number.
func (r *Recording) site(site arena_c.Site) {
	if n, known := r.sites[site]; known {
		r.number(n)
		return
	}
	text := strings.Join(site.Calls(), "\n")
	r.text(text)
	if n, known := r.texts[text]; known {
		r.sites[site] = n
	}
}

// flushFull writes when the next event may not have room.
func (r *Recording) flushFull() {
	if len(r.buf) > bufSize-textMax-64 {
		r.flush()
	}
}

func (r *Recording) flush() {
	if r.err == nil {
		_, r.err = r.to.Write(r.buf)
	}
	r.buf = r.buf[:0]
}
