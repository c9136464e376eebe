//go:build linux && cgo && !asan

package malloc

// #include "caller.h"
// #include "process.h"
// #cgo noescape upfront_malloc_profile
// #cgo nocallback upfront_malloc_profile
// #cgo noescape upfront_malloc_stack
// #cgo nocallback upfront_malloc_stack
// #cgo noescape upfront_malloc_object
// #cgo nocallback upfront_malloc_object
// #cgo noescape upfront_profile_symbol
// #cgo nocallback upfront_profile_symbol
// #cgo nocallback upfront_go_parent
// #cgo nocallback upfront_malloc_sampler
import "C"

import (
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// arenas has the names of the arenas with a Shared in the profile, by number - 1.
var arenas struct {
	lock  sync.Mutex
	names []string
}

// arenasMost bounds the names. All other arenas have the last number.
const arenasMost = 1024

// Sampler is [arena_c.ProcessHeap]'s.
func (h *heap) Sampler(arena string) (functions unsafe.Pointer, number uint32) {
	if functions = unsafe.Pointer(C.upfront_malloc_sampler()); functions == nil {
		return nil, 0
	}
	arenas.lock.Lock()
	defer arenas.lock.Unlock()
	i := slices.Index(arenas.names, arena)
	switch {
	case i >= 0:
	case len(arenas.names) == arenasMost:
		i = arenasMost - 1
	default:
		i = len(arenas.names)
		if i == arenasMost-1 {
			arena = "others"
		}
		arenas.names = append(arenas.names, arena)
	}
	return functions, uint32(i + 1)
}

// nameOf returns the name of an arena, or "" for C's malloc.
func nameOf(number C.uint32_t) string {
	if number == 0 {
		return ""
	}
	arenas.lock.Lock()
	defer arenas.lock.Unlock()
	return arenas.names[number-1]
}

// WriteProfile is [arena_c.ProcessHeap]'s.
func (h *heap) WriteProfile(w io.Writer) error {
	var counts C.upfront_profile_counts
	C.upfront_malloc_profile(&counts)
	if counts.rate == 0 {
		return errors.New("no profile of C's malloc: there is no open budget with a c_heap, or c_heap.profile is off")
	}
	b := newBuilder()
	for i := range counts.objects {
		var o C.upfront_profile_object
		C.upfront_malloc_object(i, &o)
		b.addObject(o)
	}
	for i := range counts.stacks {
		var s C.upfront_profile_stack
		C.upfront_malloc_stack(i, &s)
		b.addStack(&s)
	}
	if gone := counts.gone; gone.objects != 0 {
		replaced := []uint64{b.named(location{name: "(stacks that were replaced)"})}
		b.addSample(replaced, gone, C.upfront_profile_sums{}, "")
	}
	out := gzip.NewWriter(w)
	if _, err := out.Write(b.done(counts)); err != nil {
		return err
	}
	return out.Close()
}

// message is a message of a protocol buffer. Its fields are those of profile.proto in
// github.com/google/pprof.
type message []byte

func (m *message) number(field int, n uint64) {
	if n != 0 {
		*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3), n)
	}
}

func (m *message) bytes(field int, data []byte) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3|2), uint64(len(data)))
	*m = append(*m, data...)
}

func (m *message) numbers(field int, list ...uint64) {
	var packed []byte
	for _, n := range list {
		packed = binary.AppendUvarint(packed, n)
	}
	m.bytes(field, packed)
}

// location identifies a location of the profile: an address in an object, or a name.
type location struct {
	pc     uintptr
	object int // 1 + its number; 0: unknown
	name   string
}

// function identifies a function of the profile.
type function struct{ name, file string }

// mapping is the code of a file.
type mapping struct {
	from, end, offset uint64
	file              string
	partial           bool // a location has no line
}

// sample is the message of a stack, and its live bytes.
type sample struct {
	live uint64
	is   message
}

// builder makes the message of a profile.
type builder struct {
	all       message // locations, functions
	samples   []sample
	strings   []string
	indices   map[string]uint64
	locations map[location]uint64
	functions map[function]uint64
	mappings  []mapping // Go's code, then the objects
}

// newBuilder begins with the mapping of Go's code, whose locations have all names: the tool needn't
// look for them in the file.
func newBuilder() *builder {
	b := &builder{strings: []string{""}, indices: map[string]uint64{"": 0}, locations: map[location]uint64{},
		functions: map[function]uint64{}}
	b.mappings = append(b.mappings, mapping{file: fileAt(uint64(reflect.ValueOf(newBuilder).Pointer()))})
	return b
}

