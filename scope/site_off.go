//go:build !memdebug && !memtrace

package scope

// Site is for package budget: where something began that must end, a scope, a held value or a loan. Only memdebug and
// memtrace builds keep it; in others it has no size, and its methods do nothing. The zero Site is nowhere.
type Site struct{}

// Note keeps the calls that lead here: in memdebug and memtrace builds.
func (*Site) Note() {}

// Tell is a line with what happened there, and a line for each call: in memdebug and memtrace builds.
func (*Site) Tell(what string) string { return "" }
