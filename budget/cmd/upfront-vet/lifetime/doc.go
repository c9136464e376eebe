// Package lifetime has the checks of upfront-vet. Each stands in a file of its name. All but plain read one walk, whose parts
// are: flow.go, what a value may be; api.go, what upfront's functions do; calls.go and summary.go, what others do; ends.go,
// where scopes end; sinks.go, where values go.
//
// The walk goes through a function and the literals in it. It is a points-to analysis on SSA that knows fields from each
// other and doesn't follow the order of instructions; only where a scope is closed is followed by paths. What a value may be
// is memory of a scope, or a scope, or what lies at a path from a parameter: so what is known of a function is what it does
// with its parameters, and a fact tells packages above.
package lifetime

import "golang.org/x/tools/go/analysis"

// Analyzers are the checks.
var Analyzers = []*analysis.Analyzer{
	plainTypes,
	check("escape", `reports memory that is kept beyond the end of its scope

A scope that a function opens and closes ends when it returns, at the latest; so does that which Do calls a function with,
and what Temp gives ends with the scope around. Their memory may not be returned, kept in a global, in a captured variable
or in what a parameter leads to, sent to a channel, or left to a goroutine that nobody waits for.

A copy may, and so may what knows that its scope has closed: a Scope, a Ref, a handle, a pool, a container, a Text. An
error is never reported.`),
	check("afterclose", `reports memory that is used after its scope closed

On all paths to the use the scope was closed before, by Close or by a function that closes it.`),
	check("unclosed", `reports scopes that are left open on a path

A function that closes the scope that it opened on one path has to on each, and a function that is called many times has to
close what it opens at all. A scope that is returned, kept or handed on is somebody else's. Where a function fails inside a
Do or a load, that closes what was opened in its scope. Tests may leave scopes open.`),
	check("mapkey", `reports strings of a scope that become keys of a map

A Go map that lives longer than the scope compares bytes that are somebody else's by then. A string that is looked up is
none of its keys.`),
	check("append", `reports the built-in append where it leaves the budget for the Go heap

What Slice, Bytes, Clone and Done give has no capacity behind it; SliceCap has as much as it was given.`),
}
