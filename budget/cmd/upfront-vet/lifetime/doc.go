// Package lifetime has the checks of upfront-vet, [Analyzers], each in a file of its name:
//
//	multichecker.Main(lifetime.Analyzers...)
//
// The check plain reads declarations, and the check fused follows float products (products.go). All
// other checks read the results of one analysis of each function with its literals:
//
//   - flow.go and calls.go find the possible values of variables, by a points-to analysis on SSA.
//     It distinguishes fields and ignores the order of instructions.
//   - api.go has the tables of upfront's functions and types. summary.go finds the effects of other
//     functions.
//   - ends.go finds the ends of scopes, along the paths through a function.
//   - sinks.go finds the places to which a function passes values.
//
// A value is a path from a root, such as a parameter (origin.go). The last step of the path says
// whether it is memory of a scope, a scope, or an address. A function's summary lists the paths
// from its parameters that it returns, keeps or closes; the effects in the tables have the same
// form. Importing packages read the summary as a fact of package analysis.
package lifetime

import "golang.org/x/tools/go/analysis"

// Analyzers are the checks.
var Analyzers = []*analysis.Analyzer{
	plainTypes,
	check("escape", `reports memory that is kept beyond the end of its scope

A scope that a function opens and closes ends when the function returns, at the latest. So does the
scope that Do passes to a function. A scope of Temp ends with the scope around it. A function must
not return memory of these scopes, send it to a channel, or keep it in a global, in a captured
variable or in a value reached through a parameter. It may pass such memory to a goroutine only if
it waits for the goroutine.

A copy may go there, and so may types that detect a closed scope at run time: a Scope, a Ref, a
handle, a pool, a container, a Text. An error is never reported.`),
	check("afterclose", `reports memory that is used after its scope closed

The scope was closed, by Close or by a function that closes it, on all paths that lead to the use.`),
	check("unclosed", `reports scopes that are left open on a path

A function that closes a scope on one path must close it on each path. A function that keeps no
scope must close the scopes that it opens. A scope that is returned, kept or handed on belongs to
another function. A function that returns an error may leave open a scope that it opened inside
another scope: the Do or the load around it closes both scopes. Tests may leave scopes open.`),
	check("mapkey", `reports strings of a scope that become keys of a map

A Go map that outlives the scope compares bytes that may belong to another object by then. The check
doesn't report strings that are only looked up.`),
	check("append", `reports the built-in append to a budget's slice that has no capacity left

The result is then on the Go heap. Slice, Bytes, Clone and Done return slices without spare
capacity. A slice of SliceCap has the capacity of the argument.`),
	fused,
}
