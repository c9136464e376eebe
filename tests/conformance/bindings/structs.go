package bindings

// #include "upfront.h"
import "C"

import (
	"reflect"

	"github.com/upfront-mem/upfront/arena_c"
)

func pair[Go, C any]() [2]reflect.Type {
	return [2]reflect.Type{reflect.TypeFor[Go](), reflect.TypeFor[C]()}
}

// Structs are the structs of both languages: the Go type, and the C type.
var Structs = [][2]reflect.Type{
	pair[arena_c.Header, C.upfront_arena](),
	pair[arena_c.Ends, C.upfront_ends](),
	pair[arena_c.Stack, C.upfront_stack](),
	pair[arena_c.Pool, C.upfront_pool](),
	pair[arena_c.Ring, C.upfront_ring](),
	pair[arena_c.Frame, C.upfront_frame](),
	pair[arena_c.Heap, C.upfront_heap](),
	pair[arena_c.Block, C.upfront_block](),
	pair[arena_c.Buddy, C.upfront_buddy](),
	pair[arena_c.Scopes, C.upfront_scopes](),
	pair[arena_c.Record, C.upfront_record](),
	pair[arena_c.Row, C.upfront_row](),
	pair[arena_c.Map, C.upfront_map](),
	pair[arena_c.Arena, C.upfront_map_arena](),
	pair[arena_c.Tables, C.upfront_tables](),
	pair[arena_c.Range, C.upfront_range](),
}
