// Package inside lists the contents of an arena of a budget.
package inside

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/scope/stack"
)

var (
	arenaOf     = seam.Look.(func(*budget.Budget, string) (*stack.Stack, error))
	regionArena = seam.LookRegion.(func(budget.Region) (*stack.Stack, error))
)

// Contents lists the contents of an arena at one moment: of a region or slot, a buffer of the
// frame, or a scratch arena. Offsets and sizes are in bytes; offsets count from the arena's first
// byte. Package view draws Contents.
type Contents struct {
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
	Scopes []Scope `json:"scopes"`
	Spans  []Span  `json:"spans"` // by offset; with their padding they cover all used bytes
}

// Scope is an open scope.
type Scope struct {
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
	//   - "heap", "buddy", "ring", "pool": an arena that was passed to Of or OfRegion
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
func (c *Contents) Temp() uint64 { return c.Size - c.Limit }

// OfRegion returns the contents of a region now, and the contents of the passed arenas in the
// region: inside.OfRegion(level, soundHeap, commands). Only the goroutine that may call
// [budget.Region.Report] may call OfRegion. During the load's function some objects may not be in
// the chain of finalizers yet. OfRegion fails if one of the arenas isn't in the region, or if
// OfRegion finds that it was overwritten, for example after a rewind of the scope below the arena.
// OfRegion also fails after the slot's release and after Close.
//
// Cost: a copy on the Go heap with a Span for each node and pool. A checked build has a Span for
// each object, with tens of bytes for each call that led to the object.
func OfRegion(r budget.Region, within ...arena.Inner) (Contents, error) {
	st, err := regionArena(r)
	if err != nil {
		return Contents{}, err
	}
	return of(st, within)
}

// Of is [OfRegion] for any arena, by the arena's name in reports: a region or slot, "frame 0",
// "scratch 1.0". As with [budget.Budget.Report], only the goroutine that drives the program may
// call it. Of refuses scratch arenas for leases.
func Of(b *budget.Budget, name string, within ...arena.Inner) (Contents, error) {
	st, err := arenaOf(b, name)
	if err != nil {
		return Contents{}, err
	}
	return of(st, within)
}

func of(st *stack.Stack, within []arena.Inner) (Contents, error) {
	l := look{st: st, calls: stack.Calls{}}
	l.Budget, l.Arena = st.Budget, strings.TrimPrefix(st.Arena, "region ")
	row := st.Row()
	l.Size, l.Used = row.Size(), row.Used()
	l.Cursor, l.Limit = row.Arena.Cursor-row.Arena.Start, row.Arena.Limit-row.Arena.Start
	for i := range st.Depth() {
		_, name, site := st.Opened(i)
		l.Scopes = append(l.Scopes, Scope{name, st.MarkAt(i), l.calls.Of(*site)})
	}
	var survey stack.Survey
	l.Known = survey.Each(st, l.add)
	for _, a := range within {
		if err := l.lookInto(a); err != nil {
			return Contents{}, fmt.Errorf("budget %q: inside of %s: %w", l.Budget, l.Arena, err)
		}
	}
	return l.Contents, l.Check()
}

type look struct {
	Contents
	st    *stack.Stack
	calls stack.Calls
}

func (l *look) add(p *stack.Piece) {
	t := Span{Offset: p.Offset, Size: p.Size, Padding: p.Padding, Kind: p.Kind, Type: p.Type(), Scope: p.Scope,
		Label: p.Label, Ends: p.Ends(l.st), Order: p.Order, Made: l.calls.Of(p.Made())}
	if p.Pool != nil {
		t.Pool, t.Ends = stack.PoolLayoutOf(p.Pool), l.st.PoolObject(p.Pool)
	}
	l.Spans = append(l.Spans, t)
}

// lookInto adds the contents of an arena. The arena's header may be overwritten, so lookInto trusts
// it only within the object around the arena.
func (l *look) lookInto(a arena.Inner) error {
	at := l.st.PlaceOf(a.Block())
	for i := range l.Spans {
		t := &l.Spans[i]
		if at < t.Offset || at-t.Offset >= t.Size || t.Parts != nil || t.Pool != nil {
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
	inner.Offset, inner.Size, inner.Kind, inner.Pool, inner.Parts = at, layout.Size, layout.Kind, layout.Pool,
		layout.Parts
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
