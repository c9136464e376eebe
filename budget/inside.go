package budget

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// Inside is what lies in an arena at one moment: a region or slot, a buffer of the frame, or a scratch arena. Offsets and
// sizes are bytes, and offsets count from the arena's first byte. view draws it.
type Inside struct {
	Budget string `json:"budget"`
	Arena  string `json:"arena"`
	Size   uint64 `json:"size"`
	Used   uint64 `json:"used"`   // at both ends
	Cursor uint64 `json:"cursor"` // where the next thing goes: what is used of the near end
	Limit  uint64 `json:"limit"`  // where temporaries begin

	// Known says that each thing has a line of its own, its type where the library was told, and who made it: in checked
	// builds. In others what lies between two nodes is one line, of kind "bytes".
	Known  bool        `json:"known"`
	Scopes []OpenScope `json:"scopes"` // the lowest first; those of temporaries, which are all named "temp", aren't among them
	Things []Thing     `json:"things"` // by offset: they cover all that is used
}

// OpenScope is an open scope.
type OpenScope struct {
	Name string   `json:"name"`
	Mark uint64   `json:"mark"`           // where it began
	Made []string `json:"made,omitempty"` // who opened it: as of a Thing
}

// Thing is something that lies in an arena.
type Thing struct {
	Offset  uint64 `json:"offset"`
	Size    uint64 `json:"size"`
	Padding uint64 `json:"padding,omitempty"` // the bytes before it that nobody has

	// Kind is "plain"; "object" with a finalizer, or "objects" that were made at once; "owned", which names a Go value;
	// "pool"; "node", by which a scope knows what else ends with it; "bytes", of which nothing more is known; "padding"
	// alone; "reserve", what temporaries have left; or that of an arena that Inside was asked to look into: "heap",
	// "buddy", "ring", "pool".
	Kind  string `json:"kind"`
	Type  string `json:"type,omitempty"` // of one: "pond.Frog"
	Scope string `json:"scope"`
	Label string `json:"label,omitempty"`
	Ends  string `json:"ends,omitempty"`  // what happens when its scope closes: "finalizer of pond.Frog"
	Order int    `json:"order,omitempty"` // of what is in the chain: 1 is the newest, and the first to run

	Made []string `json:"made,omitempty"` // who made it: a line for each call, "function file:line", the newest first

	Pool  *arena.PoolLayout `json:"pool,omitempty"`
	Parts []arena.Part      `json:"parts,omitempty"` // of a heap, a buddy or a ring; offsets count from its block's first byte
}

// Temp is what temporaries take at the far end, in bytes.
func (in *Inside) Temp() uint64 { return in.Size - in.Limit }

// Inside is what lies in the region now. Of arenas on bytes of the region it tells what is in them, if they are given:
// level.Inside(soundHeap, commands). It is for who may ask for Report, also in the load's function, where the chain may
// have things that aren't linked yet. An error says that one of the arenas isn't in the region, or that somebody wrote over it,
// as after a rewind under it.
//
// Cost: a copy on the Go heap, a line for each node and pool; in checked builds for each thing, with tens of bytes for each
// call that led to it.
func (r Region) Inside(within ...arena.Inner) (Inside, error) {
	if r.released() {
		return Inside{}, fmt.Errorf("budget %q: Inside of region %s, which was released: %w", r.b.plan.Name, r.name, ErrClosed)
	}
	return r.b.lookInside(r.index, within)
}

