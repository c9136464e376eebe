package scope

import (
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// watch is what package save wants to know of what is made while a state is.
type watch struct {
	pools   map[*arena_c.Pool]reflect.Type
	tenants []Tenant // by offset
	made    []Made   // by offset; in checked builds
}

// Tenant is something in an arena that keeps words of its own among its bytes: a container.
type Tenant struct {
	Offset, Size uint64 // from the arena's header; bytes
	Name         string // of its type
	Values       []TenantValues

	// Check refuses bytes that the tenant's own code can't have left. They are an image of its own,
	// aligned to 8.
	Check func(image []byte) error
}

// TenantValues are values of one type, one behind the other, in a tenant's bytes.
type TenantValues struct {
	What          string // "values", "keys"
	Offset, Count uint64 // from the tenant's first byte
	Type          reflect.Type
}

// Made is something that lies in an arena: what was asked for at once.
type Made struct {
	Offset, Size uint64       // from the arena's header; bytes
	Type         reflect.Type // of one
	Pool         bool
	Scope, Label string
	Site         arena_c.Site // where it was made
}

// Watch begins to note which types pools have, which tenants there are, and in checked builds all
// that is made. What is free is zeros from now on, also what is given back: so gaps between what is
// made are the same everywhere. It goes on until Watched, or until the arena is empty.
func (st *Stack) Watch() {
	st.watch = &watch{pools: map[*arena_c.Pool]reflect.Type{}}
	st.h.Odd |= oddWatched
	st.watchBack(st.h.Cursor, st.h.Limit)
	st.watchRooms()
}

// Watched ends what Watch began: the types of pools by their headers, and what there is by offset.
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

// watchBack is told of each range of free bytes that wasn't free before.
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

// Watching returns the stack that wants to know what s makes, or nil.
func Watching(s Scope) *Stack {
	if st := stackOf(s.h); st != nil && st.watch != nil && s.h.Back == 0 {
		return st
	}
	return nil
}

// NoteTenant adds a tenant whose bytes were made last. pre: Watch began.
func (st *Stack) NoteTenant(bytes []byte, t Tenant) {
	t.Offset, t.Size = st.h.Offset(unsafe.Pointer(unsafe.SliceData(bytes))), uint64(len(bytes))
	st.watch.tenants = append(st.watch.tenants, t)
}

// note adds what was made last in s.
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

// noted gives x, which was made in s, to who watches.
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

// notedMore is told that what begins with first, had elements for so many, and has them for more.
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
