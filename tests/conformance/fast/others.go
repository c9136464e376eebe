package fast

import "github.com/upfront-mem/upfront/scope"

var (
	frogs   = scope.Plain[Frog]()
	closing = scope.Object(func(*Frog) error { return nil })
)

func store(to **Frog, x *Frog) { *to = x }
