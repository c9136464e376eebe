package pprof_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/arena_c"
	with "github.com/upfront-mem/upfront/budget/with/pprof"
)

// profiled plays C's malloc. It writes a text, or fails.
type profiled struct {
	arena_c.ProcessHeap
	err error
}

func (p profiled) WriteProfile(w io.Writer) error {
	_, _ = io.WriteString(w, "a profile")
	return p.err
}

// TestCHeapHandler: the page has the profile of C's malloc, or the reason why there is none.
func TestCHeapHandler(t *testing.T) {
	old := arena_c.ProcessHeapOf()
	t.Cleanup(func() { arena_c.SetProcessHeap(old) })
	ask := func(h arena_c.ProcessHeap, method, target string) *httptest.ResponseRecorder {
		arena_c.SetProcessHeap(h)
		w := httptest.NewRecorder()
		with.CHeapHandler().ServeHTTP(w, httptest.NewRequest(method, target, nil))
		return w
	}
	w := ask(profiled{}, "GET", "/debug/pprof/cmalloc")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "a profile", w.Body.String())
	assert.Equal(t, `attachment; filename="cmalloc.pb.gz"`, w.Header().Get("Content-Disposition"))
	w = ask(profiled{err: errors.New("c_heap.profile is off")}, "GET", "/")
	assert.Equal(t, http.StatusNotFound, w.Code)
	assert.Equal(t, "c_heap.profile is off\n", w.Body.String())
	w = ask(nil, "GET", "/")
	assert.Equal(t, http.StatusNotFound, w.Code)
	assert.Contains(t, w.Body.String(), "import github.com/upfront-mem/upfront/arena/with/malloc")
	assert.Equal(t, http.StatusBadRequest, ask(profiled{}, "GET", "/?seconds=5").Code)
	assert.Equal(t, http.StatusMethodNotAllowed, ask(profiled{}, "POST", "/").Code)
}
