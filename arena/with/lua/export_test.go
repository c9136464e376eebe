package lua

import (
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
)

// NewBy is New with another allocator, a lua_Alloc; the heap exists as well.
func NewBy(s scope.Scope, plan Plan, allocate unsafe.Pointer) (*State, error) {
	return open(s, plan, allocate)
}

func (l *State) Running() bool { return l.word.Load() == running }
