//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// laysOut matches the functions of the core that initialize a header in a block. The budget itself
// calls those of a map, and of a pool whose header is in the map's tables.
var laysOut = regexp.MustCompile(`^(upfront_)?[a-z]+_(init|make)(_at)?$`)

// TestConstructorsTakeARoom: each constructor of arena_c takes a Room, by which package scope, the
// owner of the block, learns of an arena that is made on it.
func TestConstructorsTakeARoom(t *testing.T) {
	files, err := filepath.Glob("../arena_c/*.go")
	require.NoError(t, err)
	found := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				of, ok := call.X.(*ast.Ident)
				if !ok || of.Name != "C" || !laysOut.MatchString(call.Sel.Name) || call.Sel.Name == "upfront_map_init" {
					return true
				}
				found[call.Sel.Name] = true
				first, ok := fn.Type.Params.List[0].Type.(*ast.Ident)
				assert.True(t, ok && first.Name == "Room", "%s: %s calls %s and takes no Room",
					name, fn.Name.Name, call.Sel.Name)
				return true
			})
		}
	}
	for _, want := range []string{"upfront_heap_init", "upfront_buddy_init", "upfront_ring_init", "upfront_ends_init",
		"upfront_stack_init", "upfront_frame_init", "upfront_pool_make_at", "shared_init"} {
		assert.Contains(t, found, want)
	}
}
