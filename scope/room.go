package scope

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// room is what Array, Deque and Map share: a scope, and elements that are taken from it, all at once, when the first is
// needed.
type room[T any] struct {
	_     noCopy
	scope Scope
	items []T    // nil until they are taken
	limit int    // elements that there may be
	extra int    // elements behind them, where Map has its index
	used  int    // elements that there are
	made  uint64 // constructors that had begun when it was made
}

// newRoom refuses what is wrong already. kind is for messages: "an Array".
func newRoom[T any](s Scope, n, extra int, kind string) room[T] {
	if n < 0 {
		panic(&Misuse{fmt.Sprintf("%s of %d elements", kind, n), false})
	}
	if !s.lives() {
		panic(s.misuse(kind + " in"))
	}
	return room[T]{scope: s, limit: n, extra: extra, made: s.constructors()}
}

// take says whether the elements are there, and takes them when they aren't. Who writes calls it first: what says so.
func (r *room[T]) take(what string) bool {
	if !r.scope.lives() {
		panic(r.scope.misuse(what))
	}
	if r.scope.lost(r.made) {
		panic(constructorFailed(what, r.scope))
	}
	if r.items == nil && r.limit > 0 {
		r.scope.refuseFrozen(what)
		r.scope.mayTake(r.made)
		r.items = makeSlice[T](r.scope, r.limit+r.extra, false)
	}
	return r.items != nil
}

// fits says whether there is a place for one element more.
func (r *room[T]) fits(what string) bool { return r.take(what) && r.used < r.limit }

func (r *room[T]) reserve(what string) bool { return r.take(what) || r.limit == 0 }

// Len is the number of elements, 0 when the scope is closed.
func (r *room[T]) Len() int {
	if !r.scope.lives() || r.scope.lost(r.made) {
		return 0
	}
	return r.used
}

// gone tells the race detector of elements that were taken away: who still reads one is reported.
func gone[T any](items []T) {
	var zero T
	arena_c.Dead(unsafe.Pointer(unsafe.SliceData(items)), uintptr(len(items))*unsafe.Sizeof(zero))
}

// Cap is the number of elements that there may be, 0 when the scope is closed.
func (r *room[T]) Cap() int {
	if !r.scope.lives() || r.scope.lost(r.made) {
		return 0
	}
	return r.limit
}
