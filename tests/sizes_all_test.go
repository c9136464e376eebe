//go:build linux && !race && !asan && !checked && !upfront_cgo

package tests

import (
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/tests/step"
)

// unsized has the numbers without a row in [sizes], with the reason: of a package, a type, or a
// parameter.
var unsized = map[string]string{
	"arena: ProxyStats":        "a result",
	"budget/inside":            "a result; budget/view's tests draw torn ones",
	"budget/timeline: Arena":   "a result; budget/view's tests draw torn ones",
	"budget/timeline: Data":    "a result; budget/view's tests draw torn ones",
	"budget: ArenaReport":      "a result; budget's tests suggest plans from torn ones",
	"budget: CHeapReport":      "a result",
	"budget: Cost":             "a result",
	"budget: GoHeap":           "a result",
	"budget: Leaks":            "a result",
	"budget: Outside":          "a result",
	"budget: Report":           "a result",
	"budget: Waits":            "a result",
	"platform: Mapping":        "a result",
	"platform/jsonfile: Value": "a result",
	"scope/flow: Step":         "a result",
	"arena_c":                  "bindings of the C core, whose callers check; tests/c/sizes.c has the C functions",
	"scope/stack":              "for the packages above, which check; their rows reach it",
	"scope: At gen":            "a word from package stack",
	"scope: Scope.Slice n":     "from Go 1.27 on; as Maker.Slice",
	"scope: Scope.Pool n":      "from Go 1.27 on; as Maker.Pool",
}

// TestSizesAreAll finds numbers without a row in [sizes]: parameters of exported functions and
// methods, and exported fields of their arguments.
func TestSizesAreAll(t *testing.T) {
	step.Needs(t, step.Check)
	packages := slices.DeleteFunc(public(), func(name string) bool { return unsized[name] != "" })
	names := sizesIn(t, os.DirFS(".."), module, packages)
	rows := map[string]bool{}
	for _, row := range sizes(t, budgettest.Open(t, sizesPlan)) {
		rows[row.name] = true
	}
	for name := range unsized {
		assert.False(t, rows[name], "%s has a row", name)
		maps.DeleteFunc(names, func(of string, _ bool) bool {
			rest, is := strings.CutPrefix(of, name)
			return is && (rest == "" || rest[0] == '.' || rest[0] == ':')
		})
	}
	assert.Equal(t, slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(rows)))
}

// TestSizesWithoutARow is the control.
func TestSizesWithoutARow(t *testing.T) {
	step.Needs(t, step.Check)
	names := sizesIn(t, fstest.MapFS{
		"go.mod": &fstest.MapFile{Data: []byte("module pond\n")},
		"frog/frog.go": &fstest.MapFile{Data: []byte(`package frog
import "time"
type Frog struct { legs }
type Size uint32
type Options struct { Eggs int; Name string; More *More; Every time.Duration; hidden int }
type More struct { Age Size; Next *More }
type Result struct { Count int }
type Pool[T any] struct{}
type Leaper interface { Leap(far int) }
type legs struct{}
func (legs) Kick(times uint8) {}
func (*Frog) Leap(far int64) int { return 0 }
func (Pool[T]) At(i int) *T { return nil }
func New(o Options, wide float64) (Result, error) { panic(1) }
func Many(list []More, n uintptr) {}
func small(n int) {}`)},
	}, "pond", []string{"frog"})
	want := "Frog.Kick times Frog.Leap far Many n More.Age Options.Eggs Options.Every Pool.At i"
	assert.Equal(t, want, strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(names)), " "), "pond/frog: ", ""))
}

// sizesIn returns the names of the numbers that packages of a module take.
func sizesIn(t *testing.T, tree fs.FS, root string, packages []string) map[string]bool {
	t.Helper()
	s := &surveying{token.NewFileSet(), map[string]*surveyed{}, nil, map[token.Pos]*naming{}}
	s.read(t, tree)
	s.foreign = s.exportData(t)
	found := sizing{root, map[string]bool{}, map[types.Type]bool{}}
	for _, name := range packages {
		p := s.packages[root+"/"+name]
		require.NotNil(t, p, name)
		found.declared(s.check(p))
	}
	return found.names
}

// sizing collects the names of numbers.
type sizing struct {
	root  string
	names map[string]bool
	seen  map[types.Type]bool
}

func (s sizing) declared(p *types.Package) {
	for _, name := range p.Scope().Names() {
		switch object := p.Scope().Lookup(name).(type) {
		case *types.Func:
			if object.Exported() {
				s.signature(p, name, object.Signature())
			}
		case *types.TypeName:
			if !object.Exported() || object.IsAlias() || types.IsInterface(object.Type()) {
				continue
			}
			methods := types.NewMethodSet(types.NewPointer(object.Type()))
			for i := range methods.Len() {
				if m := methods.At(i).Obj().(*types.Func); m.Exported() {
					s.signature(p, name+"."+m.Name(), m.Signature())
				}
			}
		}
	}
}

func (s sizing) signature(p *types.Package, name string, of *types.Signature) {
	for v := range of.Params().Variables() {
		s.value(p, name+" "+v.Name(), v.Type())
	}
}

// value adds a number, or those in the fields of a struct of the module.
func (s sizing) value(p *types.Package, name string, of types.Type) {
	switch t := of.Underlying().(type) {
	case *types.Basic:
		if t.Info()&types.IsInteger != 0 {
			s.names[strings.TrimPrefix(p.Path(), module+"/")+": "+name] = true
		}
	case *types.Slice:
		s.fields(t.Elem())
	case *types.Pointer:
		s.fields(t.Elem())
	case *types.Struct:
		s.fields(of)
	}
}

func (s sizing) fields(of types.Type) {
	named, ok := of.(*types.Named)
	if !ok || s.seen[of] || named.Obj().Pkg() == nil || !strings.HasPrefix(named.Obj().Pkg().Path(), s.root) {
		return
	}
	s.seen[of] = true
	if t, ok := of.Underlying().(*types.Struct); ok {
		for field := range t.Fields() {
			if field.Exported() {
				s.value(named.Obj().Pkg(), named.Obj().Name()+"."+field.Name(), field.Type())
			}
		}
	}
}
