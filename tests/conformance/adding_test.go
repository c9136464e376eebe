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

// Adding an arena:
//
//  1. arena_c/NAME.h: algorithm, bound, cost, source; the struct; the static inline fast path. upfront.h includes it.
//  2. arena_c/NAME.c: the rest, in the header's order. What lives and what died is marked (upfront_mark_live, _dead).
//  3. arena_c/NAME.go: the struct again, with its size compared, and one line an operation; an address that is to be judged
//     crosses as a number (pool.go).
//  4. arena_c/fast.go and fast_cgo.go: the fast path. In the second it asks whether a checked build refuses it (given, or
//     before it Refuse). What moves back tells the race detector what died (raceDead).
//  5. arena/NAME.go: the face, NewNAME(block); a row in its doc.go; what it can do (`_ Allocator`).
//  6. tests/c/NAME.c: every branch, as test_NAME. check.h declares it, main.c calls it; tests/c/everywhere.c has a row of it.
//  7. Here: a subject with its model (subject_test.go); the two structs (bindings/structs.go), the fast path in package
//     bindings and in a differential test; one that is inlined in package fast and inline_test.go.
//  8. arena/refused_test.go: a request that is refused. tests/race/crossings_test.go: what crosses into C, and what
//     doesn't. tests/misuse: each misuse and what catches it; the README has that table.
//  9. README.md and cross/dist.txt: its name, and how long a pointer into it lives.
//
// What is forgotten of 5 to 8 the tests below name, and tests/c/run.sh.

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
			assert.Regexp(t, `\b_ \w+ += `+name+`{}`, code, "what it can do")
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
		call := regexp.MustCompile(`C\.` + path[1] + `(_at|_for)?\(`)
		assert.True(t, call.MatchString(bindings), "fast_cgo.go lacks %s", path[1])
		assert.True(t, call.MatchString(compared), "package bindings lacks %s", path[1])
	}
}
