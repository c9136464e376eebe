package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/version"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// zeros has the zero value of each exported type that a program gets from the library and that has
// methods or type parameters. TestZerosAreAll finds a missing one.
var zeros = map[string]any{
	"arena.Base":          arena.Base{},
	"arena.BlockPool":     arena.BlockPool[frog]{},
	"arena.Buddy":         arena.Buddy{},
	"arena.Frame":         arena.Frame{},
	"arena.FrameHandle":   arena.FrameHandle{},
	"arena.Handle":        arena.Handle[frog](0),
	"arena.Heap":          arena.Heap{},
	"arena.HeapMaker":     arena.HeapMaker[frog]{},
	"arena.Inline":        &arena.Inline[[16]byte]{},
	"arena.Linear":        arena.Linear{},
	"arena.LinearFar":     arena.LinearFar{},
	"arena.Proxy":         &arena.Proxy{},
	"arena.Ptr":           arena.Ptr[frog]{},
	"arena.Ring":          arena.Ring{},
	"arena.Shared":        arena.Shared{},
	"arena.Slice":         arena.Slice[frog]{},
	"arena.Stack":         arena.Stack{},
	"arena.StackFar":      arena.StackFar{},
	"arena.String":        arena.String{},
	"budget.Quota":        &budget.Quota{},
	"budget.Reservation":  &budget.Reservation{},
	"budget.Lease":        budget.Lease{},
	"budget.Loaded":       budget.Loaded[frog]{},
	"budget.Reader":       &budget.Reader{},
	"budget.Region":       &budget.Region{},
	"budget.Slots":        &budget.Slots{},
	"container.Deque":     &container.Deque[frog]{},
	"container.List":      &container.List[frog]{},
	"container.Map":       &container.Map[int, frog]{},
	"container.StringMap": &container.StringMap[frog]{},
	"save.View":           save.View{},
	"scope.Addr":          scope.Addr[frog]{},
	"scope.Builder":       &scope.Builder[frog]{},
	"scope.HandlePool":    scope.HandlePool[frog]{},
	"scope.List":          &scope.List[frog]{},
	"scope.Maker":         scope.Maker[frog]{},
	"scope.ObjectMaker":   scope.ObjectMaker[frog]{},
	"scope.ObjectPool":    scope.ObjectPool[frog]{},
	"scope.Owned":         scope.Owned{},
	"scope.Pool":          scope.Pool[frog]{},
	"scope.Ref":           scope.Ref[frog]{},
	"scope.Scope":         scope.Scope{},
	"scope.Scratch":       scope.Scratch{},
	"scope.Scratches":     scope.Scratches{},
	"scope.SharedPool":    &scope.SharedPool[frog]{},
	"scope.Text":          &scope.Text{},
}

type frog struct{ X, Y float64 }

// bare are the fast paths. They dereference nil, because a check of the zero value would slow each
// call.
var bare = []string{
	"arena.BlockPool.Get", "arena.BlockPool.GetUnzeroed", "arena.BlockPool.Put", "budget.Reader.Pin",
	"container.Deque.PushBack", "container.Deque.PushFront", "container.List.Push", "scope.Builder.Push",
	"scope.Builder.TryPush", "scope.List.Push", "scope.List.TryPush", "scope.ObjectPool.Get", "scope.Pool.Get",
	"scope.Pool.GetUnzeroed", "scope.Pool.Put", "scope.Scope.AllocUnzeroed", "scope.Scope.AllocUnzeroedAs",
	"scope.Scope.TryAllocUnzeroed", "declared.Append", "declared.New", "declared.TryNew"}

// onlyRead are types without a refusal: results, errors, and types that are useful only by a
// pointer from their constructor.
var onlyRead = []string{
	"budget.ArenaReport", "budget.Budget", "budget.Cost", "budget.Expected", "budget.Figure", "budget.Part",
	"budget.Plan", "budget.Report", "budget.Trimmed", "budget.Warning", "inside.Contents", "timeline.Data",
	"timeline.Mark", "timeline.Timeline", "save.Checkpoint", "save.Checkpoints", "save.Conversion", "save.Difference",
	"save.Ring", "save.State",
}

// TestZerosAreAll finds types in the source that have methods or type parameters but no zero value
// here.
func TestZerosAreAll(t *testing.T) {
	all := map[string]bool{}
	for _, dir := range []string{"arena", "scope", "scope/container", "budget", "budget/inside", "budget/save",
		"budget/timeline"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			ast.Inspect(parse(t, token.NewFileSet(), file, nil, parser.SkipObjectResolution), func(n ast.Node) bool {
				name := ""
				switch n := n.(type) {
				case *ast.TypeSpec:
					if _, isInterface := n.Type.(*ast.InterfaceType); n.TypeParams != nil && !isInterface {
						name = n.Name.Name
					}
				case *ast.FuncDecl:
					if n.Recv != nil && n.Name.IsExported() {
						name = base(n.Recv.List[0].Type)
					}
				}
				if ast.IsExported(name) {
					all[path.Base(dir)+"."+name] = true
				}
				return true
			})
		}
	}
	for _, name := range onlyRead {
		assert.True(t, all[name], name)
		delete(all, name)
	}
	assert.Equal(t, slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(zeros)))
}

