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
//  1. arena_c/NAME.h: algorithm, bound, cost, source; the struct; the static inline fast path.
//     upfront.h includes it.
//  2. arena_c/NAME.c: the rest, in the header's order. It marks live and dead bytes
//     (upfront_mark_live, _dead).
//  3. arena_c/NAME.go: the struct again, with its size compared, and one line an operation. A
//     pointer that C may refuse crosses as a number (pool.go).
//  4. arena_c/fast.go and fast_cgo.go: the fast path. The second asks whether a checked build
//     refuses the request (given, or before it Refuse). A function that frees reports the dead
//     bytes to the race detector (raceDead).
//  5. arena/NAME.go: the typed face, NewNAME(block); a row in its doc.go; its interfaces
//     (`_ Allocator`).
//  6. tests/c/NAME.c: every branch, as test_NAME. check.h declares it, main.c calls it;
//     tests/c/everywhere.c has a row of it.
//  7. Here: a subject with its model (subject_test.go); the two structs (bindings/structs.go); the
//     fast path in package bindings and in a differential test; an inlined one also in package fast
//     and inline_test.go.
//  8. arena/refused_test.go: a request that is refused. tests/race/crossings_test.go: the
//     operations that cross into C. tests/misuse: each misuse, and the build that catches it.
//  9. README.md and cross/dist.txt: its name, and the lifetime of a pointer into it.
//
// The tests below and tests/c/run.sh name a missing step of 5 to 8.

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

// TestEveryArenaIsInEveryList: package arena has a constructor for each arena.
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

// TestEveryHitIsSaidTwiceAndCompared: each fast path names its C function.
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
