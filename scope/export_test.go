package scope

// StackOf is the arena that a scope lies in.
func StackOf(s Scope) *Stack { return stackOf(s.h) }
