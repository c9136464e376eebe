package live_test

import (
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/view/live"
)

// TestLoopbackAlone unless it is told otherwise.
func TestLoopbackAlone(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		_, err := live.Listen(address, nothing, live.ServerOptions{})
		require.Error(t, err, address)
		assert.Contains(t, err.Error(), "ServerOptions.Public")
	}
	_, err := live.Listen("127.0.0.1:nothing", nothing, live.ServerOptions{})
	require.ErrorContains(t, err, "live: ")
	for address, public := range map[string]bool{"127.0.0.1:0": false, "localhost:0": false, "0.0.0.0:0": true} {
		s, err := live.Listen(address, nothing, live.ServerOptions{Public: public})
		require.NoError(t, err, address)
		_, port, err := net.SplitHostPort(strings.Trim(s.URL(), "htp:/"))
		require.NoError(t, err)
		r, err := http.Get("http://127.0.0.1:" + port)
		require.NoError(t, err)
		assert.Equal(t, "here", body(t, r))
		require.NoError(t, s.Close())
		_, err = http.Get(s.URL())
		require.Error(t, err)
	}
}

// dial connects, asks, and never reads.
func dial(t testing.TB, s *live.Server, ask string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.Trim(s.URL(), "htp:/"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, _ = io.WriteString(c, ask) // the server may have closed it
	return c
}

// TestThousandViewers who don't read: the server holds as many as it should, answers who asks well as soon as it may,
// nobody's tick waits, and all is gone when it is closed.
func TestThousandViewers(t *testing.T) {
	const most = 64
	live.Hurry(t, 500*time.Millisecond)
	before := runtime.NumGoroutine()
	p := newPond(t)
	page := p.page(t, live.Options{Every: 20 * time.Millisecond})
	s, err := live.Listen("127.0.0.1:0", page, live.ServerOptions{Connections: most})
	require.NoError(t, err)

	var longest atomic.Int64
	stop, ended := make(chan struct{}), make(chan int)
	go func() {
		ticks := 0
		for last := time.Now(); ; last = time.Now() {
			select {
			case <-stop:
				ended <- ticks
				return
			case <-time.After(time.Millisecond):
			}
			p.tick(t)
			ticks++
			longest.Store(max(longest.Load(), int64(time.Since(last))))
		}
	}()

	asks := []string{
		"",
		"GET / HTTP/1.1\r\nHost: 127.0.0.1",
		"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		strings.Repeat("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 50),
		strings.Repeat("GET /?"+strings.Repeat("%", 5000)+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 3),
		"\x00\x01\x02\r\n\r\n",
	}
	var heap uint64
	for i := range 1000 {
		dial(t, s, asks[i%len(asks)])
		assert.LessOrEqual(t, s.Open(), most)
		if i%100 == 99 {
			assert.LessOrEqual(t, runtime.NumGoroutine(), before+2*most+10)
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			heap = max(heap, m.HeapInuse)
		}
	}
	assert.Less(t, heap, uint64(256<<20))
	require.Eventually(t, func() bool {
		client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := client.Get(s.URL())
		return err == nil && strings.Contains(body(t, r), `id="part-level"`)
	}, 20*time.Second, 20*time.Millisecond, "who asks well is answered")

	close(stop)
	ticks := <-ended
	t.Logf("%d ticks, the longest took %v, waiting a millisecond included; heap at most %d KiB", ticks, time.Duration(longest.Load()), heap>>10)
	assert.Greater(t, ticks, 50)
	begin := time.Now()
	page.Close()
	require.NoError(t, s.Close())
	assert.Less(t, time.Since(begin), 10*time.Second)
	assert.Zero(t, s.Open())
	gone := func() bool { return runtime.NumGoroutine() <= before+1 } // one asks this
	assert.Eventually(t, gone, 5*time.Second, time.Millisecond)
}

// TestLateRequest: who begins and doesn't end is gone in time.
func TestLateRequest(t *testing.T) {
	live.Hurry(t, 100*time.Millisecond)
	s, err := live.Listen("127.0.0.1:0", nothing, live.ServerOptions{})
	require.NoError(t, err)
	defer s.Close()
	for _, begun := range []string{"", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\nA: b", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nbody"} {
		c := dial(t, s, begun)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(5*time.Second)))
		_, err := io.ReadAll(c)
		assert.NoError(t, err, "closed by the server: %q", begun)
	}
}

// TestLargeHeader is refused.
func TestLargeHeader(t *testing.T) {
	s, err := live.Listen("127.0.0.1:0", nothing, live.ServerOptions{})
	require.NoError(t, err)
	defer s.Close()
	r, err := http.NewRequest("GET", s.URL(), nil)
	require.NoError(t, err)
	r.Header.Set("A", strings.Repeat("a", 16<<10))
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer.StatusCode)
}

// TestCloseCuts who never reads.
func TestCloseCuts(t *testing.T) {
	page := newPond(t).page(t, live.Options{Every: time.Millisecond})
	s, err := live.Listen("127.0.0.1:0", page, live.ServerOptions{})
	require.NoError(t, err)
	for range 4 {
		dial(t, s, "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	}
	require.Eventually(t, func() bool { return s.Open() == 4 }, 5*time.Second, time.Millisecond)
	begin := time.Now()
	require.NoError(t, s.Close())
	assert.Less(t, time.Since(begin), 5*time.Second)
	assert.Zero(t, s.Open())
}

// TestCloseEndsStreams of who reads, without a wait.
func TestCloseEndsStreams(t *testing.T) {
	live.Polite(t)
	page := newPond(t).page(t, live.Options{})
	s, err := live.Listen("127.0.0.1:0", page, live.ServerOptions{})
	require.NoError(t, err)
	e := look(t, s.URL()+"events")
	_, more := e.next()
	require.True(t, more)
	begin := time.Now()
	require.NoError(t, s.Close())
	assert.Less(t, time.Since(begin), 4*time.Second, "less than who reads nothing is given")
}

// TestLongStream outlasts the time that a request has to come.
func TestLongStream(t *testing.T) {
	live.Hurry(t, 100*time.Millisecond)
	page := newPond(t).page(t, live.Options{Every: 10 * time.Millisecond})
	s, err := live.Listen("127.0.0.1:0", page, live.ServerOptions{})
	require.NoError(t, err)
	defer s.Close()
	e := look(t, s.URL()+"events")
	for begin := time.Now(); time.Since(begin) < 400*time.Millisecond; {
		_, more := e.next()
		require.True(t, more)
	}
}

// TestPace: who asks without pause gets no more than all are to have.
func TestPace(t *testing.T) {
	text := make([]byte, 1<<20)
	s, err := live.Listen("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }),
		live.ServerOptions{})
	require.NoError(t, err)
	defer s.Close()
	var got atomic.Int64
	var all sync.WaitGroup
	begin := time.Now()
	for range 8 {
		all.Go(func() {
			for time.Since(begin) < time.Second {
				r, err := http.Get(s.URL())
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
				got.Add(n)
			}
		})
	}
	all.Wait()
	assert.Less(t, float64(got.Load()), 1.1*live.Bandwidth*time.Since(begin).Seconds())
	assert.Greater(t, got.Load(), int64(4<<20))
}
