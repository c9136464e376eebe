package cache

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

// noCopy makes go vet refuse copies of a cache.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

var octets = scope.Plain[byte]()

func misuse(text string, args ...any) *scope.Misuse {
	return &scope.Misuse{Text: fmt.Sprintf(text, args...)}
}

// life reports whether a scope is alive. Afterwards the cache's bytes have a new owner.
type life struct {
	record *arena_c.Record
	gen    uint64
	scope  scope.Scope
}

// lifeOf returns the life of s, which must be open.
func lifeOf(s scope.Scope) life {
	header, gen := s.C()
	h := (*arena_c.Scopes)(header)
	return life{h.Record(h.Find(gen)), gen, s}
}

func (l *life) alive() bool { return l.record.Gen == l.gen }

// closed is the panic of a use after the scope has closed.
type closed struct {
	life life
	what string
}

// Error names the operation and the scope's end.
func (c closed) Error() string {
	return "scope: BUG: " + c.what + " in " + strings.TrimPrefix(c.Unwrap().Error(), "scope: BUG: use of ")
}

// Unwrap returns a *scope.Misuse, so that errors.Is finds scope.ErrClosed.
func (c closed) Unwrap() error { return scope.WasClosed(c.life.scope) }
