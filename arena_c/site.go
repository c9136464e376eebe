//go:build checked

package arena_c

// #include "checked.h"
// #include "notes.h"
// static inline int upfront_note_at(uintptr_t p, upfront_note *out) { return upfront_note_near((const void *)p, out); }
// #cgo noescape upfront_note_at
// #cgo nocallback upfront_note_at
// static inline uint32_t upfront_made_of(uintptr_t canonical) {
//     upfront_found found = {0};
//     (void)upfront_mirror_find((uintptr_t)upfront_position((const void *)canonical), &found);
//     return found.made;
// }
// #cgo noescape upfront_made_of
// #cgo nocallback upfront_made_of
// static inline uint32_t upfront_note_made_of(uintptr_t p) {
//     upfront_note note;
//     return upfront_note_of((const void *)p, &note) && note.live ? note.made : 0;
// }
// #cgo noescape upfront_note_made_of
// #cgo nocallback upfront_note_made_of
// #cgo noescape upfront_text_add
// #cgo nocallback upfront_text_add
// #cgo noescape upfront_text
// #cgo nocallback upfront_text
import "C"

import (
	"hash/maphash"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"
)

// Site is the call site of a scope, an owned value or a loan that must end, for packages that use
// this one. Only checked builds keep call sites. In other builds a Site has no size and its methods
// do nothing. The zero Site has no calls. It is as safe for goroutines as the struct that contains
// it.
type Site struct {
	calls uint32
	_     [4]byte // so that its struct grows by its own size: see stack.Stack.TableBytes
}

// Note keeps the present call stack. Cost: about a microsecond; for a call stack seen before no Go
// allocation.
func (s *Site) Note() { s.calls = Here(1) }

// Tell returns a line with the event, such as "opened", and a line for each call, function and
// file:line, newest first. It returns "" for the zero Site. It leaves out the calls of the library
// and of the Go runtime.
func (s *Site) Tell(what string) string {
	if s.calls == 0 {
		return ""
	}
	calls := strings.TrimSuffix(Text(s.calls), "\n")
	return "\n\t" + what + " at:" + strings.ReplaceAll("\n"+calls, "\n", "\n\t")
}

// Calls returns the calls, each as "function file:line", newest first; nil for the zero Site.
func (s *Site) Calls() []string {
	if s.calls == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(Text(s.calls), "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "\t")
	}
	return lines
}

// SiteOf returns the Site of a number from Here.
func SiteOf(calls uint32) Site { return Site{calls: calls} }

// siteCalls is the number of newest calls that Here reads.
const siteCalls = 16

// Here returns the number of the present call stack, without its newest skip calls; the caller of
// Here is the first. Its Text is a line for each call, "\tfunction file:line\n", newest first,
// without those of the library and the Go runtime. Equal lines have the same number. 0: the table
// is full.
//
// Any goroutine may call it. Cost: about 1.3 us for 8 calls, without Go allocations; tens of us the
// first time on each call path, to make the text.
func Here(skip int) uint32 {
	var calls [siteCalls]uintptr
	n := runtime.Callers(skip+2, calls[:])
	key := maphash.Bytes(siteSeed, unsafe.Slice((*byte)(unsafe.Pointer(&calls)), n*int(unsafe.Sizeof(calls[0]))))
	if id, ok := sites.find(key); ok {
		return id
	}
	sites.Lock()
	defer sites.Unlock()
	return sites.add(key, sites.callsText(calls[:n]))
}

// textOf returns the number of any text.
func textOf(text string) uint32 {
	sites.Lock()
	defer sites.Unlock()
	return sites.add(maphash.String(siteSeed, text), unsafe.Slice(unsafe.StringData(text), len(text)))
}

// Text returns the text of a number from Here, "" for 0. It is valid for ever. Cost: one call into
// C.
func Text(id uint32) string {
	text := C.upfront_text(C.uint32_t(id))
	return unsafe.String((*byte)(unsafe.Pointer(text)), int(C.strlen(text)))
}

// Made is Site.Tell for the calls that made the object at a canonical address.
func Made(canonical unsafe.Pointer) string {
	made := Site{calls: uint32(C.upfront_made_of(C.uintptr_t(uintptr(canonical))))}
	return made.Tell("made")
}

