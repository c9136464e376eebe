package scope

import "github.com/upfront-mem/upfront/arena_c"

// Life says whether a scope is alive: open, be it covered or frozen, or while its finalizers run.
// It is for what keeps bytes of a scope and must not touch them once they are another's, as the
// types of package container do. It is a small value; copy it freely. The zero Life is of no use.
type Life struct {
	record *arena_c.Record
	scope  Scope
}

// Life is the life of s. Ask for it while s is open. Cost: O(scopes opened in s).
func (s Scope) Life() Life { return Life{s.h.Record(s.h.Find(s.gen)), s} }

// Alive says whether the scope is alive. Cost: one comparison, inlined.
func (l Life) Alive() bool { return l.record.Gen == l.scope.gen }

// Misuse is the error to panic with when something is done that needs the scope alive, and it
// isn't: "Push to a List in" is followed by which scope it was.
func (l Life) Misuse(what string) error { return l.scope.misuse(what) }
