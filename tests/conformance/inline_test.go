package conformance

import (
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	_ "github.com/upfront-mem/upfront/tests/conformance/fast" // go test must see its changes
	"github.com/upfront-mem/upfront/tests/step"
)

// compile returns the compiler's report on package fast. The go command caches it.
func compile(t *testing.T, flag string) string {
	t.Helper()
	if arena_c.Crossing || arena_c.Race {
		t.Skip("the compiled code is the release build's: its test is enough")
	}
	step.Needs(t, step.Check)
	out, err := exec.Command("go", "build", "-gcflags="+flag, "./fast").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// said matches the compiler's report on a line of a file of package fast.
func said(file, what string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(\S*/)?fast/` + file + `\.go:\d+:\d+: ` + what + `$`)
}

// TestFastPathsInline: without inlining, a fast path takes twice the time.
func TestFastPathsInline(t *testing.T) {
	out := compile(t, "-m")
	for _, call := range []string{
		`scope\.Maker\[.*\]\.New`, `scope\.Maker\[.*\]\.TryNew`, `scope\.Addr\[.*\]\.Get`, `scope\.pool\[.*\]\.Get`,
		`scope\.Pool\[.*\]\.GetUnzeroed`, `scope\.pool\[.*\]\.Put`,
		`scope\.\(\*Builder\[.*\]\)\.Push`, `scope\.\(\*Builder\[.*\]\)\.TryPush`,
		`scope\.Scope\.AllocUnzeroed`, `scope\.Scope\.TryAllocUnzeroed`, `scope\.Scope\.AllocUnzeroedAs`,
		`arena_c\.New\[.*\]`, `arena_c\.TryNew\[.*\]`, `arena_c\.Get\[.*\]`, `arena_c\.GetUnzeroed\[.*\]`,
		`arena_c\.Put\[.*\]`,
		`arena_c\.\(\*Scopes\)\.Alloc`, `arena_c\.\(\*Scopes\)\.TryAlloc`,
		`arena_c\.\(\*Scopes\)\.AllocMask`, `arena_c\.\(\*Scopes\)\.Bump`, `arena_c\.\(\*Scopes\)\.Grow`,
		`arena_c\.\(\*Scopes\)\.Node`, `arena_c\.\(\*Scopes\)\.Link`, `arena_c\.\(\*Scopes\)\.Newest`,
		`arena_c\.\(\*Scopes\)\.Unlink`,
		`arena_c\.\(\*Scopes\)\.Open`, `arena_c\.\(\*Scopes\)\.Close`, `arena_c\.\(\*Scopes\)\.Cut`,
		`arena_c\.\(\*Header\)\.Bump`, `arena_c\.\(\*Stack\)\.Push`,
		`arena_c\.\(\*Ring\)\.Push`, `arena_c\.\(\*Ring\)\.Front`,
		`arena_c\.\(\*Ends\)\.BumpFar`, `arena_c\.\(\*Stack\)\.PushFar`,
		`container\.\(\*List\[.*\]\)\.Push`, `container\.\(\*Deque\[.*\]\)\.PushBack`,
		`container\.\(\*Deque\[.*\]\)\.PushFront`,
	} {
		if !said("fast", "inlining call to "+call).MatchString(out) {
			assert.Fail(t, "a fast path is not inlined where it is called", "%s; go build -gcflags=-m=2 says why", call)
		}
	}
}

// TestHitsHaveNoWriteBarrier: a cursor of a Go pointer type would need one.
func TestHitsHaveNoWriteBarrier(t *testing.T) {
	out := compile(t, "-d=wb")
	require.Regexp(t, said("control", "write barrier"), out, "the control: the test can't see a write barrier")
	assert.Empty(t, said("fast", "write barrier").FindAllString(out, -1))
}
