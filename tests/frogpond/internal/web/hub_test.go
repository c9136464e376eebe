package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/chart"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// source is a server of two rooms. The second never answers.
type source struct {
	maps  []doom.Map
	asked atomic.Int32
}

func (s *source) Rooms() int       { return 2 }
func (s *source) Places() int      { return 4 }
func (s *source) Maps() []doom.Map { return s.maps }
func (s *source) List() []Brief    { return []Brief{{Map: "MAP01", Players: 1}, {Room: 1}} }

func (s *source) Scene(room int) *Scene {
	if room == 1 {
		return nil
	}
	return &Scene{Map: "MAP01", Tick: uint32(s.asked.Add(1)), Whole: true,
		Players: []Player{{Name: "ann", X: 100, Y: 200, Heading: 4}}, Frogs: [][3]int16{{1, 2, 3}},
		Sectors: [][3]int16{}}
}

func hub(t *testing.T) (*Hub, *source) {
	t.Helper()
	b, err := budget.Open(budget.Plan{Name: "test", Regions: []budget.RegionPlan{{Name: "init", Size: 4 * budget.MiB}}})
	require.NoError(t, err)
	s := &source{}
	library, err := budget.Load(t.Context(), b.Region("init"), func(in scope.Scope) (*doom.Library, error) {
		return doom.OpenLibrary(in, []string{doom.Builtin}, 1)
	})
	require.NoError(t, err)
	s.maps, err = library.Get().Maps()
	require.NoError(t, err)
	h := New(s)
	t.Cleanup(func() {
		assert.NoError(t, h.Close())
		assert.NoError(t, b.Close(), "nothing is left")
	})
	return h, s
}

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "localhost"
	h.ServeHTTP(w, r)
	return w
}

// Many viewers share one copy of a room, which is made at most ten times a second.
func TestViewersShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := hub(t)
		ctx, stop := context.WithTimeout(t.Context(), 450*time.Millisecond)
		defer stop()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				r := httptest.NewRequest(http.MethodGet, "/room/0/events", nil).WithContext(ctx)
				r.Host = "localhost"
				h.ServeHTTP(deadlines{httptest.NewRecorder()}, r)
			})
			all.Go(func() {
				for ; ctx.Err() == nil; time.Sleep(pace / 5) {
					assert.Equal(t, 200, get(h, "/room/0").Code)
				}
			})
		}
		start := time.Now()
		all.Wait()
		assert.LessOrEqual(t, s.asked.Load(), int32(time.Since(start)/pace)+1)
		assert.GreaterOrEqual(t, s.asked.Load(), int32(2))
		time.Sleep(2 * pace)
		before := s.asked.Load()
		time.Sleep(3 * pace)
		assert.Equal(t, before, s.asked.Load(), "nobody looks, and nothing is copied")
	})
}

// deadlines is a writer that accepts a stream.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetReadDeadline(time.Time) error  { return nil }
func (deadlines) SetWriteDeadline(time.Time) error { return nil }

// The page of a room that doesn't answer has no picture. Another room's page has the picture of its
// map.
func TestRoomPage(t *testing.T) {
	h, _ := hub(t)
	assert.NotContains(t, get(h, "/room/1").Body.String(), `id="still"`)
	assert.Contains(t, get(h, "/room/1").Body.String(), "No players")
	text := get(h, "/room/0").Body.String()
	assert.Contains(t, text, `aria-label="Map MAP01: 1 players, 1 frogs, 0 sectors moved"`)
	assert.Contains(t, text, `<g transform="translate(100 -200) `, "north is up")
	assert.Contains(t, text, `rotate(-90.0)`)
	assert.Contains(t, text, `<circle class="frog" cx="1" cy="-2"`)
}

// The chart of a map is loaded once, and is complete.
func TestChartIsSent(t *testing.T) {
	h, _ := hub(t)
	var got form
	require.NoError(t, json.Unmarshal(get(h, "/map/MAP02.json").Body.Bytes(), &got))
	assert.Equal(t, "MAP02", got.Map)
	c, err := h.charts.get("MAP02")
	require.NoError(t, err)
	again, err := h.charts.get("MAP02")
	require.NoError(t, err)
	assert.Same(t, c, again)
	assert.Len(t, got.Lines, len(c.Lines))
	assert.Len(t, got.Sectors, len(c.Sectors))
	require.NoError(t, h.Close())
	_, err = h.charts.get("MAP03")
	assert.ErrorIs(t, err, errClosed)
}

// The class of a line depends on its sectors: an open door is ajar, and a line at a moved sector is
// moved.
func TestClassOf(t *testing.T) {
	sectors := []chart.Sector{{Floor: 0, Ceiling: 128}, {Floor: 0, Ceiling: 0}, {Floor: 64, Ceiling: 128}}
	moved := []bool{false, false, true}
	door := chart.Line{Kind: chart.Door, Front: 0, Back: 1}
	assert.Equal(t, "door", classOf(door, sectors, moved))
	sectors[1].Ceiling = 72
	assert.Equal(t, "ajar", classOf(door, sectors, moved))
	assert.Equal(t, "moved", classOf(chart.Line{Kind: chart.Step, Front: 0, Back: 2}, sectors, moved))
	assert.Equal(t, "step", classOf(chart.Line{Kind: chart.Step, Front: 0, Back: 1}, sectors, moved))
	assert.Equal(t, "wall", classOf(chart.Line{Kind: chart.Wall, Front: 2, Back: chart.None}, sectors, moved))
	c := &chart.Chart{Sectors: sectors, Lines: []chart.Line{door}}
	list := lines(c, &Scene{Sectors: [][3]int16{{1, 0, 0}, {99, 0, 0}, {-1, 0, 0}}})
	require.Len(t, list, 1)
	assert.Equal(t, path{"door", "M0 0L0 0"}, list[0], "a sector that isn't there is none")
}

// silent is a source with slow rooms that return no scene, as if their worker were stuck.
type silent struct{ Source }

func (silent) Rooms() int       { return 1 }
func (silent) Maps() []doom.Map { return nil }
func (silent) List() []Brief    { return nil }
func (silent) Scene(int) *Scene { time.Sleep(2 * pace); return nil }

// TestARoomThatDoesNotAnswer: all viewers of a silent room wait for the same request, not for one
// request each.
func TestARoomThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(silent{})
		begin := time.Now()
		for range 40 { // in turn, as by the lock
			h.rooms[0].look()
		}
		assert.Equal(t, 2*pace, time.Since(begin))
		require.NoError(t, h.Close())
	})
}
