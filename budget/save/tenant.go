package save

import "reflect"

// tenant is something in a state that keeps words of its own there: an allocator's header and
// blocks, a container. What comes from outside is checked by it before anything changes.
type tenant struct {
	at, size uint64 // from the state's first byte
	name     string // "arena.Heap", "container.List of game.Frog"
	kept     bool   // Go code keeps its geometry: so a layout has it
	// check refuses bytes that no play could have left. They are an image of the tenant's bytes, at
	// the same residue of a line; an offset in its error counts from their first one.
	check  func(image []byte) error
	values []values // of Go types, in its bytes
	// live says of an image that check passed whether [from, to) lies within one block that somebody
	// has. nil: no arena.Ptr or arena.Slice may lead into the tenant.
	live func(image []byte, from, to uint64) bool
}

// values are so many values of one type.
type values struct {
	at, count, stride uint64 // from the state's first byte
	of                reflect.Type
	what              string // "keys", "values"; "" of what no layout has
}
