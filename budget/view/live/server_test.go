package live_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/view/live"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestLoopbackAlone: other addresses need Public.
func TestLoopbackAlone(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		_, err := live.Listen(address, nothing, live.ServerOptions{})
		require.Error(t, err, address)
		assert.Contains(t, err.Error(), "ServerOptions.Public")
	}
	_, err := live.Listen("127.0.0.1:nothing", nothing, live.ServerOptions{})
	require.ErrorContains(t, err, "live: ")
	step.Machine(t, step.Loopback())
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

// TestThousandViewers: with a thousand viewers that don't read, the server keeps its limit, answers
// good clients as soon as possible, delays no tick, and ends completely at Close.
func TestThousandViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 64
		before := runtime.NumGoroutine()
		p := newPond(t)
		page := p.page(t, live.Options{Every: 20 * time.Millisecond})
		s := serve(t, page, live.ServerOptions{Connections: most})

		stop, ended := make(chan struct{}), make(chan int)
		go func() {
			ticks := 0
			for last := time.Now(); ; ticks++ {
				select {
				case <-stop:
					ended <- ticks
					return
				case <-time.After(time.Millisecond):
				}
				p.tick(t)
				assert.Equal(t, time.Millisecond, time.Since(last), "a tick waits")
				last = time.Now()
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
		for i := range 1000 {
			s.dial(t, asks[i%len(asks)])
			assert.LessOrEqual(t, s.Open(), most)
			if i%100 == 99 {
				synctest.Wait()
				assert.LessOrEqual(t, runtime.NumGoroutine(), before+3*most+10,
					"each has two in the server, and writes with one")
			}
		}
		var heap runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&heap)
		assert.Less(t, heap.HeapAlloc, uint64(64<<20))
		begin := time.Now()
		for {
			r, err := s.client.Get(s.URL())
			if err == nil {
				assert.Contains(t, body(t, r), `id="part-level"`)
				require.NoError(t, r.Body.Close())
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		assert.LessOrEqual(t, time.Since(begin), 10*time.Second,
			"who asks well is answered when the first have had their time")

		close(stop)
		assert.Greater(t, <-ended, 50)
		page.Close()
		require.NoError(t, s.Close())
		assert.Zero(t, s.Open())
	}) // the bubble ends after all its goroutines
}

// TestPerAddress: one address gets its share of the connections, and others get theirs. A further
// connection gets an answer with the numbers.
func TestPerAddress(t *testing.T) {
	step.Machine(t, step.Loopback())
	const each = 3
	held := make(chan bool)
	s, err := live.Listen("0.0.0.0:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			held <- true
			<-r.Context().Done()
		}
	}), live.ServerOptions{Public: true, PerAddress: each})
	require.NoError(t, err)
	defer s.Close()
	_, port, err := net.SplitHostPort(strings.Trim(s.URL(), "htp:/"))
	require.NoError(t, err)
	dial := func(from net.IP, path string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
		c, err := d.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			t.Skip("where this is an address of the machine, go test ./budget/view/live runs it:", err)
		}
		t.Cleanup(func() { c.Close() })
		_, _ = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
		return c
	}
	answer := func(c net.Conn) string {
		text, _ := io.ReadAll(c) // a refused connection may end with a reset after the answer
		return string(text)
	}
	one, other := net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 2)
	var list []net.Conn
	for range each {
		list = append(list, dial(one, "/hold"))
		<-held
	}
	refused := answer(dial(one, "/"))
	assert.Contains(t, refused, "HTTP/1.1 503 ")
	assert.Contains(t, refused, "\r\n\r\nthis address has 3 of the 3 connections that one address may have; the "+
		"server has 128\n")
	assert.Contains(t, answer(dial(other, "/")), "HTTP/1.1 200 ")
	assert.Equal(t, each, s.Open())
	require.NoError(t, list[0].Close())
	for !strings.Contains(answer(dial(one, "/")), "HTTP/1.1 200 ") { // once the server has seen it
		time.Sleep(time.Millisecond)
	}
}

