package cache

import (
	"encoding/binary"
	"fmt"
	"math/bits"
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

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hashBytes is wyhash (Wang Yi, in the public domain) with the seed in place of its secrets, as
// package container has it.
func hashBytes(seed uint64, key []byte) uint64 {
	var a, b uint64
	n, h, second := len(key), seed, seed*0x9e3779b97f4a7c15
	switch {
	case n == 0:
	case n < 4:
		a = uint64(key[0]) | uint64(key[n>>1])<<8 | uint64(key[n-1])<<16
	case n < 8:
		a, b = uint64(binary.LittleEndian.Uint32(key)), uint64(binary.LittleEndian.Uint32(key[n-4:]))
	default:
		for rest := key; len(rest) > 16; rest = rest[16:] {
			h = mix(binary.LittleEndian.Uint64(rest)^second, binary.LittleEndian.Uint64(rest[8:])^h)
		}
		tail := key[max(n-16, 0):]
		a, b = binary.LittleEndian.Uint64(tail), binary.LittleEndian.Uint64(tail[len(tail)-8:])
	}
	return mix(0x1d8e4e27c47d124f^uint64(n), mix(a^second, b^h))
}
