package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counted are the functions that hits consist of: the loops of package hits, with what was inlined into them, and what they call.
var counted = []string{
	"hits.New", "hits.TryNew", "hits.Get", "hits.NewCore", "hits.GetCore", "hits.Bump", "hits.Push", "hits.Far", "hits.Chain", "hits.Ring",
	"hits.Put", "hits.Alloc", "hits.Append", "hits.Object", "scope.Pool[Frog].Put", "scope.Scope.TryAlloc", "scope.appended[Frog]",
	"scope.ObjectMaker[Frog].TryNew", "scope.Pad.Open", "scope.(*Stack).Open", "scope.Scope.Close", "scope.(*Stack).unwind",
	"arena_c.(*Pool).Put", "arena_c.(*Row).OpenScope", "arena_c.(*Row).CloseScope",
}

var (
	headLine        = regexp.MustCompile(`(?m)^(?:\S*/)?(\w+\.\S.*?) STEXT `)
	shape           = regexp.MustCompile(`\[go\.shape\..*?\](\.|\)|$)`)
	instructionLine = regexp.MustCompile(`(?m)^\t0x[0-9a-f]+ \d+ \([^)]*\)\t([A-Z][A-Z0-9]*)`)
)

// bodies are the assembly of the functions in what the compiler wrote for -S, by package and name.
func bodies(out string) map[string]string {
	found := map[string]string{}
	places := headLine.FindAllStringSubmatchIndex(out, -1)
	for i, place := range places {
		end := len(out)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		found[shape.ReplaceAllString(out[place[2]:place[3]], "[Frog]$1")] = out[place[0]:end]
	}
	return found
}

// instructions counts those of a function, without the compiler's own marks.
func instructions(body string) (n int) {
	for _, m := range instructionLine.FindAllStringSubmatch(body, -1) {
		if m[1] != "TEXT" && m[1] != "PCDATA" && m[1] != "FUNCDATA" && m[1] != "NOP" {
			n++
		}
	}
	return n
}

// TestHitsHaveTheirInstructions holds how many machine instructions each hit path has: a slower one is seen without a clock. They are
// those of one Go version; UPFRONT_RECORD=1 writes the table anew, for another version or when a hit was changed with intent.
func TestHitsHaveTheirInstructions(t *testing.T) {
	functions := bodies(compile(t, "github.com/upfront-mem/upfront/...=-S"))
	table := fmt.Sprintf("# %s: instructions of each function that a hit consists of, its misses included.\n", goVersion())
	for _, name := range counted {
		require.NotEmpty(t, functions[name], "%s: no such function; what do hits consist of?", name)
		table += fmt.Sprintf("%s %d\n", name, instructions(functions[name]))
	}
	require.Equal(t, 2, instructions(functions["hits.Control"]), "the control: the test can't count")
	name := filepath.Join("testdata", "instructions_"+runtime.GOARCH+".txt")
	if os.Getenv("UPFRONT_RECORD") != "" {
		require.NoError(t, os.WriteFile(name, []byte(table), 0o644))
	}
	recorded, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		t.Skip("not recorded for this kind of processor")
	}
	require.NoError(t, err)
	if first, _, _ := strings.Cut(table, "\n"); !strings.HasPrefix(string(recorded), first+"\n") {
		t.Skipf("recorded with another version than %s", goVersion())
	}
	assert.Equal(t, string(recorded), table, "a hit has other code than it had; if that is meant, run the test with UPFRONT_RECORD=1")
}

// goVersion is 1.26 for go1.26.8: what is fixed between them hardly changes code.
func goVersion() string {
	parts := strings.SplitN(runtime.Version(), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
