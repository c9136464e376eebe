package budget

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Inside lists the contents of an arena at one moment: of a region or slot, a buffer of the frame,
// or a scratch arena. Offsets and sizes are in bytes; offsets count from the arena's first byte.
// Package view draws an Inside.
type Inside struct {
	Budget string `json:"budget"`
	Arena  string `json:"arena"`
	Size   uint64 `json:"size"`
	Used   uint64 `json:"used"`   // at both ends
	Cursor uint64 `json:"cursor"` // offset of the next allocation
	Limit  uint64 `json:"limit"`  // offset of the lowest temporary

	// Known reports whether each object has a Span of its own, with its type and the calls that
	// made it. Known is true in checked builds, except on Windows and with -race. Else the bytes
	// between two nodes ([Span.Kind]) are one Span, of kind "bytes".
	Known bool `json:"known"`
	// Scopes are the open scopes, the lowest first, without the scopes of temporaries (all named
	// "temp").
	Scopes []OpenScope `json:"scopes"`
	Spans  []Span      `json:"spans"` // by offset; with their padding they cover all used bytes
}

// OpenScope is an open scope.
type OpenScope struct {
	Name string   `json:"name"`
	Mark uint64   `json:"mark"`           // offset of its first byte
	Made []string `json:"made,omitempty"` // the calls that opened it, the newest first
}

// Span is a used range of an arena, such as an object, a pool, a node or padding.
type Span struct {
	Offset  uint64 `json:"offset"`
	Size    uint64 `json:"size"`
	Padding uint64 `json:"padding,omitempty"` // bytes for alignment before it

	// Kind is one of:
	//
	//   - "plain": memory without a finalizer
	//   - "object", "objects": one object with a finalizer, or several that were made at once
	//   - "owned": the record of a Go value
	//   - "node": a scope's record of an object that ends with the scope
	//   - "pool": a pool
	//   - "bytes": unknown contents
	//   - "padding": padding without an object
	//   - "reserve": the free bytes of temporaries
	//   - "heap", "buddy", "ring", "pool": an arena that was passed to Inside
	Kind  string `json:"kind"`
	Type  string `json:"type,omitempty"` // of one object: "pond.Frog"
	Scope string `json:"scope"`
	Label string `json:"label,omitempty"`
	// the action when its scope closes: "finalizer of pond.Frog"
	Ends  string `json:"ends,omitempty"`
	Order int    `json:"order,omitempty"` // in the chain: 1 is the newest, and the first to run

	// the calls that made it, "function file:line", the newest first
	Made []string `json:"made,omitempty"`

	Pool *stack.PoolLayout `json:"pool,omitempty"`
	// of a heap, a buddy or a ring; offsets count from its first byte
	Parts []stack.Part `json:"parts,omitempty"`
}

// Temp returns the bytes of temporaries at the far end.
func (in *Inside) Temp() uint64 { return in.Size - in.Limit }

// Inside returns the contents of the region now, and the contents of the passed arenas in the
// region: level.Inside(soundHeap, commands). Only the goroutine that may call [Region.Report] may
// call Inside. During the load's function some objects may not be in the chain of finalizers yet.
// Inside fails if one of the arenas isn't in the region, or if Inside finds that it was
// overwritten, for example after a rewind of the scope below the arena. Inside also fails after the
// slot's release and after Close.
//
// Cost: a copy on the Go heap with a Span for each node and pool. A checked build has a Span for
// each object, with tens of bytes for each call that led to the object.
func (r Region) Inside(within ...arena.Inner) (Inside, error) {
	if r.released() {
		return Inside{}, fmt.Errorf("budget %q: Inside of region %s, which was released: %w", r.b.plan.Name, r.name, ErrClosed)
	}
	return r.b.lookInside(r.index, within)
}

