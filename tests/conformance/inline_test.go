package conformance

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	_ "github.com/upfront-mem/upfront/tests/conformance/fast" // go test must see its changes
	"github.com/upfront-mem/upfront/tests/step"
)

// compile returns the compiler's report on package fast, and on other packages. The go command
// caches it.
func compile(t *testing.T, flag string, others ...string) string {
	t.Helper()
	if arena_c.Crossing || arena_c.Race {
		t.Skip("the compiled code is the release build's: UPFRONT_STEP=check go test ./tests/conformance runs it")
	}
	step.Needs(t, step.Check)
	args := append([]string{"build", "-gcflags=" + flag, "./fast"}, others...)
	out, err := exec.Command("go", args...).CombinedOutput()
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

var update = flag.Bool("update", false, "write testdata/inlinable.txt")

const listOfInlinable = "testdata/inlinable.txt"

// TestInlinable compares the exported functions that the compiler can inline with a list. A
// function of the list must stay so, in both versions of Go. A generic function is compiled, and
// listed, if package fast or the library uses it.
func TestInlinable(t *testing.T) {
	found := inlinable(compile(t, "-m", "../../arena", "../../arena_c", "../../scope/..."))
	text, err := os.ReadFile(listOfInlinable)
	require.NoError(t, err)
	recorded := strings.Fields(string(text))
	if *update {
		lines := slices.Sorted(maps.Keys(found))
		require.NoError(t, os.WriteFile(listOfInlinable, []byte(strings.Join(append(lines, ""), "\n")), 0o644))
		return
	}
	require.Greater(t, len(recorded), 100)
	for _, name := range recorded {
		assert.True(t, found[name], "%s isn't inlined any more; go build -gcflags=-m=2 says why. If it is gone or "+
			"cold: go test ./tests/conformance -run Inlinable -update", name)
	}
}

// inlinable returns the exported functions and methods in the compiler's report, such as
// scope/container.(*List).Push.
func inlinable(report string) map[string]bool {
	found := map[string]bool{}
	const packages = `arena|arena_c|scope|scope/stack|scope/container|scope/cache`
	can := regexp.MustCompile(`(?m)^(?:\S*?/)?(` + packages + `)/\w+\.go:\d+:\d+: can inline (.*)$`)
	parameters := regexp.MustCompile(`\[[^][]+\]`)
	exported := regexp.MustCompile(`^(?:.*\.)?[A-Z]\w*$`)
	for _, m := range can.FindAllStringSubmatch(report, -1) {
		name := strings.TrimPrefix(m[2], path.Base(m[1])+".")
		for parameters.MatchString(name) {
			name = parameters.ReplaceAllString(name, "")
		}
		if exported.MatchString(name) {
			found[m[1]+"."+name] = true
		}
	}
	return found
}

// TestInlinableNames is the control.
func TestInlinableNames(t *testing.T) {
	report := `# upfront/scope
../../scope/maker.go:37:6: can inline scope.Maker[go.shape.struct { ID uint64; Leaves [5]uint64 }].New
../../scope/container/list.go:85:6: can inline (*List[go.shape.uint64]).Push
../../scope/container/list.go:85:6: inlining call to arena_c.(*Scopes).Alloc
../../arena_c/fast.go:17:6: can inline bump
../../arena_c/fast.go:18:6: can inline Bump.func1
fast/fast.go:29:6: can inline TryNew
/usr/local/go/src/cmp/cmp.go:7:6: can inline cmp.Compare[go.shape.int]
arena_c/fast.go:19:6: cannot inline Grow: too complex
./arena/heap.go:9:6: can inline Heap.Free
scope/flow/host.go:9:6: can inline NewHost`
	want := map[string]bool{"scope.Maker.New": true, "scope/container.(*List).Push": true, "arena.Heap.Free": true}
	assert.Equal(t, want, inlinable(report))
}

// TestHitsHaveNoWriteBarrier: a cursor of a Go pointer type would need one.
func TestHitsHaveNoWriteBarrier(t *testing.T) {
	out := compile(t, "-d=wb")
	require.Regexp(t, said("control", "write barrier"), out, "the control: the test can't see a write barrier")
	assert.Empty(t, said("fast", "write barrier").FindAllString(out, -1))
}
