package arena_c

// #cgo memdebug CFLAGS: -DUPFRONT_MEMDEBUG
// #include "upfront.h"
// #cgo noescape upfront_linear_init
// #cgo nocallback upfront_linear_init
// #cgo noescape upfront_linear_rewind
// #cgo nocallback upfront_linear_rewind
// #cgo noescape upfront_stack_init
// #cgo nocallback upfront_stack_init
// #cgo noescape upfront_stack_free
// #cgo nocallback upfront_stack_free
// #cgo noescape upfront_stack_rewind
// #cgo nocallback upfront_stack_rewind
// #cgo noescape upfront_pool_size
// #cgo nocallback upfront_pool_size
// #cgo noescape upfront_pool_make
// #cgo nocallback upfront_pool_make
// #cgo noescape upfront_pool_close
// #cgo nocallback upfront_pool_close
// #cgo noescape upfront_pool_find
// #cgo nocallback upfront_pool_find
// #cgo noescape upfront_pool_next
// #cgo nocallback upfront_pool_next
// #cgo noescape upfront_pool_peak
// #cgo nocallback upfront_pool_peak
// #cgo noescape upfront_row_far_open
// #cgo nocallback upfront_row_far_open
// #cgo noescape upfront_row_far_grow
// #cgo nocallback upfront_row_far_grow
// #cgo noescape upfront_row_far_close
// #cgo nocallback upfront_row_far_close
// #cgo noescape upfront_row_rewind
// #cgo nocallback upfront_row_rewind
// #cgo noescape upfront_row_pool_open
// #cgo nocallback upfront_row_pool_open
// #cgo noescape upfront_map_size
// #cgo nocallback upfront_map_size
// #cgo noescape upfront_map_init
// #cgo nocallback upfront_map_init
// #cgo noescape upfront_map_rewind
// #cgo nocallback upfront_map_rewind
// #cgo noescape upfront_map_walk
// #cgo nocallback upfront_map_walk
// #cgo noescape upfront_asan_unpoison
// #cgo nocallback upfront_asan_unpoison
// static inline void upfront_asan_unpoison(void *p, uint64_t size) { UPFRONT_UNPOISON(p, size); }
import "C"

import "unsafe"

// The bindings of what is not a hit, in the order of the headers. Each is one line; the headers document them.

func (l *Linear) c() *C.upfront_linear { return (*C.upfront_linear)(unsafe.Pointer(l)) }
func (s *Stack) c() *C.upfront_stack   { return (*C.upfront_stack)(unsafe.Pointer(s)) }
func (p *Pool) c() *C.upfront_pool     { return (*C.upfront_pool)(unsafe.Pointer(p)) }
func (r *Row) c() *C.upfront_row       { return (*C.upfront_row)(unsafe.Pointer(r)) }
func (m *Map) c() *C.upfront_map       { return (*C.upfront_map)(unsafe.Pointer(m)) }

// LinearInit is upfront_linear_init.
func LinearInit(block unsafe.Pointer, size uint64) *Linear {
	return (*Linear)(unsafe.Pointer(C.upfront_linear_init(block, C.uint64_t(size))))
}

// dead tells the race detector what died when the cursor moved back from where it was: a rewind that only moves a
// cursor conflicts with nobody. Where it was is read into a variable first: Go doesn't say whether an operand or a call
// beside it comes first.
func (l *Linear) dead(was uint64, code Code) Code {
	if Race {
		raceDead(l.At(l.Cursor), uintptr(was-l.Cursor))
	}
	return code
}

// Rewind is upfront_linear_rewind.
func (l *Linear) Rewind(tag, cursor uint64) Code {
	was := l.Cursor
	return l.dead(was, Code(C.upfront_linear_rewind(l.c(), C.uint64_t(tag), C.uint64_t(cursor))))
}

// StackInit is upfront_stack_init.
func StackInit(block unsafe.Pointer, size uint64) *Stack {
	return (*Stack)(unsafe.Pointer(C.upfront_stack_init(block, C.uint64_t(size))))
}

// PopBlock is upfront_stack_free.
func (s *Stack) PopBlock(p unsafe.Pointer) Code {
	was := s.Linear.Cursor
	return s.Linear.dead(was, Code(C.upfront_stack_free(s.c(), p)))
}

// Rewind is upfront_stack_rewind.
func (s *Stack) Rewind(mark uint64) Code {
	was := s.Linear.Cursor
	return s.Linear.dead(was, Code(C.upfront_stack_rewind(s.c(), C.uint64_t(mark))))
}

// PoolSize is upfront_pool_size.
func PoolSize(size, align, count uint64) uint64 {
	return uint64(C.upfront_pool_size(C.uint64_t(size), C.uint64_t(align), C.uint64_t(count)))
}

// PoolMake is upfront_pool_make.
func PoolMake(block unsafe.Pointer, blockSize, size, align uint64) *Pool {
	return (*Pool)(unsafe.Pointer(C.upfront_pool_make(block, C.uint64_t(blockSize), C.uint64_t(size), C.uint64_t(align))))
}

// Close is upfront_pool_close.
func (p *Pool) Close() { C.upfront_pool_close(p.c()) }

// Find is upfront_pool_find.
func (p *Pool) Find(tag uint64, chunk unsafe.Pointer) (index uint64, code Code) {
	found := int64(C.upfront_pool_find(p.c(), C.uint64_t(tag), chunk))
	if found < 0 {
		return 0, Code(found)
	}
	return uint64(found), OK
}

// Next is upfront_pool_next.
func (p *Pool) Next(index uint64) uint64 {
	return uint64(C.upfront_pool_next(p.c(), C.uint64_t(index)))
}

