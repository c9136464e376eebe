//go:build memdebug || memtrace

package scope

import "github.com/upfront-mem/upfront/arena_c"

// Site is for package budget: where something began that must end, a scope, a held value or a loan. Only memdebug and
// memtrace builds keep it; in others it has no size, and its methods do nothing. The zero Site is nowhere. It is as
// safe for goroutines as what it lies in.
type Site struct {
	calls uint32
	_     [4]byte // so that what it lies in grows by its size: see SiteBytes
}

// Note keeps the calls that lead here. Cost: a walk up the stack, about a microsecond; no Go allocation where they are known.
func (s *Site) Note() { s.calls = arena_c.Here(1) }

// Tell is a line with what happened there, "opened", and a line for each call, function and file:line, the newest first;
// nothing when the Site is nowhere. The library's own calls before the caller's are left out, and the Go runtime's.
func (s *Site) Tell(what string) string {
	if s.calls == 0 {
		return ""
	}
	return "\n\t" + what + " at:" + arena_c.Indented(s.calls)
}
