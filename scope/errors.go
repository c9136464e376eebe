package scope

import "github.com/upfront-mem/upfront/scope/stack"

// ErrFull matches, with errors.Is, every full error: the error of an arena, or of a table of
// planned capacity, that was out of room. A full error is an expected result, not a bug.
var ErrFull = stack.ErrFull

// ErrClosed matches, with errors.Is, a use of a scope, pool or value that is closed.
var ErrClosed = stack.ErrClosed

// FullError is the error of an arena or table that was out of room. It names the arena or table
// and, if there is one, the key of the plan to raise.
type FullError = stack.FullError

// Misuse is the error for a bug of the caller. Most functions panic with an error that is or wraps
// a Misuse (errors.As). A Close that is refused returns a Misuse and changes nothing.
type Misuse = stack.Misuse

// Stats describes an arena. Used, Padding and Objects are the present numbers. Sizes are in bytes.
type Stats = stack.Stats

// Usage is the memory of all scopes of one name, or of a label.
type Usage = stack.Usage
