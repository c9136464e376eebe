package scope

import "github.com/upfront-mem/upfront/scope/stack"

// StackOf returns the arena of a scope.
func StackOf(s Scope) *stack.Stack { return stack.Of(s.h) }
