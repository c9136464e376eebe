// Package lifetime has the checks of upfront-vet, [Analyzers], each in a file of its name:
//
//	multichecker.Main(lifetime.Analyzers...)
//
// The check fused follows float products, by products.go. All other checks but plain read the
// results of one analysis of each function and its literals:
//
//   - flow.go and origin.go have the possible values of variables: a points-to analysis on SSA that
//     distinguishes fields and ignores the order of instructions.
//   - api.go lists the effects of upfront's functions; calls.go and summary.go have those of
//     others.
//   - ends.go finds the ends of scopes, along the paths through a function.
//   - sinks.go finds the places to which a function passes values.
//
// A value may be memory of a scope, a scope, or the value at a path from a parameter. So a
// function's summary lists its effects on its parameters. Importing packages read the summary as a
// fact.
package lifetime

import "golang.org/x/tools/go/analysis"

// Analyzers are the checks.
var Analyzers = []*analysis.Analyzer{
	plainTypes,
	check("escape", `reports memory that is kept beyond the end of its scope

A scope that a function opens and closes ends when the function returns, at the latest. So does the
scope that Do passes to a function; a scope of Temp ends with the scope around it. Memory of these
scopes must not be returned, kept in a global, in a captured variable or in a value reached through
a parameter, sent to a channel, or left to a goroutine without waiting for it.

A copy may go there, and so may types that detect a closed scope at run time: a Scope, a Ref, a
handle, a pool, a container, a Text. An error is never reported.`),
	check("afterclose", `reports memory that is used after its scope closed

The scope was closed, by Close or by a function that closes it, on all paths that lead to the use.`),
	check("unclosed", `reports scopes that are left open on a path

A function that closes a scope on one path must close it on each path. A function that keeps no
scope must close the scopes that it opens. A scope that is returned, kept or handed on belongs to
another function. A function that returns an error may leave open a scope that it opened inside
another scope: the Do or the load around it closes both. Tests may leave scopes open.`),
	check("mapkey", `reports strings of a scope that become keys of a map

A Go map that outlives the scope compares bytes that belong to another object by then. A string that
is only looked up is no key.`),
	check("append", `reports the built-in append to memory of a budget that has no room left

The result is then on the Go heap. Slices of Slice, Bytes, Clone and Done have no spare capacity; a
slice of SliceCap has the capacity of its argument.`),
	fused,
}
