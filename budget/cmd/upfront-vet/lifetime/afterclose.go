package lifetime

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// afterClose reports accesses to memory of scopes that are closed on all paths to the access.
func (f *flow) afterClose() {
	for o := range f.opened {
		if len(o.closes) == 0 || o.lost {
			continue
		}
		for i, s := range f.states(o) {
			if s != closed {
				continue
			}
			for _, v := range accessed(i) {
				if e, ok := f.surely(v, o.scope); ok {
					f.report("afterclose", posOf(i, v), e, "it is used after that; use it before, or copy the bytes")
					break
				}
			}
		}
	}
}

// surely reports whether v is memory of a scope on every path, and returns the elem of that memory.
func (f *flow) surely(v ssa.Value, scope elem) (found elem, ok bool) {
	if !f.direct(v, map[ssa.Value]bool{}) {
		return elem{}, false
	}
	for e := range f.of(v)[""] {
		if !e.is(allocated) || e.scope() != scope {
			return elem{}, false
		}
		found, ok = e, true
	}
	return found, ok
}

// direct reports whether v comes only from calls that return memory, and from nil.
func (f *flow) direct(v ssa.Value, seen map[ssa.Value]bool) bool {
	if seen[v] {
		return true
	}
	seen[v] = true
	switch v := v.(type) {
	case *ssa.Call, *ssa.Extract:
		for e := range f.of(v)[""] {
			if e.is(allocated) {
				return true
			}
		}
	case *ssa.FieldAddr, *ssa.IndexAddr, *ssa.Slice, *ssa.ChangeType, *ssa.Convert, *ssa.MakeInterface:
		return f.direct(*v.(ssa.Instruction).Operands(nil)[0], seen)
	case *ssa.Const:
		return v.IsNil()
	case *ssa.Phi:
		return !slices.ContainsFunc(v.Edges, func(x ssa.Value) bool { return !f.direct(x, seen) })
	case *ssa.UnOp:
		a, ok := v.X.(*ssa.Alloc)
		return v.Op == token.MUL && ok && f.storesAre(a, func(x ssa.Value) bool { return f.direct(x, seen) })
	}
	return false
}

// storesAre reports whether all values stored in a variable satisfy is.
func (f *flow) storesAre(a *ssa.Alloc, is func(ssa.Value) bool) bool {
	for i := range f.instructions {
		if s, ok := i.(*ssa.Store); ok && f.of(s.Addr)[""][elem{root: a, path: address}] && !is(s.Val) {
			return false
		}
	}
	return true
}

// accessed returns the values whose memory an instruction reads or writes, or passes to a function.
func accessed(i ssa.Instruction) []ssa.Value {
	switch i := i.(type) {
	case *ssa.UnOp:
		if i.Op == token.MUL {
			return []ssa.Value{i.X}
		}
	case *ssa.Store:
		return []ssa.Value{i.Addr}
	case *ssa.Index:
		return []ssa.Value{i.X}
	case *ssa.Lookup:
		return []ssa.Value{i.Index}
	case *ssa.MapUpdate:
		return []ssa.Value{i.Key}
	case *ssa.BinOp:
		if b, ok := i.X.Type().Underlying().(*types.Basic); ok && b.Info()&types.IsString != 0 {
			return []ssa.Value{i.X, i.Y}
		}
	case *ssa.Convert:
		if copies(i.X.Type(), i.Type()) {
			return []ssa.Value{i.X}
		}
	case *ssa.Range:
		return []ssa.Value{i.X}
	case *ssa.Call:
		if b, ok := i.Call.Value.(*ssa.Builtin); ok {
			if b.Name() == "copy" || b.Name() == "append" {
				return i.Call.Args
			}
			return nil
		}
		callee := i.Call.StaticCallee()
		isLookup := callee != nil && looksUp[callee.Name()] && strings.HasPrefix(pathOf(callee), upfront)
		if isLookup || doing(callee).what == same {
			return nil
		}
		return i.Call.Args
	}
	return nil
}

func posOf(i ssa.Instruction, v ssa.Value) token.Pos {
	if i.Pos().IsValid() {
		return i.Pos()
	}
	return v.Pos()
}
