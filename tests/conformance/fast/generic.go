//go:build go1.27

package fast

import "github.com/upfront-mem/upfront/scope"

// Method is scope.Scope.New in a loop.
func Method(s scope.Scope, n int) (sum uint64) {
	for range n {
		sum += s.New[Frog]().ID
	}
	return sum
}
