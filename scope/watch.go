package scope

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

func (st *Stack) watchPool(s Scope, header *arena_c.Pool, of reflect.Type) {
	st.watch.pools[header] = of
	if arena_c.Checked {
		at := arena_c.Place(unsafe.Pointer(header), unsafe.Pointer(st.h)) + header.Chunks
		size := header.Stride * uint64(header.Count)
		st.note(s, Made{Offset: at, Size: size, Type: of, Pool: true})
	}
}

// Watching returns the stack of s if it is watched, or nil.
func Watching(s Scope) *Stack {
	if st := stackOf(s.h); st != nil && st.watch != nil && s.h.Back == 0 {
		return st
	}
	return nil
}

// NoteTenant adds a tenant whose bytes are the newest allocation. pre: Watch was called.
func (st *Stack) NoteTenant(bytes []byte, t Tenant) {
	t.Offset, t.Size = st.h.Offset(unsafe.Pointer(unsafe.SliceData(bytes))), uint64(len(bytes))
	st.watch.tenants = append(st.watch.tenants, t)
}

func (st *Stack) note(s Scope, m Made) {
	m.Scope = st.nameOf(s.h, s.h.Find(s.gen))
	l := &st.labels
	if of := l.current(s); of != 0 {
		m.Label = l.lines[l.open[of-1].node.line].name
	}
	m.Site.Note()
	if m.Size != 0 {
		st.watch.made = append(st.watch.made, m)
	}
}

func noted[T any](s Scope, x *T) *T {
	if arena_c.Checked && x != nil {
		notedSlice(s, unsafe.Slice(x, 1))
	}
	return x
}

func notedBytes(s Scope, p unsafe.Pointer, size uint64) unsafe.Pointer {
	if arena_c.Checked && p != nil {
		notedSlice(s, unsafe.Slice((*byte)(p), size))
	}
	return p
}

func notedSlice[T any](s Scope, list []T) []T {
	if arena_c.Checked {
		if len(list) != 0 {
			arena_c.NoteType(unsafe.Pointer(unsafe.SliceData(list)), reflect.TypeFor[T]().String())
		}
		recordMade(s)
		if st := Watching(s); st != nil {
			st.note(s, Made{Offset: s.h.Offset(unsafe.Pointer(unsafe.SliceData(list))),
				Size: sizeOf[T](len(list)), Type: reflect.TypeFor[T]()})
		}
	}
	return list
}

// notedMore notes that a list at first has grown: from a capacity of from elements to one of to.
func notedMore[T any](s Scope, first *T, from, to int) {
	if !arena_c.Checked {
		return
	}
	if from == 0 {
		arena_c.NoteType(unsafe.Pointer(first), reflect.TypeFor[T]().String())
	}
	recordMade(s)
	st := Watching(s)
	if st == nil {
		return
	}
	if n := len(st.watch.made); from != 0 && n != 0 {
		m := &st.watch.made[n-1]
		m.Size += sizeOf[T](to - from)
	} else {
		notedSlice(s, unsafe.Slice(first, to))
	}
}
