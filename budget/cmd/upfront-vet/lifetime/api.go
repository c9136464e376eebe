package lifetime

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/upfront-mem/upfront/arena/plain"
)

// upfront is the module of the functions and types in the tables.
const upfront = "github.com/upfront-mem/upfront/"

// does is the effect of a call on memory, and the argument that it concerns. A method's receiver is
// argument 0.
type does struct {
	what verb
	arg  int
}

type verb int

const (
	nothing verb = iota
	opens        // a scope in, or on, the argument
	lends        // a scope for temporaries of the argument
	gives        // memory of the argument's scope
	holds        // a value that detects the scope's end: a pool, a container, a Text
	same         // the argument, or a pointer into it
	calls        // its last argument, with a scope that ends when the argument returns
	loads        // its last argument, with a scope that stays open
	fills        // memory of the argument's scope, passed to the function that is the last argument
	closes       // the argument
)

// results are the paths from the argument to the first result.
var results = map[verb]string{
	opens: opened, lends: temporary, gives: allocated, holds: held, same: "", fills: allocated,
}

// summary returns the summary of a function with an effect.
func (d does) summary(fn *ssa.Function) *summary {
	if d.what == closes {
		return &summary{Closes: []place{{d.arg, ""}}}
	}
	path, ok := results[d.what]
	if !ok {
		return nil
	}
	return &summary{Moves: []move{{place{d.arg, path}, asResult, first(fn.Signature.Results().Len() > 1)}}}
}

// table has the functions of upfront whose effect can't be read from their source, mostly because
// they compute addresses. A method has the name of the type that declares it.
var table = effects(map[does]string{
	{opens, 0}: "scope: Scope.Open Scratch.Open",
	{lends, 0}: "scope: Scope.Temp",
	{gives, 0}: `
		scope: Scope.AllocUnzeroed Scope.AllocUnzeroedAs Scope.TryAllocUnzeroed
			Scope.Bytes Scope.BytesUnzeroed Scope.New Scope.Slice
			Text.Bytes Text.String Builder.Done pool.Get pool.At Pool.GetUnzeroed
			HandlePool.Get HandlePool.At SharedPool.Get Sprintf ReadFile ReadAt
		scope/cache: Of.Get Of.At Of.Add Of.GetOrLoad
		scope/container: List.At List.Slice Deque.At Map.Get StringMap.Get StringMap.GetBytes`,
	{gives, 1}: `
		scope: Maker.New Maker.TryNew Maker.Slice Maker.TrySlice Maker.SliceCap Maker.SliceAligned
			Maker.Clone Maker.Append ObjectMaker.New ObjectMaker.TryNew ObjectMaker.Slice List.Slice`,
	{holds, 0}: `
		scope: Scope.Text Scope.Pool List.All pool.All HandlePool.All
		scope/cache: New NewObjects
		scope/container: NewList NewDeque NewMap NewStringMap List.All Deque.All Map.All StringMap.All`,
	{holds, 1}: `
		scope: Maker.Build Maker.List Maker.Pool Maker.HandlePool Maker.SharedPool ObjectMaker.Pool
		scope/flow: Host.Load Host.NewRunner`,
	{same, 0}: `
		scope: Addr.Get Scratches.Scratch
		scope/container: NewListOn NewMapOn NewStringMapOn
		budget: Budget.Scratches
		arena: Ptr.Get Slice.Get String.Get NewString
			NewLinear NewStack NewRing NewFrame NewHeap NewBuddy NewBlockPool
			BlockPool.Get BlockPool.GetUnzeroed BlockPool.At
			Heap.Alloc Heap.Realloc Heap.Shared Buddy.Alloc Buddy.Realloc Buddy.Shared
			Shared.Alloc Shared.Realloc Linear.Alloc LinearFar.Alloc
			Stack.Alloc StackFar.Alloc Ring.Alloc Ring.Oldest Ring.Overwrite Frame.Alloc`,
	{same, 1}: `
		scope: AddrOf
		arena: PtrTo SliceOf StringOf HeapMaker.New HeapMaker.Slice`,
	{fills, 1}:  "scope: Maker.Make ObjectMaker.Make",
	{calls, 0}:  "scope: Scope.Do Scratch.Do",
	{loads, 2}:  "budget: Load",
	{closes, 0}: "scope: Scope.Close",
})

