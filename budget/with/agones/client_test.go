package agones

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/sidecar"
	"github.com/upfront-mem/upfront/tests/step"
)

// serve returns a client of a handler.
func serve(t *testing.T, h http.Handler) *Client {
	t.Helper()
	step.Machine(t, step.Loopback())
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return New(strings.TrimPrefix(server.URL, "http://"))
}

// Each call is sent to the letter, in any order; the fake refuses all others.
func TestCalls(t *testing.T) {
	fake := sidecar.New()
	c := serve(t, fake)
	ctx := t.Context()
	require.NoError(t, c.Allocate(ctx))
	require.NoError(t, c.Health(ctx))
	require.NoError(t, c.Reserve(ctx, 4001*time.Millisecond))
	require.NoError(t, c.Reserve(ctx, 0))
	require.NoError(t, c.Reserve(ctx, math.MaxInt64))
	require.NoError(t, c.Ready(ctx))
	require.NoError(t, c.SetLabel(ctx, "timestamp", sidecar.Created))
	require.NoError(t, c.SetAnnotation(ctx, "UID", sidecar.UID))
	got, err := c.Counter(ctx, "rooms")
	require.NoError(t, err)
	assert.Equal(t, Counter{1, 10}, got)
	const big = 1 << 62 // more than a float64 holds
	got, err = c.SetCapacity(ctx, "rooms", big+1)
	require.NoError(t, err)
	assert.Equal(t, Counter{1, big + 1}, got)
	got, err = c.SetCount(ctx, "rooms", big)
	require.NoError(t, err)
	assert.Equal(t, Counter{big, big + 1}, got)
	got, err = c.AddCount(ctx, "rooms", -3)
	require.NoError(t, err)
	assert.Equal(t, Counter{big - 3, big + 1}, got)
	g, err := c.GameServer(ctx)
	require.NoError(t, err)
	assert.Equal(t, GameServer{Name: "pond-1", Namespace: "default", UID: sidecar.UID, Created: 1764200000,
		Labels: map[string]string{"agones.dev/sdk-timestamp": sidecar.Created},
		Annotations: map[string]string{"agones.dev/sdk-UID": sidecar.UID,
			"agones.dev/last-allocated": "2025-11-26T23:33:21Z"},
		Health: HealthSpec{Period: 5 * time.Second, InitialDelay: 5 * time.Second, FailureThreshold: 3},
		State:  "Ready", Address: "192.0.2.7", Ports: []Port{{"default", 7777}},
		Counters: map[string]Counter{"rooms": {big - 3, big + 1}}}, g)
	require.NoError(t, c.Shutdown(ctx))
	assert.Equal(t, []string{"POST /allocate {}", "POST /health {}", `POST /reserve {"seconds":"5"}`,
		`POST /reserve {"seconds":"0"}`, `POST /reserve {"seconds":"9223372037"}`, "POST /ready {}", `PUT /metadata/label {"key":"timestamp","value":"` +
			sidecar.Created + `"}`, `PUT /metadata/annotation {"key":"UID","value":"` + sidecar.UID + `"}`,
		"GET /v1beta1/counters/rooms", `PATCH /v1beta1/counters/rooms {"capacity":"4611686018427387905"}`,
		`PATCH /v1beta1/counters/rooms {"count":"4611686018427387904"}`,
		`PATCH /v1beta1/counters/rooms {"countDiff":"-3"}`, "GET /gameserver", "POST /shutdown {}"}, fake.Calls())
	assert.Empty(t, fake.Wrong())

	assert.EqualError(t, c.Ready(ctx), `agones: POST /ready: status 400: "after Shutdown"`)
	_, err = c.Counter(ctx, "a b/c")
	assert.EqualError(t, err, `agones: GET /v1beta1/counters/a%20b%2Fc: status 404: "no such call"`)
	assert.Len(t, fake.Wrong(), 2)
}

// Calls that can't be meant make no request.
func TestRefusedCalls(t *testing.T) {
	fake := sidecar.New()
	c := serve(t, fake)
	assert.ErrorContains(t, c.Reserve(t.Context(), -1), "must not be negative")
	_, err := c.AddCount(t.Context(), "rooms", 0)
	assert.ErrorContains(t, err, "refuses to add 0")
	assert.Empty(t, fake.Calls())
	_, err = c.AddCount(t.Context(), "rooms", 10)
	assert.EqualError(t, err, `agones: PATCH /v1beta1/counters/rooms: status 500: "out of range: 11 of 10"`)
	fake.Change(func(g *sidecar.Server) { g.Counters = false })
	_, err = c.Counter(t.Context(), "rooms")
	assert.EqualError(t, err, `agones: GET /v1beta1/counters/rooms: status 500: "CountsAndLists not enabled"`)
	assert.Empty(t, fake.Wrong())
}

