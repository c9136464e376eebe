package live

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/timeline"
)

// TestTimelineIsMadeOnce: all requests share the bytes of an answer.
func TestTimelineIsMadeOnce(t *testing.T) {
	p := pastOf(timeline.Data{Budget: "pond", Step: 1, Ticks: 1,
		Arenas: []timeline.Arena{{Name: "level", Size: 9, Most: []uint64{1}}}})
	for name, make := range p {
		first, err := make()
		require.NoError(t, err, name)
		again, err := make()
		require.NoError(t, err, name)
		assert.Same(t, &first[0], &again[0], name)
	}
}

// TestNoRanges: an answer is whole, and no longer, for any ranges in a request.
func TestNoRanges(t *testing.T) {
	r := httptest.NewRequest("GET", "/report.json", nil)
	r.Header.Set("Range", "bytes=0-0,2-2,4-4")
	w := httptest.NewRecorder()
	reply(w, r, "report.json", []byte("0123456789"))
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "0123456789", w.Body.String())
}