// Inside is [Region.Inside] of any arena by its name in reports: a region or slot, "frame 0", "scratch 1.0". It is for the
// goroutine that drives the program, as Report. Scratch arenas for loan are refused.
func (b *Budget) Inside(name string, within ...arena.Inner) (Inside, error) {
	for i := range b.stacks {
		if arenaName(b.stacks[i]) != name {
			continue
		}
		if !b.isOurs(i) {
			return Inside{}, fmt.Errorf("budget %q: Inside of %s: it is for who borrows it; only those asked for by number are "+
				"looked into", b.plan.Name, name)
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
	var survey scope.Survey
	l.Known = survey.Each(l.st, l.add)
	for _, a := range within {
		if err := l.lookInto(a); err != nil {
			return Inside{}, fmt.Errorf("budget %q: Inside of %s: %w", b.plan.Name, l.Arena, err)
		}
	}
	return l.Inside, l.Check()
}

// look is an Inside in the making.
type look struct {
	Inside
	st    *scope.Stack
	calls callLines
}

// callLines has each text once.
type callLines map[arena_c.Site][]string

func (c callLines) of(site arena_c.Site) []string {
	lines, ok := c[site]
	if !ok {
		lines = site.Calls()
		c[site] = lines
	}
	return lines
}

func (l *look) add(p *scope.Piece) {
	t := Thing{Offset: p.Offset, Size: p.Size, Padding: p.Padding, Kind: p.Kind, Type: p.Type(), Scope: p.Scope, Label: p.Label,
		Ends: p.Ends(l.st), Order: p.Order, Made: l.calls.of(p.Made())}
	if p.Pool != nil {
		pool := arena.PoolLayoutOf(p.Pool)
		t.Pool, t.Ends = &pool, l.st.PoolObject(p.Pool)
	}
	l.Things = append(l.Things, t)
}

// lookInto tells of the bytes that an arena has what is in it. Its words are believed as far as the thing reaches in which it
// lies: they may have been written over.
func (l *look) lookInto(a arena.Inner) error {
	at := l.st.PlaceOf(a.Block())
	for i := range l.Things {
		t := &l.Things[i]
		if at-t.Offset >= t.Size || t.Parts != nil || t.Pool != nil {
			continue
		}
		layout, err := a.Layout(t.Size - (at - t.Offset))
		if err != nil {
			return err
		}
		l.split(i, at, layout)
		return nil
	}
	return fmt.Errorf("%T isn't in it", a)
}

// split parts a thing: what lies before the arena, the arena, and what lies behind it.
func (l *look) split(i int, at uint64, layout arena.Layout) {
	t := l.Things[i]
	before, inner, behind := t, t, t
	before.Size = at - t.Offset
	inner.Offset, inner.Size, inner.Kind, inner.Pool, inner.Parts = at, layout.Size, layout.Kind, layout.Pool, layout.Parts
	behind.Offset, behind.Padding = at+layout.Size, 0
	behind.Size = t.Offset + t.Size - behind.Offset
	parts := []Thing{inner}
	if before.Size != 0 {
		inner.Padding, inner.Order, inner.Ends = 0, 0, ""
		parts = []Thing{before, inner}
	}
	if behind.Size != 0 {
		behind.Order, behind.Ends = 0, ""
		parts = append(parts, behind)
	}
	l.Things = append(l.Things[:i:i], append(parts, l.Things[i+1:]...)...)
}

// Check says what is wrong with an Inside, which may come from a file: what an arena gives is right. Things and their padding
// follow each other, and sum up to what is used; so do the parts of an arena within; a pool's letters are as many as its
// chunks.
func (in *Inside) Check() error {
	if in.Size >= arena_c.OffsetMax || in.Cursor > in.Limit || in.Limit > in.Size || in.Used != in.Cursor+in.Temp() {
		return fmt.Errorf("inside of %s: used %d, cursor %d and limit %d of %d bytes contradict each other", in.Arena, in.Used, in.Cursor,
			in.Limit, in.Size)
	}
	at, end := uint64(0), in.Cursor
	for i := range in.Things {
		t := &in.Things[i]
		if at == in.Cursor && end == in.Cursor {
			at, end = in.Limit, in.Size
		}
		if t.Padding > end-at || t.Offset != at+t.Padding || t.Size > end-t.Offset {
			return fmt.Errorf("inside of %s: things[%d] has %d bytes from %d on: not what follows %d", in.Arena, i, t.Size, t.Offset, at)
		}
		if err := t.check(); err != nil {
			return fmt.Errorf("inside of %s: things[%d]: %w", in.Arena, i, err)
		}
		at = t.Offset + t.Size
	}
	if at == in.Cursor && end == in.Cursor {
		at, end = in.Limit, in.Size
	}
	if at != end {
		return fmt.Errorf("inside of %s: no thing lies from %d to %d", in.Arena, at, end)
	}
	return nil
}

func (t *Thing) check() error {
	if p := t.Pool; p != nil {
		if p.Count != uint64(len(p.States)) || p.Live > p.Count || p.Stride != 0 && p.Count > t.Size/p.Stride {
			return fmt.Errorf("a pool of %d chunks of %d bytes, %d live, has %d bytes and the states of %d", p.Count, p.Stride, p.Live,
				t.Size, len(p.States))
		}
		if strings.Trim(p.States, "-#.~x?") != "" {
			return fmt.Errorf("a pool's chunks have states of no kind: %.20q", p.States)
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
			return fmt.Errorf("parts[%d] has %d bytes from %d on: not what follows %d", i, p.Size, p.Offset, at)
		}
		at += t.Parts[i].Size
	}
	if at != t.Size && t.Parts != nil {
		return fmt.Errorf("no part lies from %d to %d", at, t.Size)
	}
	return nil
}

// Site is what lies in a region of one scope and label, of one type, that was made by the same calls. The Bytes of all sum up
// to what is Used, and the Objects to those of the report: of things without bytes, and of what temporaries have left,
// nobody knows who made it, and their Site has no lines.
type Site struct {
	Scope   string   `json:"scope,omitempty"`
	Label   string   `json:"label,omitempty"`
	Type    string   `json:"type,omitempty"`
	Made    []string `json:"made,omitempty"` // as of a Thing
	Bytes   uint64   `json:"bytes"`
	Padding uint64   `json:"padding,omitempty"` // of Bytes
	Objects uint64   `json:"objects,omitempty"`
}

// sitesNow is the copy of them for a report.
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