// The fake refuses all other requests.
func TestTheFakeRefuses(t *testing.T) {
	for _, wrong := range []struct{ method, path, body, kind string }{
		{"GET", "/ready", "", ""}, {"POST", "/ready", "", "application/json"}, {"POST", "/health", "", ""},
		{"POST", "/health", "{}", ""}, {"POST", "/health", "{}", "text/plain"},
		{"POST", "/health", "{} ", "application/json"}, {"POST", "/reserve", `{"seconds":5}`, "application/json"},
		{"POST", "/reserve", `{}`, "application/json"}, {"PUT", "/metadata/label", `{"value":"1","key":"a"}`,
			"application/json"},
		{"PATCH", "/v1beta1/counters/rooms", `{"count_diff":"1"}`, "application/json"},
		{"PATCH", "/v1beta1/counters/rooms", `{"count":"1","capacity":"2"}`, "application/json"},
		{"PATCH", "/v1beta1/counters/rooms", `{"count":1}`, "application/json"},
		{"GET", "/v1beta1/lists/players", "", ""}, {"GET", "/gameserver?x", "", ""},
		{"GET", "/gameserver", "{}", "application/json"}} {
		fake := sidecar.New()
		r := httptest.NewRequest(wrong.method, wrong.path, strings.NewReader(wrong.body))
		if wrong.kind != "" {
			r.Header.Set("Content-Type", wrong.kind)
		}
		w := httptest.NewRecorder()
		fake.ServeHTTP(w, r)
		assert.Len(t, fake.Wrong(), 1, wrong)
		assert.NotEqual(t, http.StatusOK, w.Code, wrong)
	}
}

func TestFromEnv(t *testing.T) {
	for value, want := range map[string]string{"": "http://localhost:9358", "1": "http://localhost:1",
		"65535": "http://localhost:65535",
		"0":     "", "65536": "", "-1": "", "9358 ": "", "x": "", "localhost:1": ""} {
		t.Setenv(PortVariable, value)
		c, err := FromEnv()
		if want == "" {
			assert.EqualError(t, err, "agones: AGONES_SDK_HTTP_PORT="+value+": want a port, 1 to 65535")
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, want, c.base)
	}
}

// Answers that aren't as the protocol says are errors, of bounded size.
func TestBadAnswers(t *testing.T) {
	var answer http.HandlerFunc
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	long := strings.Repeat("x", 300)
	for _, bad := range []struct {
		status     int
		body, want string
	}{
		{200, "", "isn't as expected"}, {200, "ok", "isn't as expected"}, {200, `{"a":`, "isn't as expected"},
		{200, "[]", "isn't as expected"}, {200, "null", "isn't as expected"}, {200, "{}{}", "isn't as expected"},
		{200, `{"a":"` + long + `"`, `xxx"... isn't as expected`}, {500, "", `status 500: ""`},
		{500, `{"message":"no` + "\n" + long + `"}`, `status 500: "{\"message\":\"no\n`},
		{404, "not\nfound", `status 404: "not\nfound"`}, {501, `{"code":12,"message":"Not Implemented"}`,
			`status 501: "Not Implemented"`}, {204, "", "status 204"}, {201, "{}", "status 201"},
		{200, `{"a":"` + strings.Repeat("y", answerMost) + `"}`, "more than 1048576 bytes"}} {
		answer = func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(bad.status)
			_, _ = io.WriteString(w, bad.body)
		}
		err := c.Ready(t.Context())
		assert.ErrorContains(t, err, bad.want)
		assert.Less(t, len(err.Error()), 500)
	}
	for body, want := range map[string]string{
		`{}`: "without object_meta or status", `{"object_meta":{}}`: "without object_meta or status",
		`null`: "isn't as expected",
		`{"object_meta":{"creation_timestamp":"1.5"},"status":{}}`:                       `creation_timestamp is "1.5": want a whole number`,
		`{"object_meta":{"creation_timestamp":"9223372036854775808"},"status":{}}`:       "want a whole number",
		`{"object_meta":{"creation_timestamp":"x"},"status":{}}`:                         "isn't as expected",
		`{"object_meta":{"name":5},"status":{}}`:                                         "isn't as expected",
		`{"object_meta":{},"status":{"counters":{"rooms":{"count":"1e3"}}}}`:             `count is "1e3"`,
		`{"object_meta":{},"spec":{"health":{"period_seconds":2147483648}},"status":{}}`: "isn't as expected",
	} {
		answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
		_, err := c.GameServer(t.Context())
		assert.ErrorContains(t, err, want, body)
	}
	for _, body := range []string{`{}`, `{"name":"ponds","count":"1","capacity":"2"}`, `{"name":"rooms","count":"x"}`,
		`{"name":"rooms","count":"1.5"}`, `{"name":"rooms","capacity":"99999999999999999999"}`} {
		answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
		got, err := c.Counter(t.Context(), "rooms")
		assert.Error(t, err, body)
		assert.Zero(t, got)
	}
}

