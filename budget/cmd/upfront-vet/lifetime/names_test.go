package lifetime

import (
	gobuild "go/build"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/upfront-mem/upfront/tests/step"
)

// TestNames checks that each name in the tables exists. The checks wouldn't follow a function under
// another name.
func TestNames(t *testing.T) {
	step.Needs(t, step.Check)
	controls := []string{"scope.Lost", "scope.Maker.Lost", "scope.ObjectPool.Get"} // sorted
	all := map[string]bool{}
	for _, name := range controls {
		all[name] = true
	}
	for name := range table {
		all[name] = true
	}
	for name := range passing {
		all["std:"+name] = true
	}
	for _, names := range []map[string]bool{spare, declaring, guarded, offsets} {
		maps.Copy(all, names)
	}
	if !slices.Contains(gobuild.Default.ReleaseTags, "go1.27") {
		for _, method := range []string{"New", "Slice", "Pool"} { // they are generic
			delete(all, "scope.Scope."+method)
		}
	}
	var missing []string
	loaded := map[string]*types.Package{}
	for name := range all {
		path, ok := strings.CutPrefix(name, "std:")
		if !ok {
			path = upfront + name
		}
		slash := strings.LastIndex(path, "/") + 1
		before, rest, _ := strings.Cut(path[slash:], ".")
		path = path[:slash] + before
		if loaded[path] == nil {
			mode := packages.NeedName | packages.NeedTypes | packages.NeedSyntax | packages.NeedImports
			list, err := packages.Load(&packages.Config{Mode: mode, Dir: root}, path)
			if err != nil || len(list) != 1 {
				t.Fatal(path, err)
			}
			loaded[path] = list[0].Types
		}
		if !has(loaded[path], rest) {
			missing = append(missing, name)
		}
	}
	if slices.Sort(missing); !slices.Equal(missing, controls) {
		t.Errorf("missing are %v; want the controls %v", missing, controls)
	}
}

// has reports whether a package declares a name, or a type with the method after the dot.
func has(p *types.Package, name string) bool {
	name, method, _ := strings.Cut(name, ".")
	object := p.Scope().Lookup(name)
	if object == nil || method == "" {
		return object != nil
	}
	named, ok := object.Type().(*types.Named)
	if !ok {
		return false
	}
	for m := range named.Methods() {
		if m.Name() == method {
			return true
		}
	}
	return false
}