// BlockMade returns the Site of the calls that made the live block of a heap or a buddy at p. It
// is the zero Site if the block has no note.
func BlockMade(p unsafe.Pointer) Site {
	return Site{calls: uint32(C.upfront_note_made_of(C.uintptr_t(uintptr(p))))}
}

// Had is Site.Tell for the calls that made and freed the block of a heap or a buddy that contains
// p, or contained p last.
func Had(p unsafe.Pointer) string {
	var note C.upfront_note
	if C.upfront_note_at(C.uintptr_t(uintptr(p)), &note) == 0 {
		return ""
	}
	made, freed := Site{calls: uint32(note.made)}, Site{calls: uint32(note.ended)}
	return made.Tell("made") + freed.Tell("freed")
}

var siteSeed = maphash.MakeSeed()

// sites finds the number of a text or of a call stack by a hash of 64 bits. Its map is made in full
// size, so that it makes no Go allocation later.
var sites = siteTable{ids: make(map[uint64]uint32, siteKeys)}

// siteKeys is the largest number of keys: several call stacks may have one text.
const siteKeys = 2 * C.UPFRONT_TEXTS

type siteTable struct {
	sync.RWMutex
	text [16384]byte // text of the call stack that is added
	ids  map[uint64]uint32
	full bool
}

// find reports ok also when the table is full.
func (t *siteTable) find(key uint64) (id uint32, ok bool) {
	t.RLock()
	defer t.RUnlock()
	id, ok = t.ids[key]
	return id, ok || t.full
}

// add returns the number of the text for the key. Another call stack may have the same text. pre:
// the lock is held.
func (t *siteTable) add(key uint64, text []byte) (id uint32) {
	if id, ok := t.ids[key]; ok {
		return id // added meanwhile
	}
	of := maphash.Bytes(siteSeed, text)
	id, ok := t.ids[of]
	if !ok {
		id = uint32(C.upfront_text_add((*C.char)(unsafe.Pointer(unsafe.SliceData(text))), C.uint64_t(len(text))))
	}
	if id == 0 || len(t.ids) >= siteKeys-1 {
		t.full = true
		return 0
	}
	t.ids[of], t.ids[key] = id, id
	return id
}

// callsText returns the text of calls: see Here. If all are the library's, it has them all. It is
// in a buffer of the table, whose lock is held, to keep Go allocations few.
func (t *siteTable) callsText(calls []uintptr) []byte {
	// CallersFrames keeps them: the array in Here would move to the Go heap
	kept := slices.Clone(calls)
	if text := t.callsWithout(library, kept); len(text) > 0 {
		return text
	}
	return t.callsWithout(nil, kept)
}

func (t *siteTable) callsWithout(packages []string, calls []uintptr) []byte {
	text, more := t.text[:0], len(calls) > 0
	frames := runtime.CallersFrames(calls)
	for more {
		var frame runtime.Frame
		frame, more = frames.Next()
		if of := packageOf(frame.Function); of != "runtime" && !slices.Contains(packages, of) {
			text = appendCall(text, frame)
		}
	}
	return text
}

// appendCall adds a line if all of it fits.
func appendCall(text []byte, frame runtime.Frame) []byte {
	if len(text)+len(frame.Function)+len(frame.File)+24 > cap(text) {
		return text
	}
	text = append(append(append(append(text, '\t'), frame.Function...), ' '), frame.File...)
	return append(strconv.AppendInt(append(text, ':'), int64(frame.Line), 10), '\n')
}

// library is the packages between a caller and the core.
var library = func() []string {
	own := reflect.TypeFor[Header]().PkgPath()
	house := path.Dir(own)
	list := []string{own}
	for _, name := range []string{"arena", "scope", "scope/stack", "scope/cache", "budget", "budget/save"} {
		list = append(list, path.Join(house, name))
	}
	return list
}()

// packageOf returns the package of a function by its name: "a.b/c" of "a.b/c.(*Frog).Jump".
func packageOf(function string) string {
	last := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[last:], ".")
	return function[:last+len(name)]
}