// fileAt returns the file that is mapped at an address of code. It may differ from os.Executable:
// that is the dynamic linker if the program was started as an argument of the linker, and the C
// program if Go's code is in a library. "" is a file that the tool doesn't find.
func fileAt(pc uint64) string {
	maps, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		var from, end uint64
		_, err := fmt.Sscanf(line, "%x-%x ", &from, &end)
		if start := strings.IndexByte(line, '/'); err == nil && from <= pc && pc < end && start >= 0 {
			return strings.TrimSuffix(strings.TrimSuffix(line[start:], "\n"), " (deleted)")
		}
	}
	name, _ := os.Executable()
	return name
}

func (b *builder) addObject(o C.upfront_profile_object) {
	name := C.GoString(&o.name[0])
	if name == "" { // the program's own
		name = fileAt(uint64(o.from))
	}
	b.mappings = append(b.mappings, mapping{from: uint64(o.from), end: uint64(o.end), offset: uint64(o.offset),
		file: name})
}

func (b *builder) text(s string) uint64 {
	i, ok := b.indices[s]
	if !ok {
		i = uint64(len(b.strings))
		b.strings, b.indices[s] = append(b.strings, s), i
	}
	return i
}

func (b *builder) addStack(s *C.upfront_profile_stack) {
	var stack []uint64
	pcs := unsafe.Slice((*uintptr)(unsafe.Pointer(&s.frames[0])), int(s.c)+int(s._go))
	for i, pc := range pcs[:s.c] {
		l := location{pc: pc, object: int(s.object[i])}
		// the outermost function is cgo's, which Go's first frame names
		stub := i == int(s.c)-1 && i > 0 && s._go != 0
		if id := b.inC(l, stub); id != 0 {
			stack = append(stack, id)
		}
	}
	for _, pc := range pcs[s.c:] {
		if id := b.inGo(pc); id != 0 {
			stack = append(stack, id)
		}
	}
	b.addSample(stack, s.all, s.live, nameOf(s.arena))
}

// addSample adds a stack. The label says which arena has its blocks.
func (b *builder) addSample(stack []uint64, all, live C.upfront_profile_sums, arena string) {
	objects := func(s C.upfront_profile_sums) uint64 {
		return (uint64(s.objects) + C.UPFRONT_PROFILE_OBJECT/2) / C.UPFRONT_PROFILE_OBJECT
	}
	var m message
	m.numbers(1, stack...)
	m.numbers(2, objects(all), uint64(all.bytes), objects(live), uint64(live.bytes))
	if arena != "" {
		var label message
		label.number(1, b.text("arena"))
		label.number(2, b.text(arena))
		m.bytes(3, label)
	}
	b.samples = append(b.samples, sample{uint64(live.bytes), m})
}

// passesOn reports whether a function is of package arena_c, and passes the call of a Shared's
// method on to C.
func passesOn(f runtime.Frame) bool {
	return strings.HasPrefix(f.Function, module+"arena_c.") || strings.HasSuffix(f.File, "/arena_c/callbacks.go")
}

var module = strings.TrimSuffix(reflect.TypeFor[heap]().PkgPath(), "arena/with/malloc")

// inC returns the location of a return address in C. With stub it returns 0 if the function there
// has no name.
func (b *builder) inC(l location, stub bool) uint64 {
	if id := b.locations[l]; id != 0 {
		return id
	}
	lines, whole := b.linesOfC(l)
	if stub && lines == nil {
		return 0
	}
	if l.object != 0 {
		b.mappings[l.object].partial = b.mappings[l.object].partial || !whole
	}
	return b.addLocation(l, l.object+1, lines)
}

// linesOfC names the code before a return address: by the program's symbolizer, or by the symbols
// of its object, unless the object was closed since. whole reports that the lines have files.
func (b *builder) linesOfC(l location) (lines []message, whole bool) {
	var name [256]byte
	has := C.int(1)
	if l.object != 0 {
		has = C.upfront_profile_symbol(C.uint64_t(l.object-1), C.uintptr_t(l.pc-1),
			(*C.char)(unsafe.Pointer(&name)), C.uint64_t(len(name)))
	}
	if has == 0 {
		return nil, false
	}
	for frames, more := runtime.CallersFrames([]uintptr{l.pc - 1}), !b.shares(l.object); more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.Function != "" && f.File != "" {
			lines = append(lines, b.line(function{f.Function, f.File}, f.Line))
		}
	}
	if lines != nil {
		return lines, true
	}
	if text, _, _ := strings.Cut(string(name[:]), "\x00"); has == 2 {
		lines = append(lines, b.line(function{name: text}, 0))
	}
	return lines, false
}

// shares reports whether another object had addresses of this one, so that the symbolizer may know
// only the other.
func (b *builder) shares(object int) bool {
	for i := 1; i < len(b.mappings) && object != 0; i++ {
		if x, y := b.mappings[i], b.mappings[object]; i != object && x.from < y.end && y.from < x.end {
			return true
		}
	}
	return false
}