// Inside is [Region.Inside] for any arena, by the arena's name in reports: a region or slot, "frame
// 0", "scratch 1.0". As with [Budget.Report], only the goroutine that drives the program may call
// it. Inside refuses scratch arenas for leases.
func (b *Budget) Inside(name string, within ...arena.Inner) (Inside, error) {
	for i := range b.stacks {
		if arenaName(b.stacks[i]) != name {
			continue
		}
		if !b.isOurs(i) {
			return Inside{}, fmt.Errorf("budget %q: Inside of %s: it is for leases; Inside works on scratch "+
				"that a worker takes by number", b.plan.Name, name)
		}
		return b.lookInside(i, within)
	}
	return Inside{}, fmt.Errorf("budget %q: Inside of %q: there is no such arena", b.plan.Name, name)
}

func (b *Budget) lookInside(index int, within []arena.Inner) (Inside, error) {
	if b.closed.Load() {
		return Inside{}, fmt.Errorf("budget %q: Inside of %s: %w", b.plan.Name, arenaName(b.stacks[index]), ErrClosed)
	}
	l := look{st: b.stacks[index], calls: callLines{}}
	l.Budget, l.Arena = b.plan.Name, arenaName(l.st)
	row := l.st.Row()
	l.Size, l.Used = row.Size(), row.Used()
	l.Cursor, l.Limit = row.Arena.Cursor-row.Arena.Start, row.Arena.Limit-row.Arena.Start
	for i := range l.st.Depth() {
		_, name, site := l.st.Opened(i)
		l.Scopes = append(l.Scopes, OpenScope{name, l.st.MarkAt(i), l.calls.of(*site)})
	}
	var survey stack.Survey
	l.Known = survey.Each(l.st, l.add)
	for _, a := range within {
		if err := l.lookInto(a); err != nil {
			return Inside{}, fmt.Errorf("budget %q: Inside of %s: %w", b.plan.Name, l.Arena, err)
		}
	}
	return l.Inside, l.Check()
}

type look struct {
	Inside
	st    *stack.Stack
	calls callLines
}

// callLines holds each text once.
type callLines map[arena_c.Site][]string

func (c callLines) of(site arena_c.Site) []string {
	lines, ok := c[site]
	if !ok {
		lines = site.Calls()
		c[site] = lines
	}
	return lines
}

func (l *look) add(p *stack.Piece) {
	t := Span{Offset: p.Offset, Size: p.Size, Padding: p.Padding, Kind: p.Kind, Type: p.Type(), Scope: p.Scope, Label: p.Label,
		Ends: p.Ends(l.st), Order: p.Order, Made: l.calls.of(p.Made())}
	if p.Pool != nil {
		pool := stack.PoolLayoutOf(p.Pool)
		t.Pool, t.Ends = &pool, l.st.PoolObject(p.Pool)
	}
	l.Spans = append(l.Spans, t)
}

// lookInto adds the contents of an arena. The arena's header may be overwritten, so lookInto trusts
// it only within the object around the arena.
func (l *look) lookInto(a arena.Inner) error {
	at := l.st.PlaceOf(a.Block())
	for i := range l.Spans {
		t := &l.Spans[i]
		if at-t.Offset >= t.Size || t.Parts != nil || t.Pool != nil {
			continue
		}
		layout, code := l.st.Layout(a.Block(), t.Size-(at-t.Offset))
		if code == arena_c.Foreign {
			break
		}
		if code != arena_c.OK {
			return fmt.Errorf("BUG: %T: %v", a, code)
		}
		l.split(i, at, layout)
		return nil
	}
	return fmt.Errorf("%T isn't in it", a)
}

// split divides an object into the bytes before the arena, the arena, and the bytes after it.
func (l *look) split(i int, at uint64, layout stack.Layout) {
	t := l.Spans[i]
	before, inner, behind := t, t, t
	before.Size = at - t.Offset
	inner.Offset, inner.Size, inner.Kind, inner.Pool, inner.Parts = at, layout.Size, layout.Kind, layout.Pool, layout.Parts
	behind.Offset, behind.Padding = at+layout.Size, 0
	behind.Size = t.Offset + t.Size - behind.Offset
	parts := []Span{inner}
	if before.Size != 0 {
		inner.Padding, inner.Order, inner.Ends = 0, 0, ""
		parts = []Span{before, inner}
	}
	if behind.Size != 0 {
		behind.Order, behind.Ends = 0, ""
		parts = append(parts, behind)
	}
	l.Spans = append(l.Spans[:i:i], append(parts, l.Spans[i+1:]...)...)
}

