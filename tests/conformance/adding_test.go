package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What "Adding an arena" in the documentation of package arena asks for, and no compiler misses.

func text(t *testing.T, pattern string) string {
	t.Helper()
	files, err := filepath.Glob("../../" + pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files, pattern)
	var all strings.Builder
	for _, file := range files {
		part, err := os.ReadFile(file)
		require.NoError(t, err)
		all.Write(part)
	}
	return all.String()
}

// TestEveryArenaIsInEveryList: an arena is what package arena makes of a block.
func TestEveryArenaIsInEveryList(t *testing.T) {
	code := text(t, "arena/*.go")
	arenas := regexp.MustCompile(`(?m)^func New(\w+)(?:\[T any\])?\(block \[\]byte`).FindAllStringSubmatch(code, -1)
	require.GreaterOrEqual(t, len(arenas), 7, "the test finds no arenas")
	for _, found := range arenas {
		name := found[1]
		has := func(file, pattern string) {
			assert.True(t, regexp.MustCompile(pattern).MatchString(text(t, file)), "%s lacks %s", file, name)
		}
		has("arena/doc.go", `\n//\t`+name+` `)
		has("arena/refused_test.go", `arena\.New`+name+`\b`)
		has("tests/race/crossings_test.go", `arena\.New`+name+`\b`)
		if regexp.MustCompile(`\nfunc \(\w ` + name + `\) Alloc\(`).MatchString(code) {
			has("arena/allocator.go", `\n\t_ \w+ += `+name+`{}`)
		}
		assert.True(t, slices.ContainsFunc(subjects, func(s subject) bool { return strings.HasPrefix(s.name, name) }),
			"%s is no subject of the suite", name)
	}
}

// TestEveryHitIsSaidTwiceAndCompared: each names the C function that it says again.
func TestEveryHitIsSaidTwiceAndCompared(t *testing.T) {
	code := text(t, "arena_c/fast.go") + text(t, "arena_c/fast_block.go")
	paths := regexp.MustCompile(`\n// [A-Z]\w*.* is (upfront_\w+)`).FindAllStringSubmatch(code, -1)
	require.GreaterOrEqual(t, len(paths), 20, "the test finds no fast paths")
	bindings, compared := text(t, "arena_c/fast_cgo.go"), text(t, "tests/conformance/bindings/bindings.go")
	for _, path := range paths {
		call := regexp.MustCompile(`C\.` + path[1] + `(_at)?\(`)
		assert.True(t, call.MatchString(bindings), "fast_cgo.go lacks %s", path[1])
		assert.True(t, call.MatchString(compared), "package bindings lacks %s", path[1])
	}
}
