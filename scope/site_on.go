//go:build memdebug

package scope

import (
	"fmt"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
)

// siteCalls is how many calls a Site keeps: the newest.
const siteCalls = 16

// Site is where something began that must end: a scope, a held value, a loan. Only memdebug builds keep it; in others it
// has no size, and its methods do nothing. The zero Site is nowhere. It is as safe for goroutines as what it lies in.
type Site struct{ calls [siteCalls]uintptr }

// Note keeps the calls that lead here. Cost: a walk up the stack, about a microsecond; no Go allocation.
func (s *Site) Note() {
	kept := runtime.Callers(2, s.calls[:])
	clear(s.calls[kept:])
}

// Tell is a line with what happened there, "opened", and a line for each call, function and file:line, the newest first;
// nothing when the Site is nowhere. The library's own calls before the caller's are left out, and the Go runtime's.
func (s *Site) Tell(what string) string {
	if s.calls[0] == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n\t%s at:", what)
	kept := slices.Index(s.calls[:], 0)
	if kept < 0 {
		kept = siteCalls
	}
	frames := runtime.CallersFrames(slices.Clone(s.calls[:kept])) // it keeps them: s itself would move to the Go heap
	for inside, more := true, true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		of := packageOf(frame.Function)
		if inside = inside && slices.Contains(library, of); inside || of == "runtime" {
			continue
		}
		fmt.Fprintf(&out, "\n\t\t%s %s:%d", frame.Function, frame.File, frame.Line)
	}
	return out.String()
}

// library is the packages that a caller's call goes through.
var library = func() []string {
	own := reflect.TypeFor[Site]().PkgPath()
	return []string{own, path.Join(path.Dir(own), "budget"), path.Join(path.Dir(own), "arena")}
}()

// packageOf is the package of a function by its name: "a.b/c" of "a.b/c.(*Frog).Jump".
func packageOf(function string) string {
	last := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[last:], ".")
	return function[:last] + name
}
