package scope

import (
	"io"

	"github.com/upfront-mem/upfront/scope/stack"
)

// Own passes c to s: when s closes, s closes c, in order with the finalizers. Own returns the Owned
// that identifies c. If s refuses, or the table of limits.owned values is full, Own closes c at
// once and unwinds, so c never stays open. Cost: 16 bytes of the arena and an entry of the table;
// no Go allocation.
func (s Scope) Own(c io.Closer) Owned { return Owned(stack.Own(s.its(), s.gen, c)) }

// Defer passes fn to s: when s closes, s runs fn, in order with the finalizers. Defer returns the
// Owned that identifies fn. If s refuses, or the table of limits.owned values is full, Defer runs
// fn at once and unwinds. Cost: as [Scope.Own], and Go's allocation of fn if fn captures variables.
func (s Scope) Defer(fn func()) Owned { return Owned(stack.Defer(s.its(), s.gen, fn)) }

// Keep keeps v reachable until s closes or [Owned.Cancel], so that the garbage collector doesn't
// free it. It is for a Go value to which only C refers, or only a number in an arena. [Owned.Value]
// of the result returns v. Keep unwinds where [Scope.Own] does, and costs as much. If v isn't a
// pointer, Go's conversion to an interface is added.
func (s Scope) Keep(v any) Owned { return Owned(stack.Keep(s.its(), s.gen, v)) }

// Owned identifies a Go value held by a scope: one that the scope closes (Own), calls (Defer) or
// keeps alive (Keep). An Owned is plain data of 16 bytes. An object in an arena may hold an Owned,
// and so refer to a Go value. An Owned is valid in its process, until the scope closes, or until
// [Owned.CloseNow] or [Owned.Cancel]. The zero Owned identifies no value.
type Owned stack.Owned

// Cancel makes the scope forget the value that o identifies, so that the value isn't closed or run.
// Cancel reports whether the scope still owned the value. The value's entry in the table is free at
// once. The value's 16 bytes of the arena are free when the scope closes.
func (o Owned) Cancel() bool { return stack.Owned(o).Cancel() }

// CloseNow closes or runs the value that o identifies, before its scope closes, and returns the
// error. A value of Keep is only released to the garbage collector. If the value was closed, run or
// cancelled before, or o is zero, CloseNow does nothing and returns a [Misuse].
func (o Owned) CloseNow() error { return stack.Owned(o).CloseNow() }

// Value returns the value that was passed to Keep or Own. It returns nil once the scope has
// released the value. The scope releases a closer when the closer's Close begins.
func (o Owned) Value() any { return stack.Owned(o).Value() }
