// Package lifetime has the checks of upfront-vet.
package lifetime

import "golang.org/x/tools/go/analysis"

// Analyzers are the checks.
var Analyzers = []*analysis.Analyzer{
	plainTypes,
	check("escape", "reports memory that is kept beyond the end of its scope"),
	check("afterclose", "reports memory that is used after its scope closed"),
	check("unclosed", "reports scopes that are left open on a path"),
	check("mapkey", "reports strings of a scope that become keys of a map"),
	check("append", "reports the built-in append where it leaves the budget for the Go heap"),
}
