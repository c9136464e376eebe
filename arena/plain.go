package arena

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"
)

// held is the counterpart of what must stay a Go value.
const held = "scope.Owned, which Scope.Keep gives"

// counterparts are what to use in place of what holds Go pointers: of types by their names, of others by their kinds. What
// isn't here is held.
var counterparts = map[string]string{
	"string":         "arena.String, or arena.Inline for a short text",
	"slice":          "arena.Slice",
	"ptr":            "arena.Ptr, scope.Ref, or scope.Addr where what it points to lives longer",
	"unsafe.Pointer": "arena.Ptr, or uintptr for what only C looks at",
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

// CheckPlain says whether values of t may live in a block: nil, or an error with a line for each field, at any depth, that
// holds a Go pointer, and its counterpart. Types of the standard library and of this one are named as a whole: what is
// inside them is not the caller's to change. The collector does not look into a block, so what only a block points to would
// be lost.
//
// It walks the type, which costs a hundred allocations and more. Check a type once, where it is declared.
func CheckPlain(t reflect.Type) error {
	name := t.Name()
	if name == "" {
		name = t.String()
	}
	var lines []string
	goPointers(t, name, func(where string, found reflect.Type) {
		lines = append(lines, fmt.Sprintf("%s (%s) holds a Go pointer; use %s", where, found, counterpart(found)))
	})
	if lines == nil {
		return nil
	}
	return errors.New(strings.Join(lines, "\n"))
}

// goPointers tells of each part of t that the collector would have to follow.
func goPointers(t reflect.Type, name string, tell func(where string, found reflect.Type)) {
	if isSealed(t) {
		whole, told := tell, false
		tell = func(string, reflect.Type) {
			if !told {
				whole(name, t)
			}
			told = true
		}
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			goPointers(f.Type, name+"."+f.Name, tell)
		}
	case reflect.Array:
		if t.Len() != 0 {
			goPointers(t.Elem(), name+"[0]", tell)
		}
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64, reflect.Complex64,
		reflect.Complex128:
	default:
		tell(name, t)
	}
}

// counterpart is what to use instead of a type.
func counterpart(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	if c := counterparts[t.PkgPath()+"."+name]; c != "" {
		return c
	}
	if t.Kind() == reflect.Pointer && isSealed(t.Elem()) { // it has a life of its own
		return held
	}
	c := cmp.Or(counterparts[t.Kind().String()], held)
	if t.Kind() == reflect.Slice && (t.Elem().Kind() == reflect.Pointer || t.Elem().Kind() == reflect.String) {
		c += " of " + counterpart(t.Elem())
	}
	return c
}

// isSealed says whether t is a type with a name of the standard library, or of this one.
func isSealed(t reflect.Type) bool {
	if t.Name() == "" || t.PkgPath() == "" {
		return false
	}
	here := reflect.TypeFor[Base]().PkgPath()
	if rest, ours := strings.CutPrefix(t.PkgPath(), path.Dir(here)+"/"); ours {
		return rest == "arena" || rest == "arena_c" || rest == "scope" || rest == "scope/container" || rest == "budget"
	}
	return isStandard(t.PkgPath())
}

// isStandard says whether a package is one of Go's. That its path has no dot says nothing: a user's module may have none.
func isStandard(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	switch first {
	case "archive", "bufio", "bytes", "cmp", "compress", "container", "context", "crypto", "database", "debug", "embed", "encoding",
		"errors", "expvar", "flag", "fmt", "go", "hash", "html", "image", "index", "internal", "io", "iter", "log", "maps", "math",
		"mime", "net", "os", "path", "plugin", "reflect", "regexp", "runtime", "slices", "sort", "strconv", "strings", "structs",
		"sync", "syscall", "testing", "text", "time", "unicode", "unique", "unsafe", "uuid", "vendor", "weak":
		return true
	}
	return false
}
