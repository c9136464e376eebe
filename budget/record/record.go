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
	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/scope/stack"
)

var (
	stacks  = seam.Stacks.(func(*budget.Budget) []*stack.Stack)
	atSetUp = seam.AtSetUp.(func(*budget.Budget, string) error)
)

// Recording is a recording in progress. Any goroutine may call its methods. The methods of a nil
// Recording do nothing, so a program that isn't recorded needs no branches.
type Recording struct {
	mu    sync.Mutex // guards the fields below
	to    io.Writer
	buf   []byte
	texts map[string]uint64
	sites map[arena_c.Site]uint64
	over  bool
	err   error // the writer's
}

// FirstLine is the first line of a recording's file.
const FirstLine = "upfront recording 1\n"

const (
	kinds    = 16 // an event's number is arena * kinds + kind
	kindMark = 0  // a text
	kindMade = 14 // a growth in bytes, and the text of its calls
	kindEnd  = 15 // Close
	bufSize  = 1 << 16
	textMax  = 1 << 12 // most bytes of a text; longer ones are cut
	textsMax = 1 << 16 // most texts with a number; others are written each time
)

// Start writes each use of b to w from now on, and returns the recording. Call Start once for a
// budget, at set-up, before other goroutines use the budget. Start fails after Seal or Close, at a
// second call, if w fails, and while temporaries ([scope.Scope.Temp]) are open. If Start fails,
// nothing is recorded. w must not use the budget. A goroutine that opens or closes a scope may have
// to wait for a write to w.
func Start(b *budget.Budget, w io.Writer) (*Recording, error) {
	r := &Recording{to: w, buf: make([]byte, 0, bufSize), texts: map[string]uint64{}, sites: map[arena_c.Site]uint64{}}
	if err := atSetUp(b, "record.Start"); err != nil {
		return nil, err
	}
	plan, err := json.Marshal(b.Plan())
	if err != nil {
		return nil, err
	}
	r.buf = append(append(append(r.buf, FirstLine...), plan...), '\n')
	arenas := stacks(b)
	r.number(uint64(len(arenas)))
	for _, st := range arenas {
		r.text(st.Arena)
	}
	if r.flush(); r.err != nil {
		return nil, r.err
	}
	for i, st := range arenas {
		if !st.Record(func(e stack.Event) { r.event(uint64(i), e) }) {
			r.over = true // nothing of the earlier arenas is written
			return nil, fmt.Errorf("budget %q: BUG: record.Start: %s is recorded already, or has open temporaries",
				b.Plan().Name, st.Arena)
		}
	}
	return r, nil
}

// Mark names the part of the program that follows, such as a map, a match or a request. An [Error]
// of [Replay] names the last mark. A text longer than 4096 bytes is cut.
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

// Close ends the recording and writes its remaining bytes. Call it after the budget's Close. Close
// returns the first error of the writer. After this error nothing more was written. A second Close
// returns the same error.
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

func (r *Recording) event(arena uint64, e stack.Event) {
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
	case stack.EventOpen:
		r.text(e.Name)
	case stack.EventClose, stack.EventTempEnd:
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

// flushFull writes the buffer if the next event may not fit.
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
