package arena_c

// #include "upfront.h"
// #cgo noescape upfront_asan_unpoison
// #cgo nocallback upfront_asan_unpoison
// static inline void upfront_asan_unpoison(void *p, uint64_t size) { UPFRONT_UNPOISON(p, size); }
import "C"

import "unsafe"

// The limits of base.h; the end of this file compares them with the C side when the package is compiled.
const (
	OffsetMax = 1 << 38   // a block, an offset and a size are below it
	Object    = OffsetMax // one allocation, in a word that counts them above the bytes that were asked for
	Edge      = 1 << 16   // edges of regions and tables
	AlignMax  = 1 << 20   // the largest alignment
	LineSize  = 64
	NameSize  = 32 // of a row's name, with its closing zero
)

// Code is the answer of an operation that can refuse: OK, a kind of full (above zero), or a caller's bug (below).
type Code int

const (
	OK          Code = 0
	Full        Code = 1
	TableFull   Code = 2
	BadArgument Code = -1
	Stale       Code = -2
	Order       Code = -3
	Double      Code = -4
	Foreign     Code = -5
	Misaligned  Code = -6
	Corrupt     Code = -7
)

// String gives the code in a few words, for messages.
func (c Code) String() string {
	switch c {
	case OK:
		return "ok"
	case Full:
		return "full"
	case TableFull:
		return "no free header in a control table"
	case BadArgument:
		return "bad argument"
	case Stale:
		return "closed already"
	case Order:
		return "out of order"
	case Double:
		return "put twice"
	case Foreign:
		return "not from here"
	case Misaligned:
		return "inside a chunk, not at its start"
	}
	return "corrupt table"
}

// Unpoison makes a block ordinary memory again in asan builds, before it goes back to where it came from.
func Unpoison(block unsafe.Pointer, size uint64) { C.upfront_asan_unpoison(block, C.uint64_t(size)) }

// checked is the address of a header on its way to C. A nil one panics here, as any nil does, instead of in C.
func checked[T any](header *T) unsafe.Pointer {
	_ = *header
	return unsafe.Pointer(header)
}