// Check returns an error if in, which may come from a file, contradicts itself. Objects and their
// padding must follow each other and add up to the used bytes. The parts of an inner arena must add
// up to its size. A pool must have a state for each chunk.
func (in *Inside) Check() error {
	if in.Size >= arena_c.OffsetMax || in.Cursor > in.Limit || in.Limit > in.Size || in.Used != in.Cursor+in.Temp() {
		return fmt.Errorf("inside of %s: used %d, cursor %d and limit %d of %d bytes contradict each other", in.Arena, in.Used, in.Cursor,
			in.Limit, in.Size)
	}
	at, end := uint64(0), in.Cursor
	for i := range in.Spans {
		t := &in.Spans[i]
		if at == in.Cursor && end == in.Cursor {
			at, end = in.Limit, in.Size
		}
		if t.Padding > end-at || t.Offset != at+t.Padding || t.Size > end-t.Offset {
			return fmt.Errorf("inside of %s: \"spans[%d]\" (%d bytes from %d on) doesn't fit after %d", in.Arena, i, t.Size, t.Offset, at)
		}
		if err := t.check(); err != nil {
			return fmt.Errorf("inside of %s: \"spans[%d]\": %w", in.Arena, i, err)
		}
		at = t.Offset + t.Size
	}
	if at == in.Cursor && end == in.Cursor {
		at, end = in.Limit, in.Size
	}
	if at != end {
		return fmt.Errorf("inside of %s: no object covers %d to %d", in.Arena, at, end)
	}
	return nil
}

func (t *Span) check() error {
	if p := t.Pool; p != nil {
		if p.Count != uint64(len(p.States)) || p.Live > p.Count || p.Stride != 0 && p.Count > t.Size/p.Stride {
			return fmt.Errorf("a pool of %d chunks of %d bytes, %d live, has %d bytes and the states of %d", p.Count, p.Stride, p.Live,
				t.Size, len(p.States))
		}
		if strings.Trim(p.States, "-#.~x?") != "" {
			return fmt.Errorf("a pool's chunks have unknown states: %.20q", p.States)
		}
		for _, index := range p.Next {
			if uint64(index) >= p.Count {
				return fmt.Errorf("a pool of %d chunks gives chunk %d", p.Count, index)
			}
		}
	}
	at := uint64(0)
	for i := range t.Parts {
		if p := &t.Parts[i]; p.Offset != at || p.Size > t.Size-at {
			return fmt.Errorf("parts[%d] (%d bytes from %d on) doesn't fit after %d", i, p.Size, p.Offset, at)
		}
		at += t.Parts[i].Size
	}
	if at != t.Size && t.Parts != nil {
		return fmt.Errorf("no part covers %d to %d", at, t.Size)
	}
	return nil
}

// Site sums up the objects of a region that share scope, label, type and calls. The Bytes of all
// sites add up to Used of the ArenaReport, and the Objects to its Objects. All objects without
// bytes, and the free bytes of temporaries, are in Sites without calls.
type Site struct {
	Scope   string   `json:"scope,omitempty"`
	Label   string   `json:"label,omitempty"`
	Type    string   `json:"type,omitempty"`
	Made    []string `json:"made,omitempty"` // the calls that made them, the newest first
	Bytes   uint64   `json:"bytes"`
	Padding uint64   `json:"padding,omitempty"` // of Bytes
	Objects uint64   `json:"objects,omitempty"`
}

func (f *figures) sitesNow() (list []Site) {
	if f.sites == nil {
		return nil
	}
	calls := callLines{}
	for i := range f.sites.List {
		s := &f.sites.List[i]
		list = append(list, Site{s.Scope, s.Label, s.Type(), calls.of(s.Made()), s.Bytes, s.Padding, s.Objects})
	}
	return list
}
