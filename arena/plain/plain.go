// Package plain decides which types may be stored in a block, and names a replacement for each type
// that may not:
//
//	lines := plain.Check(plain.Go(reflect.TypeFor[Frog]()))
//	// frog.Name (string) holds a Go pointer; use arena.String, or arena.Inline for a short text
//
// [Check] and [Walk] take types of package reflect, or any other [Type]: the tool upfront-vet
// passes the types in a program's source.
package plain

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
)

const module = "github.com/upfront-mem/upfront/"

// held is the counterpart of a value that must stay in Go's memory.
const held = "scope.Owned, which Scope.Keep gives"

// counterparts are replacements for types that hold Go pointers: for named types by name, for
// others by kind. Types without an entry have the counterpart held.
var counterparts = map[string]string{
	"string":         "arena.String, or arena.Inline for a short text",
	"slice":          "arena.Slice",
	"ptr":            "arena.Ptr, scope.Ref, or scope.Addr if it points to memory that lives longer",
	"unsafe.Pointer": "arena.Ptr, or uintptr for an address that only C uses",
	"map":            "arena.Slice here, or a container.Map outside of the block",

	"bytes.Buffer":        "scope.Text, and arena.Slice here",
	"math/rand.Rand":      "rand.PCG of math/rand/v2",
	"math/rand/v2.Rand":   "rand.PCG",
	"net.IP":              "[16]byte of To16",
	"net.TCPAddr":         "[16]byte of AddrPort().Addr().As16() and uint16 of Port",
	"net.UDPAddr":         "[16]byte of AddrPort().Addr().As16() and uint16 of Port",
	"net/netip.Addr":      "[16]byte of As16",
	"net/netip.AddrPort":  "[16]byte of Addr().As16() and uint16 of Port()",
	"net/netip.Prefix":    "[16]byte of Addr().As16() and int8 of Bits()",
	"strings.Builder":     "scope.Text, and arena.String here",
	"sync.Map":            "a container.Map and a sync.Mutex outside of the block",
	"sync.Pool":           "scope.Pool",
	"sync/atomic.Pointer": "atomic.Uint64 of an arena.Handle",
	"time.Time":           "int64 of UnixNano",
}

// Check returns a line for each field of t, at any depth, that holds a Go pointer, and names the
// type to use instead. It returns nil if t holds no Go pointer. A line names a type of the standard
// library, or of package arena, scope, container or budget, as a whole.
func Check(t Type) (lines []string) {
	Walk(t, func(p Part) (into bool) {
		into = p.Kind == reflect.Invalid || !isSealed(p.Type)
		if found := p.Type; into && p.IsPointer() || !into && holdsPointer(found) {
			name := p.Path
			if typ := fmt.Sprint(found); typ != name { // a field
				name += " (" + typ + ")"
			}
			lines = append(lines, name+" holds a Go pointer; use "+counterpart(found))
		}
		return into
	})
	return lines
}

// holdsPointer reports whether the collector would have to follow a part of t.
func holdsPointer(t Type) (found bool) {
	Walk(t, func(p Part) (into bool) {
		found = found || p.IsPointer()
		return !found
	})
	return found
}

func counterpart(t Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	if c := counterparts[t.PkgPath()+"."+name]; c != "" {
		return c
	}
	if t.Kind() == reflect.Pointer && isSealed(t.Elem()) { // its target has its own lifetime
		return held
	}
	c := cmp.Or(counterparts[t.Kind().String()], held)
	if t.Kind() == reflect.Slice && (t.Elem().Kind() == reflect.Pointer || t.Elem().Kind() == reflect.String) {
		c += " of " + counterpart(t.Elem())
	}
	return c
}

// isSealed reports whether t is a named type of the standard library or of some packages of this
// module.
func isSealed(t Type) bool {
	if t.Name() == "" || t.PkgPath() == "" {
		return false
	}
	if rest, ours := strings.CutPrefix(t.PkgPath(), module); ours {
		return rest == "arena" || rest == "arena_c" || rest == "scope" || rest == "scope/container" || rest == "budget"
	}
	return IsStandard(t.PkgPath())
}

// IsStandard reports whether the first element of the path is one of Go's standard library. A path
// without a dot is no proof, because the path of a user's module may have none.
func IsStandard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	switch first {
	case "archive", "bufio", "bytes", "cmp", "compress", "container", "context", "crypto",
		"database", "debug", "embed", "encoding", "errors", "expvar", "flag", "fmt", "go", "hash",
		"html", "image", "index", "internal", "io", "iter", "log", "maps", "math", "mime", "net",
		"os", "path", "plugin", "reflect", "regexp", "runtime", "slices", "sort", "strconv",
		"strings", "structs", "sync", "syscall", "testing", "text", "time", "unicode", "unique",
		"unsafe", "uuid", "vendor", "weak":
		return true
	}
	return false
}
