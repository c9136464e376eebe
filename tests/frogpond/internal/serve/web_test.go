//go:build linux

package serve

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/web"
	"github.com/upfront-mem/upfront/tests/step"
)

var pageOn = regexp.MustCompile(`page on (http://\S+/)`)

func beginWeb(t *testing.T, change func(o *Options)) (s *server, url string) {
	t.Helper()
	s = begin(t, func(o *Options) {
		o.HTTP = "127.0.0.1:0"
		if change != nil {
			change(o)
		}
	})
	return s, pageOn.FindStringSubmatch(s.said.String())[1]
}

func fetch(t *testing.T, method, url string) (code int, kind, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Contains(t, answer.Header.Get("Content-Security-Policy"), "default-src 'none'", url)
	return answer.StatusCode, answer.Header.Get("Content-Type"), string(all)
}

// Each page answers, and other requests are refused.
func TestWeb(t *testing.T) {
	t.Parallel()
	s, url := beginWeb(t, nil)
	p := s.joins(client.Options{Name: "<b>in</b>", Room: 1, Seed: 1})
	s.until("it plays", p.saw(20))
	for path, kind := range map[string]string{"": "text/html", "rooms/": "text/html", "room/0": "text/html",
		"room/1": "text/html", "rooms/room.js": "text/javascript", "rooms/room.css": "text/css",
		"rooms/icon.svg": "image/svg+xml", "map/MAP01.json": "application/json", "map/MAP02.json": "application/json"} {
		code, is, text := fetch(t, http.MethodGet, url+path)
		assert.Equal(t, 200, code, path)
		assert.True(t, strings.HasPrefix(is, kind), "%s: %s", path, is)
		assert.NotEmpty(t, text)
		assert.NotContains(t, strings.ReplaceAll(text, "http://www.w3.org/", ""), "http://", path)
	}
	for _, path := range []string{"room", "room/", "room/2", "room/-1", "room/01", "room/x", "room/0/", "room/0/x",
		"room/9999999999999999999999", "map/MAP01", "map/E1M1.json", "map/..%2fserve.json",
		"rooms/x", "rooms/assets/room.js"} {
		code, _, _ := fetch(t, http.MethodGet, url+path)
		assert.Equal(t, 404, code, path)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		code, _, _ := fetch(t, method, url+"rooms/")
		assert.Equal(t, 405, code, method)
	}
	code, _, text := fetch(t, http.MethodGet, url+"rooms/?x="+strings.Repeat("x", 3000))
	assert.Equal(t, 414, code, text)
	_, _, text = fetch(t, http.MethodGet, url+"room/1")
	assert.Contains(t, text, "&lt;b&gt;in&lt;/b&gt;", "a name is no part of the page")
	assert.NotContains(t, text, "<b>")
	s.end()
}

func events(t *testing.T, url string, to any, each func() (more bool)) {
	t.Helper()
	answer, err := http.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	for lines := bufio.NewReader(answer.Body); ; {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			require.NoError(t, json.Unmarshal([]byte(data), to))
			if !each() {
				return
			}
		}
	}
}

// A room's stream sends scene after scene during play, and so does the list's.
func TestWebStreams(t *testing.T) {
	t.Parallel()
	s, url := beginWeb(t, nil)
	p := s.joins(client.Options{Name: "in", Room: 0, Seed: 1})
	s.until("it plays", p.saw(20))
	var scene *web.Scene
	ticks := []uint32{0}
	events(t, url+"room/0/events", &scene, func() bool {
		if scene == nil { // a busy machine delayed a tick
			return true
		}
		assert.GreaterOrEqual(t, scene.Tick, ticks[len(ticks)-1])
		assert.Len(t, scene.Players, 1)
		assert.Equal(t, "MAP01", scene.Map)
		ticks = slices.Compact(append(ticks, scene.Tick))
		return len(ticks) < step.Pick(4, 10, 10)
	})
	var list []web.Brief
	seen := map[uint32]bool{}
	events(t, url+"rooms/events", &list, func() bool {
		assert.Len(t, list, 2)
		assert.Equal(t, 1, list[0].Players)
		seen[list[0].Tick] = true
		return len(seen) < 3
	})
	s.end()
}

// The page is only for this machine, unless the options say otherwise.
func TestWebAddress(t *testing.T) {
	t.Parallel()
	s, _ := beginWeb(t, nil)
	o := *s.o
	o.HTTP = "0.0.0.0:0"
	_, err := Run(t.Context(), &o)
	assert.ErrorContains(t, err, "-http: ")
	s.end()
	s, _ = beginWeb(t, func(o *Options) { o.HTTP, o.HTTPPublic = "0.0.0.0:0", true })
	s.end()
}

