package live_test

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/view/live"
)

// event is a received event.
type event struct {
	id   int
	data string
}

// events reads a stream.
type events struct {
	t testing.TB
	r *http.Response
	b *bufio.Reader
}

func (s *site) look(t testing.TB, path string) *events {
	t.Helper()
	r := s.get(t, path)
	return &events{t, r, bufio.NewReader(r.Body)}
}

// next returns the next event, or false at the end of the stream.
func (e *events) next() (ev event, more bool) {
	e.t.Helper()
	var data []string
	for {
		line, err := e.b.ReadString('\n')
		if err != nil {
			return ev, false
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "id":
			ev.id, err = strconv.Atoi(value)
			require.NoError(e.t, err)
		case "data":
			data = append(data, value)
		case "":
			if data != nil {
				ev.data = strings.Join(data, "\n")
				return ev, true
			}
		}
	}
}

// serveFeed serves a feed. It closes the feed before the server, which waits for open streams.
func serveFeed(t testing.TB, f *live.Feed) *site {
	t.Helper()
	s := serve(t, f, live.ServerOptions{})
	t.Cleanup(f.Close)
	return s
}

// TestFeed: all viewers get the same events in order, each with the lines of its data.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		f := live.NewFeed(func() []byte { return []byte("line\r\nof\n" + strconv.FormatInt(made.Add(1), 10)) },
			live.FeedOptions{Every: 20 * time.Millisecond})
		s := serveFeed(t, f)
		time.Sleep(60 * time.Millisecond)
		assert.Zero(t, made.Load(), "nobody looks")

		begin := time.Now()
		a, b := s.look(t, ""), s.look(t, "")
		assert.Equal(t, "text/event-stream", a.r.Header.Get("Content-Type"))
		last := 0
		for range 10 {
			got, more := a.next()
			require.True(t, more)
			assert.Greater(t, got.id, last)
			assert.Equal(t, "line\nof\n"+strconv.Itoa(got.id), got.data)
			last = got.id
			other, more := b.next()
			require.True(t, more)
			assert.Equal(t, "line\nof\n"+strconv.Itoa(other.id), other.data)
		}
		assert.LessOrEqual(t, made.Load(), int64(time.Since(begin)/(20*time.Millisecond))+1, "however many look")
	})
}

// TestNothingNew: unchanged data isn't sent.
func TestNothingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := live.NewFeed(func() []byte { return []byte("same") }, live.FeedOptions{Every: time.Millisecond})
		e := serveFeed(t, f).look(t, "")
		got, _ := e.next()
		assert.Equal(t, event{1, "same"}, got)
		line, err := e.b.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, ":\n", line, "but a sign that somebody is there")
	})
}

// TestPlaces: a viewer without a place gets a time to retry, and a leaving viewer frees its place.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := live.NewFeed(func() []byte { return []byte("x") }, live.FeedOptions{Every: time.Millisecond, Viewers: 2})
		s := serveFeed(t, f)
		a, b := s.look(t, ""), s.look(t, "")
		for _, e := range []*events{a, b} {
			_, more := e.next()
			require.True(t, more)
		}
		refused := s.look(t, "").r
		assert.Equal(t, http.StatusServiceUnavailable, refused.StatusCode)
		assert.Equal(t, "5", refused.Header.Get("Retry-After"))

		require.NoError(t, a.r.Body.Close())
		synctest.Wait()
		assert.Equal(t, 1, f.Places())
		assert.Equal(t, http.StatusOK, s.look(t, "").r.StatusCode)
	})
}

// TestClose: Close ends streams, and no new one starts.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := live.NewFeed(func() []byte { return []byte("x") }, live.FeedOptions{Every: time.Hour})
		s := serveFeed(t, f)
		e := s.look(t, "")
		_, more := e.next()
		require.True(t, more)
		f.Close()
		_, more = e.next()
		assert.False(t, more)
		assert.Equal(t, http.StatusServiceUnavailable, s.look(t, "").r.StatusCode)
		f.Close()
	})
}

// TestSlowViewer: a viewer that doesn't read misses states, is dropped in the end, and delays no
// other.
func TestSlowViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := bytes.Repeat(append(bytes.Repeat([]byte("x"), 9999), 10), 10)
		var made atomic.Int64
		f := live.NewFeed(func() []byte {
			return append(large[:len(large):len(large)], strconv.FormatInt(made.Add(1), 10)...)
		},
			live.FeedOptions{Every: 50 * time.Millisecond})
		s := serveFeed(t, f)
		s.dial(t, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		synctest.Wait()
		require.Equal(t, 1, f.Places())

		e, begin := s.look(t, ""), time.Now()
		read := func(until time.Duration) {
			for time.Since(begin) < until {
				_, more := e.next()
				require.True(t, more)
			}
		}
		read(4900 * time.Millisecond)
		assert.Equal(t, 2, f.Places())
		read(5100 * time.Millisecond)
		assert.Equal(t, 1, f.Places(), "the stalled one is dropped")
	})
}

// TestMissed: a slow viewer that reads again gets the newest state, not those in between.
func TestMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int64
		f := live.NewFeed(func() []byte {
			return []byte(strconv.FormatInt(made.Add(1), 10))
		}, live.FeedOptions{Every: time.Millisecond})
		slow := &gated{ResponseRecorder: httptest.NewRecorder(), open: make(chan struct{}), wrote: make(chan string, 1)}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.ServeHTTP(slow, httptest.NewRequest("GET", "/", nil))
		}()
		assert.Contains(t, <-slow.wrote, "id: 1\n")
		e := serveFeed(t, f).look(t, "")
		last := event{}
		for last.id < 50 {
			last, _ = e.next()
		}
		slow.open <- struct{}{}
		text := <-slow.wrote
		id, err := strconv.Atoi(strings.TrimPrefix(strings.Split(text, "\n")[0], "id: "))
		require.NoError(t, err)
		assert.GreaterOrEqual(t, id, last.id)
		close(slow.open)
		f.Close()
		<-ended
	})
}

// gated is a writer that waits after each event.
type gated struct {
	*httptest.ResponseRecorder
	open  chan struct{}
	wrote chan string
}

func (g *gated) Write(text []byte) (int, error) {
	select {
	case g.wrote <- string(text):
	default: // the test has ended
	}
	<-g.open
	return len(text), nil
}

func (g *gated) SetWriteDeadline(time.Time) error { return nil }

// TestEvents: the events of a page are its main part at successive moments.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPond(t)
		page := p.page(t, live.Options{Every: 10 * time.Millisecond})
		s := serve(t, page, live.ServerOptions{})
		t.Cleanup(page.Close)
		e := s.look(t, "events")
		moment := 0
		for range 5 {
			got, more := e.next()
			require.True(t, more)
			main := parse(t, got.data).all("main")
			require.Len(t, main, 1)
			now, err := strconv.Atoi(main[0].attr["data-moment"])
			require.NoError(t, err)
			assert.Greater(t, now, moment)
			moment = now
			p.tick(t)
		}
		assert.Equal(t, policy, e.r.Header.Get("Content-Security-Policy"))
	})
}
