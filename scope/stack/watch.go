package stack

import (
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// watch holds facts about a state that package save needs while the state is made.
type watch struct {
	pools   map[*arena_c.Pool]reflect.Type
	tenants []Tenant // by offset
	made    []Made   // by offset; in checked builds
}

// Tenant is a container or a cache, which keeps its own words among the bytes of an arena.
type Tenant struct {
	Offset, Size uint64 // from the arena's header; bytes
	Name         string // of its type
	Values       []TenantValues

	// Still returns an error while the bytes may not be copied, or replaced by a snapshot, because
	// the program keeps pointers to values. nil: there is no such time.
	Still func(replace bool) error

	// Check returns an error for bytes that the tenant's code can't have written. image is a copy
	// of the bytes, aligned to 8.
	Check func(image []byte) error

	// Convert converts the words of a tenant of an older program, whose bytes are old, into image,
	// which is as the constructor left it. count is the number of values in old, of size bytes
	// each; both are those of the last of Values. No byte of old may be trusted. place returns the
	// place here of a value of old, and whether it is in use. The caller converts the values of
	// these places, makes the others zeros, and then calls finish. nil: the tenant can't be
	// converted.
	Convert func(image, old []byte, count, size uint64) (place func(uint64) (uint64, bool), finish func() error,
		err error)
}

// TenantValues are consecutive values of one type in a tenant's bytes.
type TenantValues struct {
	What          string // "values", "keys"
	Offset, Count uint64 // from the tenant's first byte
	Type          reflect.Type
}

// Made is one allocation in an arena.
type Made struct {
	Offset, Size uint64       // from the arena's header; bytes
	Type         reflect.Type // of one value
	Pool         bool
	Scope, Label string
	Site         arena_c.Site // the place that made it
}

// Watch starts to note the types of pools, the tenants and, in checked builds, all allocations.
// From now on all free bytes are zeros, so that gaps are the same everywhere. Watching ends with
// Watched, or when the arena is empty.
func (st *Stack) Watch() {
	st.watch = &watch{pools: map[*arena_c.Pool]reflect.Type{}}
	st.h.Odd |= oddWatched
	st.clearUsed(st.h.Cursor, st.h.Limit)
	st.watchRooms()
}

// Watched ends Watch. It returns the types of pools by their headers, and the other notes by
// offset.
func (st *Stack) Watched() (pools map[*arena_c.Pool]reflect.Type, tenants []Tenant, made []Made) {
	if w := st.watch; w != nil {
		pools, tenants, made = w.pools, w.tenants, w.made
	}
	st.unwatch()
	return pools, tenants, made
}

func (st *Stack) unwatch() {
	st.watch = nil
	st.h.Odd &^= oddWatched
}

// watchBack clears a range of a watched arena that has become free, and forgets its notes.
func (st *Stack) watchBack(from, end uint64) {
	w := st.watch
	if w == nil || from >= end {
		return
	}
	arena_c.Zero(unsafe.Add(unsafe.Pointer(st.h), from), uintptr(end-from))
	n := len(w.made)
	for n > 0 && w.made[n-1].Offset+w.made[n-1].Size > st.h.Cursor {
		n--
	}
	w.made = w.made[:n]
	n = len(w.tenants)
	for n > 0 && w.tenants[n-1].Offset+w.tenants[n-1].Size > st.h.Cursor {
		n--
	}
	w.tenants = w.tenants[:n]
}

func (st *Stack) watchPool(h *arena_c.Scopes, gen uint64, header *arena_c.Pool, of reflect.Type) {
	st.watch.pools[header] = of
	if arena_c.Checked {
		at := arena_c.Place(unsafe.Pointer(header), unsafe.Pointer(st.h)) + header.Chunks
		size := header.Stride * uint64(header.Count)
		st.note(h, gen, Made{Offset: at, Size: size, Type: of, Pool: true})
	}
}

// Watching returns the Stack of an end if a state is being made there, or nil.
func Watching(h *arena_c.Scopes) *Stack {
	if st := Of(h); st != nil && st.watch != nil && h.Back == 0 {
		return st
	}
	return nil
}

// NoteTenant adds a tenant whose bytes are the newest allocation. pre: Watch was called.
func (st *Stack) NoteTenant(bytes []byte, t Tenant) {
	t.Offset, t.Size = st.h.Offset(unsafe.Pointer(unsafe.SliceData(bytes))), uint64(len(bytes))
	st.watch.tenants = append(st.watch.tenants, t)
}

func (st *Stack) note(h *arena_c.Scopes, gen uint64, m Made) {
	m.Scope = st.nameOf(h, h.Find(gen))
	l := &st.labels
	if of := l.current(h, gen); of != 0 {
		m.Label = l.lines[l.open[of-1].node.line].name
	}
	m.Site.Note()
	if m.Size != 0 {
		st.watch.made = append(st.watch.made, m)
	}
}

// NoteValues notes the newest allocation of a scope: size bytes of values of type of at p. It is
// for checked builds.
func NoteValues(h *arena_c.Scopes, gen uint64, p unsafe.Pointer, size uint64, of reflect.Type) {
	if size != 0 {
		arena_c.NoteType(p, of.String())
	}
	NoteMade(h)
	if st := Watching(h); st != nil {
		st.note(h, gen, Made{Offset: h.Offset(p), Size: size, Type: of})
	}
}

// NoteMore notes that the newest allocation has grown from a number of bytes to another: see
// NoteValues.
func NoteMore(h *arena_c.Scopes, gen uint64, p unsafe.Pointer, from, to uint64, of reflect.Type) {
	if from == 0 {
		NoteValues(h, gen, p, to, of)
		return
	}
	NoteMade(h)
	if st := Watching(h); st != nil {
		if n := len(st.watch.made); n != 0 {
			st.watch.made[n-1].Size += to - from
		} else {
			st.note(h, gen, Made{Offset: h.Offset(p), Size: to, Type: of})
		}
	}
}