// inGo returns the location of a return address in Go. A function of cgo has the name of C's
// function, as the source of Go has it: C.strdup. A result of 0 is no location.
func (b *builder) inGo(pc uintptr) uint64 {
	l := location{pc: pc}
	if id := b.locations[l]; id != 0 {
		return id
	}
	var lines []message
	for at := pc; at != 0; at = callAround(at) {
		f, _ := runtime.CallersFrames([]uintptr{at}).Next()
		if passesOn(f) {
			continue
		}
		if filepath.Base(f.File) == "_cgo_gotypes.go" || strings.HasSuffix(f.Function, "._cgo_cmalloc") {
			if f.Function = nameOfC(f.Function); f.Function == "" {
				continue // of an exported function, which is in the stack too
			}
			f.File, f.Line = "", 0
		}
		lines = append(lines, b.line(function{f.Function, f.File}, f.Line))
	}
	if lines == nil {
		return 0
	}
	return b.addLocation(l, 1, lines)
}

// callAround returns the return address, in the calling function, of the call that was inlined at
// pc, or 0. CallersFrames knows such a call only in the result of runtime.Callers.
func callAround(pc uintptr) uintptr {
	if parent := uintptr(C.upfront_go_parent(C.uintptr_t(pc - 1))); parent != 0 {
		return parent + 1
	}
	return 0
}

// nameOfC returns "C.strdup" for "main._Cfunc_strdup", the function that cgo generates for a call
// of strdup. It returns "" for another function.
func nameOfC(name string) string {
	name = name[strings.LastIndexByte(name, '.')+1:]
	for _, prefix := range []string{"_Cfunc_", "_C2func_"} {
		if of, found := strings.CutPrefix(name, prefix); found {
			name = of
		}
	}
	switch {
	case name == "_CMalloc" || name == "_cgo_cmalloc":
		return "C.malloc"
	case strings.HasPrefix(name, "_cgo"):
		return ""
	}
	return "C." + name
}

// named returns the location of a name.
func (b *builder) named(l location) uint64 {
	return b.addLocation(l, 1, []message{b.line(function{name: l.name}, 0)})
}

func (b *builder) line(f function, line int) (m message) {
	id := b.functions[f]
	if id == 0 {
		id = uint64(len(b.functions) + 1)
		b.functions[f] = id
		var m message
		m.number(1, id)
		m.number(2, b.text(f.name))
		m.number(3, b.text(f.name))
		m.number(4, b.text(f.file))
		b.all.bytes(5, m)
	}
	m.number(1, id)
	m.number(2, uint64(line))
	return m
}

// addLocation adds a location in the mapping of that number; 1 is Go's code, or none.
func (b *builder) addLocation(l location, mapping int, lines []message) uint64 {
	id := uint64(len(b.locations) + 1)
	b.locations[l] = id
	var m message
	m.number(1, id)
	m.number(2, uint64(mapping))
	m.number(3, uint64(max(l.pc, 1)-1))
	for _, line := range lines {
		m.bytes(4, line)
	}
	b.all.bytes(4, m)
	return id
}

// done returns the message of the profile.
func (b *builder) done(counts C.upfront_profile_counts) message {
	all := b.all
	// go tool pprof -traces keeps the order
	slices.SortStableFunc(b.samples, func(x, y sample) int { return cmp.Compare(y.live, x.live) })
	for _, s := range b.samples {
		all.bytes(2, s.is)
	}
	valueType := func(field int, kind, unit string) {
		var m message
		m.number(1, b.text(kind))
		m.number(2, b.text(unit))
		all.bytes(field, m)
	}
	for _, kind := range []string{"alloc", "inuse"} {
		valueType(1, kind+"_objects", "count")
		valueType(1, kind+"_space", "bytes")
	}
	for i, x := range b.mappings {
		var m message
		m.number(1, uint64(i+1))
		m.number(2, x.from)
		m.number(3, x.end)
		m.number(4, x.offset)
		m.number(5, b.text(x.file))
		if !x.partial {
			for field := 7; field <= 9; field++ { // functions, files and lines
				m.number(field, 1)
			}
		}
		all.bytes(3, m)
	}
	all.number(9, uint64(time.Now().UnixNano()))
	valueType(11, "space", "bytes")
	all.number(12, uint64(counts.rate))
	if counts.lost != 0 {
		all.numbers(13, b.text(fmt.Sprintf("%d samples are missing: their table was full; raise c_heap.profile",
			counts.lost)))
	}
	all.number(14, b.text("inuse_space"))
	for _, s := range b.strings {
		all.bytes(6, []byte(s))
	}
	return all
}