// passing has the functions of the standard library whose first result may be their first argument,
// or point into it.
var passing = effects(map[does]string{{same, 0}: `
	strings: Trim TrimFunc TrimLeft TrimLeftFunc TrimPrefix TrimRight TrimRightFunc TrimSpace TrimSuffix
		Cut CutPrefix CutSuffix Fields FieldsFunc Split SplitN SplitAfter SplitAfterN
	bytes: Trim TrimFunc TrimLeft TrimLeftFunc TrimPrefix TrimRight TrimRightFunc TrimSpace TrimSuffix
		Cut CutPrefix CutSuffix Fields FieldsFunc Split SplitN SplitAfter SplitAfterN
	slices: Clip Grow Delete DeleteFunc Compact CompactFunc Insert Replace
	strconv: AppendInt AppendUint AppendFloat AppendBool AppendQuote
	fmt: Append Appendf Appendln`,
})

// effects returns the effects by name. In a text, a package stands before its names.
func effects(texts map[does]string) map[string]does {
	m := map[string]does{}
	for d, text := range texts {
		for name := range names(text) {
			m[name] = d
		}
	}
	return m
}

// names returns the names in a text, as nameOf does.
func names(text string) map[string]bool {
	m, pkg := map[string]bool{}, ""
	for word := range strings.FieldsSeq(text) {
		if name, ok := strings.CutSuffix(word, ":"); ok {
			pkg = name
		} else {
			m[pkg+"."+word] = true
		}
	}
	return m
}

// spare has the functions that return a list with spare capacity.
var spare = names("scope: Maker.SliceCap Maker.Append")

// declaring has the functions that declare a type argument for an arena.
var declaring = names(`
	scope: Plain Object Scope.New Scope.Slice Scope.Pool
	arena: HeapOf NewBlockPool`)

// guarded has the types that detect a closed scope, or belong to no scope. A value of such a type
// may outlive the scope.
var guarded = names(`
	scope: Scope Scratch Scratches Ref Owned Pool HandlePool ObjectPool SharedPool pool
		Text Builder List Maker ObjectMaker
	scope/container: List Deque Map StringMap
	budget: Loaded Lease Region Budget
	arena: Handle`)

// offsets has the types of plain data that refers to memory.
var offsets = names(`
	scope: Addr
	arena: Ptr Slice String`)

// looksUp has the functions of upfront that look up an address without access to its memory, by the
// names that they have in all types.
var looksUp = nameSet("Put Index Free SizeOf RefTo AddrOf")

// nameOf returns "scope.Maker.New" for a function of upfront, "strings.Trim" for one of another
// package: the package's path from the module's root, the receiver, the name.
func nameOf(fn *ssa.Function) string {
	object, _ := fn.Object().(*types.Func)
	return nameOfFunc(object)
}

func nameOfFunc(fn *types.Func) string {
	if fn == nil || fn.Pkg() == nil {
		return ""
	}
	name := fn.Name()
	if of := receiver(fn); of != nil {
		name = of.Obj().Name() + "." + name
	}
	return strings.TrimPrefix(fn.Pkg().Path(), upfront) + "." + name
}

// receiver returns the type of a method's receiver, without a pointer. It returns nil for other
// functions, and for methods of an interface without a name.
func receiver(fn *types.Func) *types.Named {
	r := fn.Signature().Recv()
	if r == nil {
		return nil
	}
	t := types.Unalias(r.Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, _ := t.(*types.Named)
	return named
}

// doing returns the effect of a function, by the tables.
func doing(fn *ssa.Function) does {
	if fn == nil {
		return does{}
	}
	if strings.HasPrefix(pathOf(fn), upfront) {
		return table[nameOf(fn)]
	}
	return passing[nameOf(fn)]
}

func pathOf(fn *ssa.Function) string {
	if object := fn.Object(); object != nil && object.Pkg() != nil {
		return object.Pkg().Path()
	}
	return ""
}

// named returns the name of a type of upfront, as "scope.Addr", or "".
func named(t types.Type) string {
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil {
		return ""
	}
	rest, ok := strings.CutPrefix(n.Obj().Pkg().Path(), upfront)
	if !ok {
		return ""
	}
	return rest + "." + n.Obj().Name()
}

func isScope(t types.Type) bool { return named(t) == "scope.Scope" }

var errorType = types.Universe.Lookup("error").Type()

// carries reports whether a value of a type can hold memory, or a scope or pool that returns it. An
// error never does.
func (p *pkg) carries(t types.Type) (found bool) {
	if found, known := p.carrying[t]; known {
		return found
	}
	plain.Walk(read{t}, func(part plain.Part) (into bool) {
		t := types.Unalias(part.Type.(read).Type)
		name := named(t)
		_, unknown := t.(*types.TypeParam)
		found = found || guarded[name] || offsets[name] || unknown || part.IsPointer() && !types.Identical(t, errorType)
		return !found
	})
	p.carrying[t] = found
	return found
}
