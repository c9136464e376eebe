//go:build !upfront_cgo

package tests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// crashOf runs a program that crashes, and returns its report. Under asan the tool would report the
// SIGSEGV itself, without Go frames.
func crashOf(t *testing.T, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Env = append(os.Environ(), "GOTRACEBACK=single", "ASAN_OPTIONS=handle_segv=0")
	out, err := command.CombinedOutput()
	require.ErrorAs(t, err, new(*exec.ExitError), "%s", out)
	return string(out)
}

// placesIn returns the lines of a source that are marked "here: NAME".
func placesIn(t *testing.T, source string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	places := map[string]string{}
	for i, line := range bytes.Split(text, []byte("\n")) {
		if _, name, ok := strings.Cut(string(line), "// here: "); ok {
			places[name] = fmt.Sprintf("%s:%d ", source, i+1)
		}
	}
	return places
}

// inOrder asserts that a text contains the parts in their order.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, behind, ok := strings.Cut(rest, part)
		if !assert.True(t, ok, "no %q, or not behind those before it, in:\n%s", part, text) {
			return
		}
		rest = behind
	}
}

// TestCrashInC shows the effect of the blank import of platform/symbolize: C functions, files and
// lines above the Go frames. Without it they are missing.
func TestCrashInC(t *testing.T) {
	step.Needs(t, step.Check)
	const folder = "testdata/crasher"
	at := placesIn(t, folder+"/main.go")
	without, with := buildLike(t, folder), buildLike(t, folder, "symbolize")
	fromGo := []string{"\nmain._Cfunc_from_go(", "\nmain.main()", folder + "/main.go:"}
	for how, inC := range map[string][]string{
		"null":  {"\nstore\n", at["store"], "\nfrom_go\n", at["null"]},
		"dead":  {"\nstore\n", at["store"], "\nfrom_go\n", at["dead"]},
		"abort": {"\ngive_up\n", at["give_up"], "\nfrom_go\n"},
	} {
		t.Run(how, func(t *testing.T) {
			if how == "dead" && builtWith(t)["-race"] != "" {
				t.Skip("with -race the budget is on the Go heap and stays: UPFRONT_STEP=check go test ./tests runs it")
			}
			inOrder(t, crashOf(t, with, how), append(inC, fromGo...)...)
			plain := crashOf(t, without, how)
			inOrder(t, plain, fromGo...)
			assert.NotContains(t, plain, "\nfrom_go\n")
		})
	}
}

// TestCrashOfFrogpond: the game server links the package, and -crash shows it.
func TestCrashOfFrogpond(t *testing.T) {
	step.Needs(t, step.Check)
	if builtWith(t)["-asan"] != "" {
		t.Skip("with -asan frogpond leaves C's frames to AddressSanitizer: UPFRONT_STEP=check go test ./tests runs it")
	}
	text := crashOf(t, buildLike(t, "frogpond"), "-crash")
	if builtWith(t)["-race"] != "" {
		assert.Equal(t, "frogpond: -crash: this build keeps the budget on the Go heap, where memory after Close is "+
			"still there\n", text)
		return
	}
	inOrder(t, text, "SIGSEGV", "\ngithub_com_upfront_mem_upfront_heap_init\n", "arena_c/heap.c:",
		"\ngithub.com/upfront-mem/upfront/arena.NewHeap(", "\nmain.crash(", "tests/frogpond/crash.go:", "\nmain.main()")
}
