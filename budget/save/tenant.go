package save

import "reflect"

// tenant is a range of a state with words of its own: an allocator, or a container.
type tenant struct {
	at, size uint64 // from the state's first byte
	name     string // "arena.Heap", "container.List of game.Frog"
	called   string // of State.Name, or ""
	kept     bool   // Go code keeps its geometry, so a layout has it
	// check returns an error for bytes that no play could have left. image is a copy with the same
	// alignment to a cache line; offsets in the error count from its start.
	check func(image []byte) error
	// convert converts the container's words of a file: see stack.Tenant.
	convert func(image, old []byte, count, size uint64) (place func(uint64) (uint64, bool), finish func() error,
		err error)
	values []values // of Go types, in its bytes
	// live reports whether [from, to) is in one live block of a checked image. If live is nil, no
	// arena.Ptr or arena.Slice may lead into the tenant.
	live func(image []byte, from, to uint64) bool
}

type values struct {
	at, count, stride uint64 // from the state's first byte
	of                reflect.Type
	what              string // "keys", "values"; "" if no layout has them
}