// Pages stay available while another plan is opened, and don't read released memory.
func TestWebAtReload(t *testing.T) {
	t.Parallel()
	reload, plans := make(chan os.Signal, 1), 0
	s, url := beginWeb(t, func(o *Options) {
		o.Rooms, o.Reload = 1, reload
		o.Plan = func() (budget.Plan, error) {
			plan := smallPlan(2)
			plan.Regions[1].Size += uint64(plans%2) * 8 * budget.MiB
			plans++
			return plan, nil
		}
	})
	var asking sync.WaitGroup
	var quit atomic.Bool
	var asked [2]atomic.Int32
	for i, path := range []string{"room/0", "rooms/"} {
		asking.Go(func() {
			for !quit.Load() {
				if answer, err := http.Get(url + path); assert.NoError(t, err) {
					answer.Body.Close()
					asked[i].Add(1)
				}
			}
		})
	}
	for n := 2; n < 8; n++ {
		reload <- os.Interrupt
		s.until("it listens again", func() bool { return strings.Count(s.said.String(), "players on") == n })
	}
	s.until("answers", func() bool { return asked[0].Load() > 0 && asked[1].Load() > 0 })
	quit.Store(true)
	asking.Wait()
	s.end()
}

// hostile returns the connection of a viewer that misbehaves: it sends half a request, doesn't read
// its stream, or requests missing pages. It returns nil if the server takes no more.
func hostile(i int, address string) net.Conn {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return nil // the system's queue of connections is full
	}
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	ask := []string{
		"GET /room/0/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /room/0 HTTP/1.1\r\nHost: local",
		"GET /room/%2e%2e/%00?" + strings.Repeat("a=b&", 500) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		strings.Repeat("GET /room/0 HTTP/1.1\r\nHost: localhost\r\n\r\n", 50),
		"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: evil.example\r\n" + strings.Repeat("X-A: b\r\n", 3000) + "\r\n",
		"",
	}[i%8]
	_, _ = io.WriteString(c, ask) // the server may have closed it
	return c
}

// Many hostile viewers use a bounded number of goroutines and a bounded part of the heap. Players
// play on meanwhile, and all is freed at the end.
func TestHostileViewers(t *testing.T) {
	const connections = 128
	before := runtime.NumGoroutine()
	s, url := beginWeb(t, func(o *Options) { o.HTTPEach = connections })
	p := s.joins(client.Options{Name: "in", Room: 0, Seed: 1})
	s.until("it plays", p.saw(10))
	calm := runtime.NumGoroutine()
	heap := heapInUse()
	var list []net.Conn
	address := strings.Trim(strings.TrimPrefix(url, "http://"), "/")
	most, largest := 0, uint64(0)
	for i := range step.Pick(200, 1000, 1000) {
		if c := hostile(i, address); c != nil {
			list = append(list, c)
		}
		if i%50 == 49 {
			most, largest = max(most, runtime.NumGoroutine()), max(largest, heapInUse())
		}
	}
	s.until("it plays on", p.sees(20))
	most, largest = max(most, runtime.NumGoroutine()), max(largest, heapInUse())
	assert.LessOrEqual(t, most, calm+2*connections+8, "a goroutine or two of each connection")
	assert.LessOrEqual(t, largest, heap+32<<20)
	t.Logf("%d connections: %d goroutines, %d before; %d KiB of Go heap, %d before", len(list), most, calm,
		largest>>10, heap>>10)
	for _, c := range list {
		c.Close()
	}
	s.until("others see again", func() bool {
		answer, err := http.Get(url + "room/0")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == 200
	})
	p.leave()
	r := s.end()
	assert.Zero(t, r.Faults)
	t.Logf("%d ticks, %d late; CPU p50 %d us, p99 %d us", r.Ticks, r.LateTicks, r.CPUP50, r.CPUP99)
	http.DefaultClient.CloseIdleConnections()
	s.until("no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// If viewers of one address hold all connections that they can get, viewers of other addresses are
// still answered at once.
func TestViewersOfOneAddress(t *testing.T) {
	t.Parallel()
	s, url := beginWeb(t, nil)
	address := strings.Trim(strings.TrimPrefix(url, "http://"), "/")
	for range 150 {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer c.Close()
	}
	other := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}}
	answer, err := other.Get(url + "rooms/")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	s.end()
}

// heapInUse returns the size of the Go heap after a collection.
func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}

// A viewer that reads nothing doesn't delay the others. In soak, on an otherwise idle machine, the
// delay is less than a second.
func TestStalledViewer(t *testing.T) {
	t.Parallel()
	s, url := beginWeb(t, nil)
	p := s.joins(client.Options{Name: "in", Room: 0, Seed: 1})
	s.until("it plays", p.saw(20))
	c := hostile(0, strings.Trim(strings.TrimPrefix(url, "http://"), "/"))
	require.NotNil(t, c)
	defer c.Close()
	var scene *web.Scene
	ticks := []uint32{}
	events(t, url+"room/0/events", &scene, func() bool {
		if scene != nil {
			ticks = append(ticks, scene.Tick)
		}
		return len(ticks) < step.Pick(5, 15, 15)
	})
	for i := range step.Pick(0, 0, len(ticks)-1) {
		assert.Less(t, ticks[i+1]-ticks[i], uint32(ticksPerSecond), fmt.Sprint(ticks))
	}
	s.end()
}
