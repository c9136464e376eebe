package conformance

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compile asks the compiler about package hits. The go command replays what it said when nothing has changed.
func compile(t *testing.T, flag string) string {
	t.Helper()
	if !release {
		t.Skip("what is compiled is the release build, whose test this is")
	}
	if testing.Short() {
		t.Skip("needs the go command")
	}
	out, err := exec.Command("go", "build", "-gcflags="+flag, "./hits").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// TestHitsInline holds the cost of the hits within the inliner's budget of 80: a hit that isn't inlined takes twice the
// time.
func TestHitsInline(t *testing.T) {
	out := compile(t, "-m=2")
	for _, hit := range []string{
		`scope\.Maker\[.*\]\.New`, `scope\.Maker\[.*\]\.TryNew`, `scope\.Pool\[.*\]\.Get`, `scope\.Scope\.Alloc`,
		`arena_c\.New\[.*\]`, `arena_c\.Get\[.*\]`,
		`arena_c\.\(\*Linear\)\.Bump`, `arena_c\.\(\*Stack\)\.Push`, `arena_c\.\(\*Linear\)\.NewNode`, `arena_c\.\(\*Linear\)\.Link`,
		`arena_c\.\(\*Linear\)\.Unlink`, `arena_c\.\(\*Ring\)\.Push`, `arena_c\.\(\*Ring\)\.Front`,
		`arena_c\.\(\*Ends\)\.BumpFar`, `arena_c\.\(\*Stack\)\.PushFar`, `arena_c\.\(\*Handles\)\.ChunkOf`,
		`container\.\(\*List\[.*\]\)\.Push`, `container\.\(\*Deque\[.*\]\)\.PushBack`, `container\.\(\*Deque\[.*\]\)\.PushFront`,
	} {
		inlined := regexp.MustCompile(`(?m)^(tests/conformance/)?(\./)?hits/hits\.go:\d+:\d+: inlining call to ` + hit + `$`)
		if !inlined.MatchString(out) {
			costs := regexp.MustCompile(`(?m)^.*can(not)? inline ` + hit + `[: ].*?cost \d+.*`)
			var lines []string
			for _, line := range costs.FindAllString(out, -1) {
				line, _, _ = strings.Cut(line, " as: ")
				lines = append(lines, line)
			}
			assert.Fail(t, "a hit is not inlined at its call site", "%s\n%s", hit, strings.Join(lines, "\n"))
		}
	}
}

// TestHitsHaveNoWriteBarrier: a cursor that were a Go pointer would put one into each. Those that are inlined call nothing but what
// panics, or grows a stack.
func TestHitsHaveNoWriteBarrier(t *testing.T) {
	functions := bodies(compile(t, "-S"))
	barrier := regexp.MustCompile(`writeBarrier|WriteBarrier`)
	require.Regexp(t, barrier, functions["hits.Barrier"], "the control: the test can't see a write barrier")
	for _, name := range []string{"New", "TryNew", "Alloc", "Get", "NewCore", "GetCore", "Bump", "Push", "Far", "Chain", "Ring", "Lists"} {
		body := functions["hits."+name]
		require.NotEmpty(t, body, name)
		assert.NotRegexp(t, barrier, body, name)
		for _, call := range regexp.MustCompile(`\tCALL\t(\S+)`).FindAllStringSubmatch(body, -1) {
			assert.Regexp(t, `^runtime\.(morestack\w*|gopanic|panic\w*|convT)\(SB\)$`, call[1], "%s: a hit calls", name)
		}
	}
	for _, name := range []string{"Put", "Append", "Object"} {
		assert.NotRegexp(t, barrier, functions["hits."+name], name)
	}
}
