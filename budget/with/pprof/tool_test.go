package pprof_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	with "github.com/upfront-mem/upfront/budget/with/pprof"
	"github.com/upfront-mem/upfront/tests/step"
)

// tool returns the output of go tool pprof.
func tool(t *testing.T, args ...string) string {
	t.Helper()
	step.Needs(t, step.Check)
	cmd := exec.Command("go", append([]string{"tool", "pprof"}, args...)...)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// write writes the profile of a report to a file.
func write(t *testing.T, r budget.Report) (name string, p *profile.Profile) {
	t.Helper()
	p, err := with.Profile(r)
	require.NoError(t, err)
	name = filepath.Join(t.TempDir(), "game.pb.gz")
	file, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, p.Write(file))
	require.NoError(t, file.Close())
	return name, p
}

var shown = regexp.MustCompile(`Showing nodes accounting for (\d+)B?, 100% of (\d+)B? total`)

// total returns the tool's total of a sample type.
func total(t *testing.T, source, kind string) (uint64, string) {
	t.Helper()
	out := tool(t, "-top", "-unit=B", "-nodefraction=0", "-nodecount=10000", "-sample_index="+kind, source)
	found := shown.FindStringSubmatch(out)
	require.NotNil(t, found, out)
	require.Equal(t, found[1], found[2])
	var n uint64
	_, err := fmt.Sscan(found[1], &n)
	require.NoError(t, err)
	return n, out
}

// TestTop: go tool pprof adds up to the report's totals for each sample type.
func TestTop(t *testing.T) {
	r := play(t).Report()
	name, p := write(t, r)
	want := sums(r)
	for kind := range totals(p) {
		got, out := total(t, name, kind)
		assert.Equal(t, want[kind], got, kind)
		assert.Contains(t, out, "Type: "+kind)
		assert.NotContains(t, out, "symbolization", "it looks for no program")
	}
	out := tool(t, "-top", "-unit=B", "-sample_index=labels_inuse_space", "-focus=region level", name)
	_, rows, _ := strings.Cut(out, "cum%\n")
	first, _, _ := strings.Cut(rows, "\n")
	assert.Contains(t, first, "label monsters", "what eats the level comes first")
}

// TestTags: the sums by tag are the report's.
func TestTags(t *testing.T) {
	r := play(t).Report()
	name, _ := write(t, r)
	out := tool(t, "-tags", "-unit=B", "-nodefraction=0", name)
	sum := regexp.MustCompile(`budget: Total (\d+)B of (\d+)B`).FindStringSubmatch(out)
	require.NotNil(t, sum, out)
	assert.Equal(t, fmt.Sprint(sums(r)["inuse_space"]), sum[1], "all that is in use has the tag")
	for _, region := range []string{"level", "nested", "match", "frame"} {
		used := uint64(0)
		for _, a := range r.Arenas {
			if a.Part == region {
				used += a.Used
			}
		}
		assert.Regexp(t, fmt.Sprintf(`\b%dB \([ 0-9.]+%%\): %s\n`, used, region), out)
	}
	assert.Contains(t, out, ": players\n")
	out = tool(t, "-top", "-unit=B", "-tagfocus=region=match", "-sample_index=planned_space", name)
	assert.Contains(t, out, fmt.Sprintf("%dB", 3*r.Arenas[2].Size))
}

// TestHandler: the tool reads the same sums over HTTP.
func TestHandler(t *testing.T) {
	step.Machine(t, step.Loopback())
	b := play(t)
	mux := http.NewServeMux()
	mux.Handle("/debug/pprof/budget", with.Handler(b))
	server := httptest.NewServer(mux)
	defer server.Close()
	url := server.URL + "/debug/pprof/budget"
	got, out := total(t, url, "inuse_space")
	assert.Equal(t, sums(b.Published())["inuse_space"], got)
	assert.Contains(t, out, "\nTime: ")
}

func TestHandlerRefuses(t *testing.T) {
	h := with.Handler(play(t))
	ask := func(method, target string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
		return w
	}
	assert.Equal(t, http.StatusOK, ask("HEAD", "/").Code)
	w := ask("GET", "/?seconds=5")
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Contains(t, w.Body.String(), "isn't supported")
	assert.NotContains(t, w.Header(), "Content-Disposition")
	w = ask("POST", "/")
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
	assert.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	w = ask("GET", "/?seconds=%zz&x=1")
	assert.Equal(t, http.StatusOK, w.Code, "a query that is none asks for nothing")
	assert.Equal(t, `attachment; filename="game.pb.gz"`, w.Header().Get("Content-Disposition"))
}

// TestFlameGraph: the page of go tool pprof -http shows the stacks.
func TestFlameGraph(t *testing.T) {
	step.Needs(t, step.Check)
	step.Machine(t, step.Loopback())
	name, _ := write(t, play(t).Report())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// The go command would run the tool as a child, which outlives it.
	tool, err := exec.Command("go", "tool", "-n", "pprof").Output()
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, strings.TrimSpace(string(tool)), "-no_browser", "-http="+address, name)
	require.NoError(t, step.Start(cmd))
	defer func() { cancel(); _ = cmd.Wait() }()
	page := ""
	require.Eventually(t, func() bool {
		r, err := http.Get("http://" + address + "/ui/flamegraph")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		page = string(body)
		return err == nil && r.StatusCode == http.StatusOK
	}, 5*time.Minute, 50*time.Millisecond)
	for _, level := range []string{"budget game", "region level", "slot match 1", "scope match", "label players"} {
		assert.Contains(t, page, level)
	}
}
