package save

import "reflect"

// tenant is a range of a state with words of its own: an allocator's header and blocks, or a
// container. It checks its bytes in each image from outside.
type tenant struct {
	at, size uint64 // from the state's first byte
	name     string // "arena.Heap", "container.List of game.Frog"
	kept     bool   // Go code keeps its geometry, so a layout has it
	// check returns an error for bytes that no play could have left. image is a copy of the
	// tenant's bytes, with the same alignment to a line. Offsets in the error count from its first
	// byte.
	check  func(image []byte) error
	values []values // of Go types, in its bytes
	// live reports, for an image that passed check, whether [from, to) is within one live block. If
	// live is nil, no arena.Ptr or arena.Slice may lead into the tenant.
	live func(image []byte, from, to uint64) bool
}

// values is count values of one type.
type values struct {
	at, count, stride uint64 // from the state's first byte
	of                reflect.Type
	what              string // "keys", "values"; "" if no layout has them
}