// Numbers are read as strings and as numbers, and keys may be missing.
func TestLenient(t *testing.T) {
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w,
			`{"object_meta":{"creation_timestamp":7,"new":[]},"spec":null,"status":{"counters":{"rooms":{"capacity":3}}},"x":1}`)
	}))
	g, err := c.GameServer(t.Context())
	require.NoError(t, err)
	assert.Equal(t, GameServer{Created: 7, Counters: map[string]Counter{"rooms": {0, 3}}}, g)
}

// A redirect is an error, and isn't followed.
func TestRedirect(t *testing.T) {
	followed := false
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			followed = true
			_, _ = io.WriteString(w, "{}")
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	assert.ErrorContains(t, c.Health(t.Context()), "agones: POST /health: status 307")
	_, err := c.GameServer(t.Context())
	assert.ErrorContains(t, err, "agones: GET /gameserver: status 307")
	assert.False(t, followed)
}

// Proxies of the environment aren't asked.
func TestNoProxy(t *testing.T) {
	assert.Nil(t, New("x").http.Transport.(*http.Transport).Proxy)
}

// raw returns a client of a server that reads a request's start and then calls answer.
func raw(t *testing.T, answer func(c net.Conn)) *Client {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			answer(conn)
			conn.Close()
		}
	}()
	return New(listener.Addr().String())
}

// A sidecar that closes at once, or within an answer, is an error.
func TestCutOff(t *testing.T) {
	for _, answer := range []string{"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{}",
		"SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 100<<10)} {
		c := raw(t, func(c net.Conn) { _, _ = io.WriteString(c, answer) })
		assert.ErrorContains(t, c.Ready(t.Context()), "agones: POST /ready: ", answer)
	}
}

// A connection isn't used again: a sidecar that restarted would close it, and lose the call.
func TestConnections(t *testing.T) {
	var used atomic.Int32
	c := raw(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		n, _ := c.Read(make([]byte, 1)) // the end of the connection, or another call
		used.Add(int32(1 + n))
	})
	for range 5 {
		require.NoError(t, c.Ready(t.Context()))
	}
	require.Eventually(t, func() bool { return used.Load() == 5 }, time.Minute, time.Millisecond)
}

// A watch returns each change, and ends when the caller is done.
func TestWatch(t *testing.T) {
	fake := sidecar.New()
	c := serve(t, fake)
	var states []string
	for g, err := range c.Watch(t.Context()) {
		require.NoError(t, err)
		states = append(states, g.State)
		next := map[string]string{"Scheduled": "Ready", "Ready": "Allocated"}[g.State]
		if next == "" {
			break
		}
		fake.Change(func(g *sidecar.Server) { g.State = next })
	}
	assert.Equal(t, []string{"Scheduled", "Ready", "Allocated"}, states)
	assert.Equal(t, []string{"GET /watch/gameserver"}, fake.Calls())
	assert.Empty(t, fake.Wrong())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	for _, err := range c.Watch(ctx) {
		if seen++; seen == 1 {
			cancel()
			continue
		}
		assert.ErrorIs(t, err, context.Canceled)
	}
	assert.Equal(t, 2, seen)
}

