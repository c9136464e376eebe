package arena

import (
	"fmt"
	"path"
	"reflect"
	"strings"
)

// held is the counterpart of what must stay a Go value.
const held = "; use scope.Owned, which Scope.Keep gives"

// counterparts of kinds that are Go pointers, for the message.
var counterparts = map[reflect.Kind]string{
	reflect.String:        "; use arena.String",
	reflect.Slice:         "; use arena.Slice",
	reflect.Pointer:       "; use arena.Ptr",
	reflect.UnsafePointer: "; use arena.Ptr",
	reflect.Map:           "; use arena.Slice here, or a container.Map outside of the block",
	reflect.Interface:     held,
	reflect.Func:          held,
	reflect.Chan:          held,
}

// namedCounterparts are those of types of the standard library that hold Go pointers inside. The others' is held.
var namedCounterparts = map[string]string{
	"sync.Pool":           "; use scope.Pool",
	"sync.Cond":           held,
	"sync.Map":            "; use a container.Map and a sync.Mutex outside of the block",
	"sync/atomic.Pointer": "; use atomic.Uint64 of an arena.Handle",
	"sync/atomic.Value":   held,
	"time.Time":           "; use int64 of UnixNano",
	"net/netip.Addr":      "; use [16]byte of As16",
	"math/rand.Rand":      "; use rand.PCG of math/rand/v2",
	"math/rand/v2.Rand":   "; use rand.PCG",
	"strings.Builder":     "; use scope.Text, and arena.String here",
	"bytes.Buffer":        "; use scope.Text, and arena.Slice here",
}

// CheckPlain says whether values of t may live in a block: nil, or an error that names the first field, at any depth,
// that holds a Go pointer, and its counterpart. Types of the standard library and of this one are named as a whole: what
// is inside them is not the caller's to change. The collector does not look into a block, so what only a block points to
// would be lost.
//
// It walks the type, which costs a hundred allocations and more. Check a type once, where it is declared.
func CheckPlain(t reflect.Type) error {
	name := t.Name()
	if name == "" {
		name = t.String()
	}
	if where, found := goPointer(t, name); found != nil {
		return fmt.Errorf("%s (%s) holds a Go pointer%s", where, found, counterpart(found))
	}
	return nil
}

// goPointer finds the first part of t that the collector would have to follow.
func goPointer(t reflect.Type, name string) (where string, found reflect.Type) {
	where, found = goPointerIn(t, name)
	if found != nil && isSealed(t) {
		return name, t
	}
	return where, found
}

func goPointerIn(t reflect.Type, name string) (where string, found reflect.Type) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if where, found := goPointer(f.Type, name+"."+f.Name); found != nil {
				return where, found
			}
		}
		return "", nil
	case reflect.Array:
		if t.Len() == 0 {
			return "", nil
		}
		return goPointer(t.Elem(), name+"[0]")
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64, reflect.Complex64,
		reflect.Complex128:
		return "", nil
	}
	return name, t
}

func counterpart(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	if c := namedCounterparts[t.PkgPath()+"."+name]; c != "" {
		return c
	}
	toSealed := t.Kind() == reflect.Pointer && isSealed(t.Elem())
	if c := counterparts[t.Kind()]; c != "" && !toSealed {
		return c
	}
	return held
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