// The Go structs are the C structs: same sizes, same places, same limits. A difference does not compile.
var (
	_ [unsafe.Sizeof(Header{})]byte    = [unsafe.Sizeof(C.upfront_arena{})]byte{}
	_ [unsafe.Sizeof(Ends{})]byte      = [unsafe.Sizeof(C.upfront_ends{})]byte{}
	_ [unsafe.Sizeof(Stack{})]byte     = [unsafe.Sizeof(C.upfront_stack{})]byte{}
	_ [unsafe.Sizeof(below{})]byte     = [unsafe.Sizeof(C.upfront_stack_below{})]byte{}
	_ [unsafe.Sizeof(Pool{})]byte      = [unsafe.Sizeof(C.upfront_pool{})]byte{}
	_ [unsafe.Sizeof(Ring{})]byte      = [unsafe.Sizeof(C.upfront_ring{})]byte{}
	_ [unsafe.Sizeof(Frame{})]byte     = [unsafe.Sizeof(C.upfront_frame{})]byte{}
	_ [unsafe.Sizeof(Heap{})]byte      = [unsafe.Sizeof(C.upfront_heap{})]byte{}
	_ [unsafe.Sizeof(HeapRange{})]byte = [unsafe.Sizeof(C.upfront_heap_range{})]byte{}
	_ [unsafe.Sizeof(Scopes{})]byte    = [unsafe.Sizeof(C.upfront_scopes{})]byte{}
	_ [unsafe.Sizeof(Record{})]byte    = [unsafe.Sizeof(C.upfront_record{})]byte{}
	_ [unsafe.Sizeof(Row{})]byte       = [unsafe.Sizeof(C.upfront_row{})]byte{}
	_ [unsafe.Sizeof(Map{})]byte       = [unsafe.Sizeof(C.upfront_map{})]byte{}
	_ [unsafe.Sizeof(Arena{})]byte     = [unsafe.Sizeof(C.upfront_map_arena{})]byte{}
	_ [unsafe.Sizeof(MapSum{})]byte    = [unsafe.Sizeof(C.upfront_map_sum{})]byte{}
	_ [unsafe.Sizeof(Range{})]byte     = [unsafe.Sizeof(C.upfront_range{})]byte{}

	_ [unsafe.Offsetof(Header{}.Start)]byte = [unsafe.Offsetof(C.upfront_arena{}.start)]byte{}
	_ [unsafe.Offsetof(Ends{}.Lost)]byte    = [unsafe.Offsetof(C.upfront_ends{}.lost)]byte{}
	_ [unsafe.Offsetof(Pool{}.Handles)]byte = [unsafe.Offsetof(C.upfront_pool{}.handles)]byte{}
	_ [unsafe.Offsetof(Pool{}.Numbers)]byte = [unsafe.Offsetof(C.upfront_pool{}.numbers)]byte{}
	_ [unsafe.Offsetof(Pool{}.Count)]byte   = [unsafe.Offsetof(C.upfront_pool{}.count)]byte{}
	_ [unsafe.Offsetof(Ring{}.Seam)]byte    = [unsafe.Offsetof(C.upfront_ring{}.seam)]byte{}
	_ [unsafe.Offsetof(Frame{}.Count)]byte  = [unsafe.Offsetof(C.upfront_frame{}.count)]byte{}
	_ [unsafe.Offsetof(Heap{}.Refused)]byte = [unsafe.Offsetof(C.upfront_heap{}.refused)]byte{}
	_ [unsafe.Offsetof(Row{}.Pools)]byte    = [unsafe.Offsetof(C.upfront_row{}.pools)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Owner)]byte = [unsafe.Offsetof(C.upfront_scopes{}.owner)]byte{}
	_ [unsafe.Offsetof(Record{}.Edge)]byte  = [unsafe.Offsetof(C.upfront_record{}.edge)]byte{}
	_ [unsafe.Offsetof(Map{}.Guard)]byte    = [unsafe.Offsetof(C.upfront_map{}.guard)]byte{}
	_ [unsafe.Offsetof(MapSum{}.Whole)]byte = [unsafe.Offsetof(C.upfront_map_sum{}.whole)]byte{}

	// The words that fast paths and package scope read are these, one by one.
	_ [unsafe.Offsetof(Scopes{}.Cursor)]byte  = [unsafe.Offsetof(C.upfront_arena{}.cursor)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Limit)]byte   = [unsafe.Offsetof(C.upfront_arena{}.limit)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Gen)]byte     = [unsafe.Offsetof(C.upfront_arena{}.gen)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Asked)]byte   = [unsafe.Offsetof(C.upfront_arena{}.asked)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Misused)]byte = [unsafe.Offsetof(C.upfront_arena{}.misused)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Least)]byte   = [unsafe.Offsetof(C.upfront_arena{}.least)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Next)]byte    = [unsafe.Offsetof(C.upfront_arena{}.next)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Start)]byte   = [unsafe.Offsetof(C.upfront_arena{}.start)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Chain)]byte   = [unsafe.Offsetof(C.upfront_scopes{}.chain)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Odd)]byte     = [unsafe.Offsetof(C.upfront_scopes{}.odd)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Depth)]byte   = [unsafe.Offsetof(C.upfront_scopes{}.depth)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Slots)]byte   = [unsafe.Offsetof(C.upfront_scopes{}.slots)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Base)]byte    = [unsafe.Offsetof(C.upfront_scopes{}.base)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Records)]byte = [unsafe.Offsetof(C.upfront_scopes{}.records)]byte{}
	_ [unsafe.Offsetof(Scopes{}.Back)]byte    = [unsafe.Offsetof(C.upfront_scopes{}.back)]byte{}
	_ [unsafe.Offsetof(Record{}.Mark)]byte    = [unsafe.Offsetof(C.upfront_record{}.mark)]byte{}
	_ [unsafe.Offsetof(Record{}.Chain)]byte   = [unsafe.Offsetof(C.upfront_record{}.chain)]byte{}
	_ [unsafe.Offsetof(Record{}.Gen)]byte     = [unsafe.Offsetof(C.upfront_record{}.gen)]byte{}
	_ [unsafe.Offsetof(Record{}.Asked)]byte   = [unsafe.Offsetof(C.upfront_record{}.asked)]byte{}
	_ [unsafe.Offsetof(Record{}.Count)]byte   = [unsafe.Offsetof(C.upfront_record{}.count)]byte{}
	_ [unsafe.Offsetof(Record{}.Limit)]byte   = [unsafe.Offsetof(C.upfront_record{}.limit)]byte{}
	_ [unsafe.Offsetof(Row{}.Temp)]byte       = [unsafe.Offsetof(C.upfront_row{}.temp)]byte{}
	_ [unsafe.Offsetof(Row{}.Name)]byte       = [unsafe.Offsetof(C.upfront_row{}.name)]byte{}
	_ [unsafe.Offsetof(Row{}.Kind)]byte       = [unsafe.Offsetof(C.upfront_row{}.kind)]byte{}
	_ [unsafe.Offsetof(Row{}.Kin)]byte        = [unsafe.Offsetof(C.upfront_row{}.kin)]byte{}
	_ [unsafe.Offsetof(Row{}.End)]byte        = [unsafe.Offsetof(C.upfront_row{}.end)]byte{}

	_ [0]byte = [C.UPFRONT_OFFSET_MAX - OffsetMax]byte{}
	_ [0]byte = [C.UPFRONT_OBJECT - Object]byte{}
	_ [0]byte = [C.UPFRONT_EDGE - Edge]byte{}
	_ [0]byte = [C.UPFRONT_ALIGN_MAX - AlignMax]byte{}
	_ [0]byte = [C.UPFRONT_LINE - LineSize]byte{}
	_ [0]byte = [C.UPFRONT_NAME_SIZE - NameSize]byte{}
	_ [0]byte = [C.UPFRONT_CHUNK_LIVE - ChunkLive]byte{}
	_ [0]byte = [C.UPFRONT_CHUNK_FREE - ChunkFree]byte{}
	_ [0]byte = [C.UPFRONT_CHUNK_LEAVING - ChunkLeaving]byte{}
	_ [0]byte = [C.UPFRONT_CHUNK_RETIRED - chunkRetired]byte{}
	_ [0]byte = [C.UPFRONT_HANDLE_INDEX - HandleIndex]byte{}
	_ [0]byte = [C.UPFRONT_RING_WORD - ringWord]byte{}
	_ [0]byte = [C.UPFRONT_RING_PADDING - ringPadding]byte{}
	_ [0]byte = [C.UPFRONT_FRAME_MIN - FrameMin]byte{}
	_ [0]byte = [C.UPFRONT_FRAME_MAX - FrameMax]byte{}
	_ [0]byte = [C.UPFRONT_HEAP_BLOCK - HeapBlock]byte{}
	_ [0]byte = [C.UPFRONT_HEAP_ALIGN - HeapAlign]byte{}
	_ [0]byte = [C.UPFRONT_HEAP_HEADER - HeapAlign]byte{}
	_ [0]byte = [C.UPFRONT_ASKED - Asked]byte{}
	_ [0]byte = [C.UPFRONT_NODE_CLASS - NodeClass]byte{}
	_ [0]byte = [C.UPFRONT_CLASS_C - ClassC]byte{}
	_ [0]byte = [C.UPFRONT_CLASS_POOL - ClassPool]byte{}
	_ [0]byte = [C.UPFRONT_CLASS_TEMP - ClassTemp]byte{}
	_ [0]byte = [C.UPFRONT_CLOSING - Closing]byte{}
	_ [0]byte = [C.UPFRONT_BUILDING - Building]byte{}
	_ [0]byte = [C.UPFRONT_MAP_MAGIC - MapMagic]byte{}
	_ [0]byte = [C.UPFRONT_REGION - KindRegion]byte{}
	_ [0]byte = [C.UPFRONT_RANGE_TABLES - RangeTables]byte{}

	// The last of each list of numbers that are told one after the other.
	_ [0]byte = [C.UPFRONT_TABLE_FULL - TableFull]byte{}
	_ [0]byte = [C.UPFRONT_CORRUPT - Corrupt]byte{}
	_ [0]byte = [C.UPFRONT_SCRATCH - KindScratch]byte{}
	_ [0]byte = [C.UPFRONT_RANGE_GUARD - RangeGuard]byte{}

	_ [StackMask + 1]byte = [unsafe.Sizeof(C.upfront_stack_below{})]byte{}

	// What a finalizer of C takes behind its node, and a header, a record and a node are as large as promised.
	_ [16]byte       = [unsafe.Sizeof(C.upfront_deferred{})]byte{}
	_ [128]byte      = [unsafe.Sizeof(Scopes{})]byte{}
	_ [64]byte       = [unsafe.Sizeof(Record{})]byte{}
	_ [64]byte       = [unsafe.Sizeof(Pool{})]byte{}
	_ [NodeSize]byte = [unsafe.Sizeof(C.upfront_node(0))]byte{}
	_ [64]byte       = [unsafe.Sizeof(Header{})]byte{}
	_ [64]byte       = [unsafe.Offsetof(Scopes{}.Chain)]byte{} // the words before are a Header's
)