// A watch ends with an error at the first line that isn't a game server.
func TestBadWatch(t *testing.T) {
	const well = `{"result":{"object_meta":{},"status":{"state":"Ready"}}}` + "\n"
	for body, want := range map[string]string{
		well + well:                          "the sidecar ended the watch",
		well + well + well[:20]:              "a line that is no JSON object",
		well + well + "\n":                   "a line that is no JSON object",
		well + well + "{}\n":                 `a line without "result"`,
		well + well + `{"result":{}}` + "\n": "without object_meta or status",
		well + well + `{"error":{"code":13,"message":"gone\n"}}` + "\n": `the sidecar ended the watch: "gone\n"`,
		well + well + strings.Repeat("x", answerMost+1):                 "token too long",
	} {
		c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		var errs []error
		for g, err := range c.Watch(t.Context()) {
			if err == nil {
				assert.Equal(t, "Ready", g.State)
			}
			errs = append(errs, err)
		}
		require.Len(t, errs, 3, "%.80s", body)
		assert.NoError(t, errors.Join(errs[:2]...))
		assert.ErrorContains(t, errs[2], want)
		assert.ErrorContains(t, errs[2], "agones: GET /watch/gameserver: ")
	}
	c := serve(t, http.NotFoundHandler())
	for _, err := range c.Watch(t.Context()) {
		assert.ErrorContains(t, err, "agones: GET /watch/gameserver: status 404")
	}
}

// wire is a network in memory, for tests whose time is that of synctest.
type wire struct {
	conns chan net.Conn
	down  chan struct{} // closed: nothing listens
}

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.down:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error   { return nil }
func (w *wire) Addr() net.Addr { return &net.TCPAddr{} }

// dial returns a client of a handler on a wire. It must be called within synctest.Test; unplug
// ends the server.
func dial(t *testing.T, h http.Handler) (c *Client, unplug func()) {
	w := &wire{conns: make(chan net.Conn), down: make(chan struct{})}
	var answering atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answering.Add(1)
		defer answering.Add(-1)
		h.ServeHTTP(w, r)
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(w)
	}()
	unplugged := false
	unplug = func() {
		if !unplugged {
			unplugged = true
			close(w.down)
			_ = server.Close()
			<-ended
			for answering.Load() > 0 {
				time.Sleep(time.Second)
			}
		}
	}
	t.Cleanup(unplug)
	return newClient("sidecar:9358", func(ctx context.Context, _, _ string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case w.conns <- there:
			return here, nil
		case <-w.down:
			return nil, errors.New("connection refused")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}), unplug
}

// A sidecar that answers late, or not, or stops within an answer, costs two seconds.
func TestSlow(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"never": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"after a minute": func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Minute)
			_, _ = io.WriteString(w, "{}")
		},
		"half": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "{")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"drop by drop": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(100 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					answer(w, r)
				}))
				began := time.Now()
				err := c.Ready(t.Context())
				assert.ErrorContains(t, err, "agones: POST /ready: no answer within 2s")
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, callTimeout, time.Since(began))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				assert.EqualError(t, c.Ready(ctx), "agones: POST /ready: context deadline exceeded")
				assert.Equal(t, 3*time.Second, time.Since(began))
			})
		})
	}
	// A watch waits two seconds for its start, and for a change as long as it takes.
	synctest.Test(t, func(t *testing.T) {
		fake := sidecar.New()
		c, _ := dial(t, fake)
		seen := 0
		for _, err := range c.Watch(t.Context()) {
			require.NoError(t, err)
			if seen++; seen == 2 {
				break
			}
			time.AfterFunc(time.Hour, func() { fake.Change(func(g *sidecar.Server) { g.State = "Ready" }) })
		}
		fake.Instead(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		for _, err := range c.Watch(t.Context()) {
			assert.ErrorContains(t, err, "agones: GET /watch/gameserver: no answer within 2s")
		}
	})
}

// FuzzAnswers: no answer makes a client panic, or is believed without an error unless it is an
// object.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"result":{"object_meta":{"creation_timestamp":"1"},"status":{"counters":{"rooms":{"count":"1"}}}}}`))
	f.Add([]byte(`{"name":"rooms","count":"1","capacity":"10"}`))
	f.Add([]byte(`{"object_meta":null,"status":[]}`))
	var body []byte
	fixed := roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
	})
	c := New("x")
	c.http.Transport = fixed
	f.Fuzz(func(t *testing.T, text []byte) {
		body = text
		err := c.Ready(t.Context())
		if first := bytes.TrimLeft(text, " \t\r\n"); err == nil && !bytes.HasPrefix(first, []byte("{")) {
			t.Errorf("believed %q", text)
		}
		_, _ = c.GameServer(t.Context())
		_, _ = c.Counter(t.Context(), "rooms")
		for g, err := range c.Watch(t.Context()) {
			_ = fmt.Sprint(g, err)
		}
	})
}

type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
