package lifetime

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// upfront is the module of the functions in the table.
const upfront = "github.com/upfront-mem/upfront/"

// does is the effect of a call on memory, and the argument that it concerns. A method's receiver is
// argument 0.
type does struct {
	what   verb
	arg    int
	result int // the index of the result concerned; -1: the call has one result
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

// table lists the functions of upfront that the checks follow. The result of another function of
// upfront counts as no memory of a scope.
var table = map[string]does{
	"scope.Scope.Open":               {opens, 0, -1},
	"scope.Scratch.Open":             {opens, 0, -1},
	"scope.Scope.Temp":               {lends, 0, -1},
	"scope.Scope.Close":              {closes, 0, -1},
	"scope.Scope.Do":                 {calls, 0, -1},
	"scope.Scratch.Do":               {calls, 0, -1},
	"scope.Scope.AllocUnzeroed":      {gives, 0, -1},
	"scope.Scope.AllocUnzeroedAs":    {gives, 0, -1},
	"scope.Scope.TryAllocUnzeroed":   {gives, 0, -1},
	"scope.Scope.Bytes":              {gives, 0, -1},
	"scope.Scope.BytesUnzeroed":      {gives, 0, -1},
	"scope.Scope.Text":               {holds, 0, -1},
	"scope.Text.Bytes":               {gives, 0, -1},
	"scope.Text.String":              {gives, 0, -1},
	"scope.Text.Add":                 {same, 0, -1},
	"scope.Text.AddInt":              {same, 0, -1},
	"scope.Text.Reset":               {same, 0, -1},
	"scope.Scope.New":                {gives, 0, -1},
	"scope.Scope.Slice":              {gives, 0, -1},
	"scope.Scope.Pool":               {holds, 0, -1},
	"scope.Maker.New":                {gives, 1, -1},
	"scope.Maker.TryNew":             {gives, 1, -1},
	"scope.Maker.Slice":              {gives, 1, -1},
	"scope.Maker.TrySlice":           {gives, 1, -1},
	"scope.Maker.SliceCap":           {gives, 1, -1},
	"scope.Maker.SliceAligned":       {gives, 1, -1},
	"scope.Maker.Clone":              {gives, 1, -1},
	"scope.Maker.Append":             {gives, 1, -1},
	"scope.Maker.Make":               {fills, 1, 0},
	"scope.Maker.Build":              {holds, 1, -1},
	"scope.Maker.List":               {holds, 1, -1},
	"scope.Maker.Pool":               {holds, 1, -1},
	"scope.Maker.HandlePool":         {holds, 1, -1},
	"scope.Maker.SharedPool":         {holds, 1, -1},
	"scope.ObjectMaker.New":          {gives, 1, -1},
	"scope.ObjectMaker.TryNew":       {gives, 1, -1},
	"scope.ObjectMaker.Slice":        {gives, 1, -1},
	"scope.ObjectMaker.Make":         {fills, 1, 0},
	"scope.ObjectMaker.Pool":         {holds, 1, -1},
	"scope.Builder.Done":             {gives, 0, -1},
	"scope.List.All":                 {holds, 0, -1},
	"scope.List.Slice":               {gives, 1, -1},
	"scope.pool.Get":                 {gives, 0, -1},
	"scope.pool.At":                  {gives, 0, -1},
	"scope.pool.All":                 {holds, 0, -1},
	"scope.Pool.Get":                 {gives, 0, -1},
	"scope.Pool.GetUnzeroed":         {gives, 0, -1},
	"scope.Pool.Proxy":               {holds, 0, -1},
	"scope.HandlePool.Get":           {gives, 0, 0},
	"scope.HandlePool.At":            {gives, 0, -1},
	"scope.HandlePool.All":           {holds, 0, -1},
	"scope.HandlePool.Proxy":         {holds, 0, -1},
	"scope.ObjectPool.Get":           {gives, 0, -1},
	"scope.ObjectPool.Proxy":         {holds, 0, -1},
	"scope.SharedPool.Get":           {gives, 0, -1},
	"scope.Sprintf":                  {gives, 0, -1},
	"scope.StringOf":                 {gives, 0, -1},
	"scope.ReadFile":                 {gives, 0, 0},
	"scope.ReadAt":                   {gives, 0, 0},
	"scope.AddrOf":                   {same, 1, -1},
	"scope.Addr.Get":                 {same, 0, -1},
	"scope/cache.New":                {holds, 0, -1},
	"scope/cache.NewObjects":         {holds, 0, -1},
	"scope/cache.Of.Get":             {gives, 0, -1},
	"scope/cache.Of.At":              {gives, 0, -1},
	"scope/cache.Of.Add":             {gives, 0, 0},
	"scope/cache.Of.GetOrLoad":       {gives, 0, 0},
	"scope/container.NewList":        {holds, 0, -1},
	"scope/container.NewDeque":       {holds, 0, -1},
	"scope/container.NewMap":         {holds, 0, -1},
	"scope/container.NewStringMap":   {holds, 0, -1},
	"scope/container.NewListOn":      {same, 0, 0},
	"scope/container.NewDequeOn":     {same, 0, 0},
	"scope/container.NewMapOn":       {same, 0, 0},
	"scope/container.NewStringMapOn": {same, 0, 0},
	"scope/container.List.All":       {holds, 0, -1},
	"scope/container.List.At":        {gives, 0, -1},
	"scope/container.List.Slice":     {gives, 0, -1},
	"scope/container.Deque.All":      {holds, 0, -1},
	"scope/container.Deque.At":       {gives, 0, -1},
	"scope/container.Map.All":        {holds, 0, -1},
	"scope/container.Map.Get":        {gives, 0, -1},
	"scope/container.StringMap.All":  {holds, 0, -1},
	"scope/container.StringMap.Get":  {gives, 0, -1},
	"arena.PtrTo":                    {same, 1, -1},
	"arena.Ptr.Get":                  {same, 0, -1},
	"arena.SliceOf":                  {same, 1, -1},
	"arena.Slice.Get":                {same, 0, -1},
	"arena.StringOf":                 {same, 1, -1},
	"arena.String.Get":               {same, 0, -1},
	"arena.Inline.Bytes":             {same, 0, -1},
	"arena.Inline.String":            {same, 0, -1},
	"arena.BlockFrom":                {same, 0, -1},
	"arena.NewLinear":                {same, 0, 0},
	"arena.NewStack":                 {same, 0, 0},
	"arena.NewRing":                  {same, 0, 0},
	"arena.NewFrame":                 {same, 0, 0},
	"arena.NewHeap":                  {same, 0, 0},
	"arena.NewBuddy":                 {same, 0, 0},
	"arena.NewBlockPool":             {same, 0, 0},
	"arena.HeapMaker.New":            {same, 1, -1},
	"arena.HeapMaker.Make":           {same, 1, 0},
	"arena.HeapMaker.Slice":          {same, 1, -1},
	"arena.HeapMaker.Grow":           {same, 1, 0},
	"arena.NewString":                {same, 0, 0},
	"arena.PoolProxy.Get":            {gives, 0, -1},
	"arena.HandlePoolProxy.Get":      {gives, 0, 0},
	"arena.BlockPool.Get":            {same, 0, -1},
	"arena.BlockPool.GetUnzeroed":    {same, 0, -1},
	"arena.BlockPool.At":             {same, 0, -1},
	"arena.Heap.Alloc":               {same, 0, -1},
	"arena.Heap.Realloc":             {same, 0, 0},
	"arena.Heap.Shared":              {same, 0, 0},
	"arena.Buddy.Alloc":              {same, 0, -1},
	"arena.Buddy.Realloc":            {same, 0, 0},
	"arena.Buddy.Shared":             {same, 0, 0},
	"arena.Shared.Alloc":             {same, 0, -1},
	"arena.Shared.Realloc":           {same, 0, 0},
	"arena.Linear.Alloc":             {same, 0, -1},
	"arena.Linear.Far":               {same, 0, -1},
	"arena.LinearFar.Alloc":          {same, 0, -1},
	"arena.Stack.Alloc":              {same, 0, -1},
	"arena.Stack.Far":                {same, 0, -1},
	"arena.StackFar.Alloc":           {same, 0, -1},
	"arena.Ring.Alloc":               {same, 0, -1},
	"arena.Ring.Oldest":              {same, 0, 0},
	"arena.Ring.Overwrite":           {same, 0, -1},
	"arena.Frame.Alloc":              {same, 0, -1},
	"scope.Scratches.Scratch":        {same, 0, -1},
	"scope.Scratches.Pick":           {same, 0, -1},
	"budget.Budget.Scratch":          {same, 0, -1},
	"budget.Budget.Scratches":        {same, 0, -1},
	"budget.Lease.Scratch":           {same, 0, -1},
	"scope/flow.Host.Load":           {holds, 1, 0},
	"scope/flow.Host.NewRunner":      {holds, 1, -1},
	"budget.Load":                    {loads, 2, -1},

	"scope/container.StringMap.GetBytes": {gives, 0, -1},
}

// passing are functions of the standard library whose first result may be their first argument, or
// point into it.
var passing = map[string]bool{}

func init() {
	for pkg, names := range map[string]string{
		"strings": "Trim TrimFunc TrimLeft TrimLeftFunc TrimPrefix TrimRight TrimRightFunc TrimSpace TrimSuffix Cut CutPrefix CutSuffix " +
			"Fields FieldsFunc Split SplitN SplitAfter SplitAfterN",
		"bytes": "Trim TrimFunc TrimLeft TrimLeftFunc TrimPrefix TrimRight TrimRightFunc TrimSpace TrimSuffix Cut CutPrefix CutSuffix " +
			"Fields FieldsFunc Split SplitN SplitAfter SplitAfterN",
		"slices":  "Clip Grow Delete DeleteFunc Compact CompactFunc Insert Replace",
		"strconv": "AppendInt AppendUint AppendFloat AppendBool AppendQuote",
		"fmt":     "Append Appendf Appendln",
	} {
		for name := range strings.FieldsSeq(names) {
			passing[pkg+"."+name] = true
		}
	}
}

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
	name := nameOf(fn)
	if d, ok := table[name]; ok && strings.HasPrefix(pathOf(fn), upfront) {
		return d
	}
	if passing[name] {
		if fn.Signature.Results().Len() > 1 {
			return does{same, 0, 0}
		}
		return does{same, 0, -1}
	}
	return does{}
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

// guarded are the types that detect a closed scope, or belong to no scope. A value of such a type
// may outlive the scope.
var guarded = map[string]bool{
	"scope.Scope": true, "scope.Scratch": true, "scope.Scratches": true, "scope.Ref": true, "scope.Owned": true,
	"scope.Pool": true, "scope.HandlePool": true, "scope.ObjectPool": true, "scope.SharedPool": true, "scope.pool": true,
	"scope.Text": true, "scope.Builder": true, "scope.List": true, "scope.Maker": true, "scope.ObjectMaker": true, "arena.Handle": true,
	"scope/container.List": true, "scope/container.Deque": true, "scope/container.Map": true, "scope/container.StringMap": true,
	"budget.Loaded": true, "budget.Lease": true, "budget.Region": true, "budget.Budget": true,
}

// offsets are plain data that refers to memory.
var offsets = map[string]bool{"scope.Addr": true, "arena.Ptr": true, "arena.Slice": true, "arena.String": true}

var errorType = types.Universe.Lookup("error").Type()

// carries reports whether a value of a type can hold memory, or a scope or pool that returns it. An
// error never does.
func carries(t types.Type) bool { return carriesIn(t, 0) }

func carriesIn(t types.Type, depth int) bool {
	if depth > 8 || types.Identical(t, errorType) {
		return false
	}
	if name := named(t); guarded[name] || offsets[name] {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() == types.String || u.Kind() == types.UnsafePointer || u.Kind() == types.UntypedNil
	case *types.Struct:
		for f := range u.Fields() {
			if carriesIn(f.Type(), depth+1) {
				return true
			}
		}
		return false
	case *types.Array:
		return carriesIn(u.Elem(), depth+1)
	case *types.Tuple:
		for v := range u.Variables() {
			if carriesIn(v.Type(), depth+1) {
				return true
			}
		}
		return false
	}
	return true // pointers, slices, maps, channels, funcs, interfaces, type parameters
}
