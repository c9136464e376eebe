//go:build !race && !asan && !checked && !upfront_cgo

package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/upfront-mem/upfront"

// arrows has the packages of this module that each package may import. Arrows point down.
var arrows = map[string][]string{
	"arena_c":                 {},
	"platform":                {},
	"platform/jsonfile":       {},
	"platform/symbolize":      {},
	"arena/plain":             {},
	"arena":                   {"arena_c", "arena/plain"},
	"arena/blob":              {"arena/plain"},
	"arena/with/malloc":       {"arena_c", getg},
	"scope":                   {"arena", "arena_c", "scope/stack"},
	"scope/stack":             {"arena_c"},
	"scope/internal/wyhash":   {},
	"scope/internal/lifetime": {"arena_c", "scope", "scope/stack"},
	"scope/container": {"arena", "arena/plain", "arena_c", "scope", "scope/internal/lifetime",
		"scope/internal/wyhash", "scope/stack"},
	"scope/cache": {"arena", "arena_c", "scope", "scope/container", "scope/internal/lifetime",
		"scope/internal/wyhash", "scope/stack"},
	"scope/flow":        {"arena/blob", "arena_c", "scope"},
	"scope/flow/source": {"platform/jsonfile", "scope/flow"},
	"scope/flow/view":   {"platform/jsonfile", "scope/flow"},
	"budget": {"budget/internal/seam", "scope", "scope/stack", "arena", "arena_c", "platform",
		"budget/internal/crash", "budget/internal/mallocs", "platform/jsonfile"},
	"budget/internal/seam":    {"scope/stack", "platform"},
	"budget/inside":           {"scope/stack", "arena", "arena_c", "budget", "budget/internal/seam"},
	"budget/timeline":         {"budget", "budget/internal/seam"},
	"budget/budgettest":       {"arena_c", "budget", "scope"},
	"budget/guide":            {},
	"budget/internal/crash":   {},
	"budget/internal/mallocs": {},
	"budget/internal/metrics": {"budget", "scope"},
	"budget/save": {"budget", "budget/internal/seam", "scope", "scope/stack", "arena", "arena/plain",
		"arena_c", "platform", "platform/jsonfile"},
	"budget/record":      {"arena_c", "budget", "budget/internal/seam", "scope", "scope/stack", "platform/jsonfile"},
	"budget/view":        {"arena", "budget", "budget/inside", "budget/timeline", "scope", "platform/jsonfile"},
	"budget/view/live":   {"budget", "budget/timeline", "budget/view"},
	"budget/with/agones": {"budget"},
	getg:                 {},
}

// getg has assembly, which a package that imports C can't have.
const getg = "arena/with/malloc/internal/getg"

// libraries has the packages that may import a library outside of the standard one.
var libraries = map[string][]string{
	"platform":           {"golang.org/x/sys/unix", "golang.org/x/sys/windows"},
	"platform/symbolize": {"github.com/ianlancetaylor/cgosymbolizer"},
}

// inC has the packages that may import C.
var inC = []string{"arena_c", "arena/with/malloc", "budget/internal/crash"}

type goPackage struct {
	ImportPath string
	Imports    []string
	CgoFiles   []string
}

// TestTopLevel: the root of the repository has these files and folders alone, besides dot-files.
func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir("..")
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		if name := e.Name(); name[0] != '.' && name != "build" {
			names = append(names, name)
		}
	}
	want := "LICENSE Makefile README.md arena arena_c budget cross go.mod go.sum platform scope tests"
	assert.Equal(t, strings.Fields(want), names)
}

func TestArrowsPointDown(t *testing.T) {
	decoder := json.NewDecoder(bytes.NewReader(goCommand(t, "..", "list", "-json=ImportPath,Imports,CgoFiles",
		"./...")))
	seen := 0
	for {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		allowed, layer := arrows[name]
		if !layer {
			assert.True(t, strings.HasPrefix(name, "tests"), "package %s has no place in the layers", name)
			continue
		}
		seen++
		for _, imported := range p.Imports {
			if own, ok := strings.CutPrefix(imported, module+"/"); ok {
				assert.Contains(t, allowed, own, "%s imports %s", name, own)
			} else if strings.Contains(strings.Split(imported, "/")[0], ".") {
				assert.Contains(t, libraries[name], imported, "%s imports %s", name, imported)
			}
		}
		if !slices.Contains(inC, name) {
			assert.Empty(t, p.CgoFiles, "%s imports C; only %v may", name, inC)
		}
	}
	assert.Equal(t, len(arrows), seen, "a layer is missing")
}

func TestTheModuleRequiresExactlyThreeLibraries(t *testing.T) {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	require.NoError(t, json.Unmarshal(goCommand(t, "..", "mod", "edit", "-json"), &mod))
	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	slices.Sort(direct)
	assert.Equal(t, []string{"github.com/ianlancetaylor/cgosymbolizer", "github.com/stretchr/testify",
		"golang.org/x/sys"}, direct)
}

// ownModule makes a folder a module that requires this one.
func ownModule(t *testing.T, dir string) {
	t.Helper()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	goCommand(t, dir, "mod", "init", "example.com/pond")
	goCommand(t, dir, "mod", "edit", "-require="+module+"@v0.0.0", "-replace="+module+"="+root, "-go=1.26")
	goCommand(t, dir, "mod", "tidy")
}

// TestABudgetLinksNoServer: a program that doesn't import package live links no server.
func TestABudgetLinksNoServer(t *testing.T) {
	linked := strings.Fields(string(goCommand(t, "..", "list", "-deps", "./budget", "./budget/save")))
	assert.Contains(t, linked, "runtime/trace")
	for _, name := range []string{"net", "net/http", "html", "html/template", "text/template", "embed", "runtime/pprof",
		module + "/budget/view"} {
		assert.NotContains(t, linked, name)
	}
	// Templates call methods by name. Therefore the linker keeps all methods of the program.
	linked = strings.Fields(string(goCommand(t, "..", "list", "-deps", "./budget/view/live", "./tests/frogpond")))
	assert.Contains(t, linked, module+"/budget/view/live")
	assert.NotContains(t, linked, "html/template")
	assert.NotContains(t, linked, "text/template")
}