// from is a connection from an address.
type from struct {
	net.Conn
	address net.TCPAddr
}

func (f from) RemoteAddr() net.Addr { return &f.address }

// TestPartyOf: the origin of an IPv6 address is its network.
func TestPartyOf(t *testing.T) {
	of := func(ip string) netip.Addr {
		return live.PartyOf(from{address: net.TCPAddr{IP: net.ParseIP(ip), Zone: "lo"}})
	}
	assert.Equal(t, of("1.2.3.4"), of("::ffff:1.2.3.4"))
	assert.NotEqual(t, of("1.2.3.4"), of("1.2.3.5"))
	assert.Equal(t, of("2001:db8:1:2::3"), of("2001:db8:1:2:3:4:5:6"))
	assert.NotEqual(t, of("2001:db8:1:2::3"), of("2001:db8:1:3::3"))
	mine, its := net.Pipe()
	defer mine.Close()
	assert.Equal(t, netip.Addr{}, live.PartyOf(its))
}

// TestLateRequest: an unfinished request is cut off in time.
func TestLateRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, nothing, live.ServerOptions{})
		for _, begun := range []string{"", "GET / HT", "GET / HTTP/1.1\r\nHost: localhost\r\nA: b",
			"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nbody"} {
			begin := time.Now()
			_, err := io.ReadAll(s.dial(t, begun))
			assert.NoError(t, err, "closed by the server: %q", begun)
			assert.InDelta(t, 5, time.Since(begin).Seconds(), 1, "%q", begun)
		}
	})
}

// TestLargeHeader: a large header is refused.
func TestLargeHeader(t *testing.T) {
	s := serve(t, nothing, live.ServerOptions{})
	r, err := http.NewRequest("GET", s.URL(), nil)
	require.NoError(t, err)
	r.Header.Set("A", strings.Repeat("a", 16<<10))
	answer, err := s.client.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusRequestHeaderFieldsTooLarge, answer.StatusCode)
}

// TestCloseCuts: Close cuts clients that never read.
func TestCloseCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := newPond(t).page(t, live.Options{Every: time.Millisecond})
		s := serve(t, page, live.ServerOptions{})
		for range 4 {
			s.dial(t, "GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		}
		synctest.Wait()
		assert.Equal(t, 4, s.Open())
		begin := time.Now()
		require.NoError(t, s.Close())
		assert.Equal(t, time.Second, time.Since(begin))
		assert.Zero(t, s.Open())
	})
}

// TestCloseEndsStreams: Close ends streams that are read, without a wait.
func TestCloseEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := newPond(t).page(t, live.Options{})
		s := serve(t, page, live.ServerOptions{})
		e := s.look(t, "events")
		_, more := e.next()
		require.True(t, more)
		go func() {
			for more := true; more; {
				_, more = e.next()
			}
		}()
		begin := time.Now()
		require.NoError(t, s.Close())
		assert.Less(t, time.Since(begin), time.Second, "less than who reads nothing is given")
	})
}

// TestLongStream: a stream outlasts the time limit of a request.
func TestLongStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page := newPond(t).page(t, live.Options{})
		s := serve(t, page, live.ServerOptions{})
		t.Cleanup(page.Close)
		e := s.look(t, "events")
		for begin := time.Now(); time.Since(begin) < 20*time.Second; {
			_, more := e.next()
			require.True(t, more)
		}
	})
}

// TestPace: requests without pause get no more than the limit.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := make([]byte, 1<<20)
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }),
			live.ServerOptions{})
		var got atomic.Int64
		var all sync.WaitGroup
		begin := time.Now()
		for range 8 {
			all.Go(func() {
				// without a pace no time passes
				for time.Since(begin) < 250*time.Millisecond && got.Load() < live.Bandwidth {
					r, err := s.client.Get(s.URL())
					if !assert.NoError(t, err) {
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
		assert.Greater(t, got.Load(), int64(1<<20))
	})
}