// TestZeroValues calls every method of each zero value, with a valid scope, heap and constructor.
// Only the fast paths dereference nil, and the zero value of a maker allocates nothing.
func TestZeroValues(t *testing.T) {
	b := budgettest.Open(t, zeroPlan)
	for name, zero := range zeros {
		v := reflect.ValueOf(zero)
		for i := range v.NumMethod() {
			name := name + "." + v.Type().Method(i).Name
			takes, gives := zeroCall(t, b.Scratch(0, 0).Open("zero"), name, v.Method(i), false)
			if takes { // a maker's method
				assert.Regexp(t, "never declared|a zero ", gives, name)
			}
		}
	}
	for _, declared := range []any{scope.Plain[frog](), scope.Object(func(*frog) error { return nil })} {
		v := reflect.ValueOf(declared)
		for i := range v.NumMethod() {
			_, gives := zeroCall(t, b.Scratch(0, 0).Open("zero"), "declared."+v.Type().Method(i).Name,
				v.Method(i), true)
			assert.NotEmpty(t, gives)
		}
	}
	for i, fn := range []any{
		scope.RefTo[frog], scope.Label, scope.ReadFile, scope.ReadAt, scope.Sprintf, container.NewList[frog],
		container.NewDeque[frog], container.NewMap[int, frog], container.NewStringMap[frog], budget.Load[frog],
	} {
		_, gives := zeroCall(t, b.Scratch(0, 0).Open("zero"), "function", reflect.ValueOf(fn), true)
		assert.Contains(t, gives, "a zero ", i)
	}
}

// TestMakersAreOfOneType: a maker can't be converted to the maker of another type.
func TestMakersAreOfOneType(t *testing.T) {
	for plain, pointing := range map[reflect.Type]reflect.Type{
		reflect.TypeFor[scope.Maker[uint64]]():       reflect.TypeFor[scope.Maker[*frog]](),
		reflect.TypeFor[scope.ObjectMaker[uint64]](): reflect.TypeFor[scope.ObjectMaker[*frog]](),
		reflect.TypeFor[arena.HeapMaker[uint64]]():   reflect.TypeFor[arena.HeapMaker[*frog]](),
	} {
		assert.False(t, plain.ConvertibleTo(pointing), "%v to %v", plain, pointing)
	}
}

var zeroPlan = budget.Plan{Name: "zeros", Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}}

// zeroCall calls a function. It reports whether the function takes an allocator, and its panic or
// the error that the scope remembers. zero: the function is called with the zero scope.
func zeroCall(t *testing.T, s scope.Scope, name string, fn reflect.Value, zero bool) (takes bool, gives string) {
	t.Helper()
	heap, err := arena.NewHeap(arena.NewBlock(4096, 64), 0)
	require.NoError(t, err)
	free := s.Free()
	defer func() {
		if v := recover(); v != nil {
			_, isNil := v.(runtime.Error)
			assert.False(t, isNil && !slices.Contains(bare, name), "%s: %v", name, v)
			gives, _ = v.(string)
			if err, ok := v.(error); ok {
				gives = err.Error()
			}
			assert.True(t, isNil || strings.Contains(gives, ": BUG: "), "%s: %s", name, gives)
		} else {
			assert.False(t, slices.Contains(bare, name) && !arena_c.Crossing, "%s bears its zero value", name)
		}
		assert.Equal(t, free, s.Free(), "%s took bytes", name)
		assert.Zero(t, heap.Stats().Peak, "%s took bytes", name)
		if err := s.Close(); err != nil {
			gives += err.Error()
		}
	}()
	var args []reflect.Value
	for i := range fn.Type().NumIn() {
		in := fn.Type().In(i)
		arg := reflect.Zero(in)
		switch {
		case fn.Type().IsVariadic() && i == fn.Type().NumIn()-1:
			continue
		case in == reflect.TypeFor[scope.Scope]():
			takes = true
			if !zero {
				arg = reflect.ValueOf(s)
			}
		case in == reflect.TypeFor[arena.Reallocator]():
			takes = true
			arg = reflect.ValueOf(heap)
		case in == reflect.TypeFor[scope.Maker[int]]():
			arg = reflect.ValueOf(scope.Plain[int]())
		case in == reflect.TypeFor[scope.Maker[frog]]():
			arg = reflect.ValueOf(scope.Plain[frog]())
		case in.Kind() == reflect.Func:
			arg = reflect.MakeFunc(in, func([]reflect.Value) (results []reflect.Value) {
				for i := range in.NumOut() {
					results = append(results, reflect.Zero(in.Out(i)))
				}
				return results
			})
		case in == reflect.TypeFor[string](): // an existing file
			arg = reflect.ValueOf("zero_test.go")
		case in == reflect.TypeFor[uint64](): // a valid align
			arg = reflect.ValueOf(uint64(8))
		}
		args = append(args, arg)
	}
	for _, result := range fn.Call(args) {
		if result.Kind() == reflect.Func {
			for range result.Seq2() {
			}
		}
		if err, ok := result.Interface().(error); ok {
			gives += err.Error()
		}
	}
	return takes, gives
}

// parse parses a file of Go. In a file for a later Go than this, it ignores the parser's error.
func parse(t *testing.T, files *token.FileSet, path string, source any, mode parser.Mode) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(files, path, source, mode)
	if version.Compare(file.GoVersion, runtime.Version()) <= 0 {
		require.NoError(t, err)
	}
	return file
}

// base returns the name of a receiver's or embedded type, without star and parameters.
func base(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return base(of.X)
	case *ast.IndexExpr:
		return base(of.X)
	case *ast.IndexListExpr:
		return base(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}