// Peak is upfront_pool_peak.
func (p *Pool) Peak() uint64 { return uint64(C.upfront_pool_peak(p.c())) }

// FarOpen is upfront_row_far_open.
func (r *Row) FarOpen() (tag uint64) { return uint64(C.upfront_row_far_open(r.c())) }

// FarGrow is upfront_row_far_grow.
func (r *Row) FarGrow(size, align uint64) Code {
	return Code(C.upfront_row_far_grow(r.c(), C.uint64_t(size), C.uint64_t(align)))
}

// FarClose is upfront_row_far_close.
func (r *Row) FarClose() {
	edge := r.Edge
	C.upfront_row_far_close(r.c())
	if Race {
		raceDead(r.Far().At(edge), uintptr(r.End-edge))
	}
}

// Rewind is upfront_row_rewind.
func (r *Row) Rewind(cursor, count uint64) {
	top := r.Slot(r.Open - 1)
	was := top.Cursor
	C.upfront_row_rewind(r.c(), C.uint64_t(cursor), C.uint64_t(count))
	top.dead(was, OK)
}

// PoolOpen is upfront_row_pool_open.
func (l *Linear) PoolOpen(tag, size, align, count, kind uint64) (p *Pool, code Code) {
	code = Code(C.upfront_row_pool_open(l.c(), C.uint64_t(tag), C.uint64_t(size), C.uint64_t(align), C.uint64_t(count),
		C.uint64_t(kind), (**C.upfront_pool)(unsafe.Pointer(&p))))
	return p, code
}

// MapSize is upfront_map_size.
func MapSize(arenas []Arena, slots, pools uint64) uint64 {
	return uint64(C.upfront_map_size((*C.upfront_map_arena)(unsafe.Pointer(unsafe.SliceData(arenas))), C.uint64_t(len(arenas)),
		C.uint64_t(slots), C.uint64_t(pools)))
}

// MapInit is upfront_map_init.
func MapInit(block unsafe.Pointer, size uint64, arenas []Arena, slots, pools uint64) *Map {
	return (*Map)(unsafe.Pointer(C.upfront_map_init(block, C.uint64_t(size),
		(*C.upfront_map_arena)(unsafe.Pointer(unsafe.SliceData(arenas))), C.uint64_t(len(arenas)), C.uint64_t(slots), C.uint64_t(pools))))
}

// Rewind is upfront_map_rewind.
func (m *Map) Rewind(row uint64) Code { return Code(C.upfront_map_rewind(m.c(), C.uint64_t(row))) }

// Walk is upfront_map_walk: the number of ranges written, or with Corrupt the index of the row.
func (m *Map) Walk(size uint64, out []Range) (count uint64, code Code) {
	code = Code(C.upfront_map_walk(m.c(), C.uint64_t(size), (*C.upfront_range)(unsafe.Pointer(unsafe.SliceData(out))),
		C.uint64_t(len(out)), (*C.uint64_t)(unsafe.Pointer(&count))))
	return count, code
}

// Unpoison makes a block ordinary memory again in asan builds, before it goes back to where it came from.
func Unpoison(block unsafe.Pointer, size uint64) { C.upfront_asan_unpoison(block, C.uint64_t(size)) }

// The Go structs are the C structs: same sizes, same places, same limits. A difference does not compile.
var (
	_ [unsafe.Sizeof(Linear{})]byte = [unsafe.Sizeof(C.upfront_linear{})]byte{}
	_ [unsafe.Sizeof(Stack{})]byte  = [unsafe.Sizeof(C.upfront_stack{})]byte{}
	_ [unsafe.Sizeof(below{})]byte  = [unsafe.Sizeof(C.upfront_stack_below{})]byte{}
	_ [unsafe.Sizeof(Pool{})]byte   = [unsafe.Sizeof(C.upfront_pool{})]byte{}
	_ [unsafe.Sizeof(Row{})]byte    = [unsafe.Sizeof(C.upfront_row{})]byte{}
	_ [unsafe.Sizeof(Node{})]byte   = [unsafe.Sizeof(C.upfront_node{})]byte{}
	_ [unsafe.Sizeof(Map{})]byte    = [unsafe.Sizeof(C.upfront_map{})]byte{}
	_ [unsafe.Sizeof(Arena{})]byte  = [unsafe.Sizeof(C.upfront_map_arena{})]byte{}
	_ [unsafe.Sizeof(Range{})]byte  = [unsafe.Sizeof(C.upfront_range{})]byte{}

	_ [unsafe.Offsetof(Linear{}.Refused)]byte = [unsafe.Offsetof(C.upfront_linear{}.refused)]byte{}
	_ [unsafe.Offsetof(Pool{}.Open)]byte      = [unsafe.Offsetof(C.upfront_pool{}.open)]byte{}
	_ [unsafe.Offsetof(Row{}.FarOf)]byte      = [unsafe.Offsetof(C.upfront_row{}.far_of)]byte{}

	_ [0]byte = [C.UPFRONT_OFFSET_MAX - OffsetMax]byte{}
	_ [0]byte = [C.UPFRONT_GENERATION - Generation]byte{}
	_ [0]byte = [C.UPFRONT_EDGE - Edge]byte{}
	_ [0]byte = [C.UPFRONT_PIECE - Piece]byte{}
	_ [0]byte = [C.UPFRONT_NAME_SIZE - NameSize]byte{}

	// A scope's header and a finalizer, as promised.
	_ [64]byte = [unsafe.Sizeof(Linear{})]byte{}
	_ [16]byte = [unsafe.Sizeof(Node{})]byte{}
)
