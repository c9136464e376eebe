package agones

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// PortVariable is the environment variable with the sidecar's HTTP port. Agones sets it.
const PortVariable = "AGONES_SDK_HTTP_PORT"

const (
	defaultPort = "9358"
	callTimeout = 2 * time.Second
	answerMost  = 1 << 20 // bytes of an answer, or of a line of a watch
)

// Client makes calls to a sidecar of Agones. A call fails if it can't reach the sidecar, if ctx
// ends, if there is no answer within two seconds, or if the answer isn't as the protocol says. Each
// call has a connection of its own. So when a sidecar restarts, calls fail only until the sidecar
// listens again. A call allocates about 12 KiB on the Go heap.
type Client struct {
	base string
	http http.Client
}

// New returns a client of the sidecar at an address, such as "localhost:9358". It makes no call.
func New(address string) *Client {
	dialer := &net.Dialer{Timeout: callTimeout}
	return newClient(address, dialer.DialContext)
}

func newClient(address string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *Client {
	return &Client{base: "http://" + address, http: http.Client{
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true,
			ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// FromEnv returns a client of this server's sidecar, on localhost. The port is the value of
// [PortVariable], or 9358 if the variable isn't set. FromEnv fails if the value isn't a port.
// Without a sidecar each call fails. So a program that also runs without Agones must first check
// whether the variable is set.
func FromEnv() (*Client, error) {
	port := os.Getenv(PortVariable)
	if port == "" {
		port = defaultPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, fmt.Errorf("agones: %s=%s: want a port, 1 to 65535", PortVariable, port)
	}
	return New("localhost:" + port), nil
}

// Ready declares that the server accepts players. Ready also ends an allocation.
func (c *Client) Ready(ctx context.Context) error { return c.post(ctx, "/ready", empty{}) }

// Health declares that the server is well. Agones expects a call in each period of the fleet's spec
// ([HealthSpec]).
func (c *Client) Health(ctx context.Context) error { return c.post(ctx, "/health", empty{}) }

// Allocate declares that the server has players.
func (c *Client) Allocate(ctx context.Context) error { return c.post(ctx, "/allocate", empty{}) }

// Reserve keeps Agones from allocating or removing the server for d, rounded up to seconds. Then
// the server is ready again. If d is 0, the server stays reserved until the next call of Ready or
// Allocate.
func (c *Client) Reserve(ctx context.Context, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("agones: Reserve(%v): must not be negative", d)
	}
	seconds := d / time.Second
	if d%time.Second != 0 {
		seconds++
	}
	return c.post(ctx, "/reserve", struct {
		Seconds int64 `json:"seconds,string"`
	}{int64(seconds)})
}

// Shutdown asks Agones to end and remove the server.
func (c *Client) Shutdown(ctx context.Context) error { return c.post(ctx, "/shutdown", empty{}) }

// SetLabel sets a label of the game server. Agones puts "agones.dev/sdk-" before the key.
func (c *Client) SetLabel(ctx context.Context, key, value string) error {
	return c.call(ctx, http.MethodPut, "/metadata/label", keyValue{key, value}, &empty{})
}

// SetAnnotation sets an annotation of the game server. Agones puts "agones.dev/sdk-" before the
// key.
func (c *Client) SetAnnotation(ctx context.Context, key, value string) error {
	return c.call(ctx, http.MethodPut, "/metadata/annotation", keyValue{key, value}, &empty{})
}

// GameServer returns the game server as the sidecar knows it. The result may lag behind the calls.
func (c *Client) GameServer(ctx context.Context) (GameServer, error) {
	const method, path = http.MethodGet, "/gameserver"
	var answer gameServerJSON
	if err := c.call(ctx, method, path, nil, &answer); err != nil {
		return GameServer{}, err
	}
	g, err := answer.read()
	if err != nil {
		return GameServer{}, failed(method, path, err)
	}
	return g, nil
}

// Watch returns the game server in its current state, and again after each change. The sequence
// ends with an error, for example if ctx ends or the sidecar ends the watch. The caller may then
// call Watch again. There is no time limit between two changes.
func (c *Client) Watch(ctx context.Context) iter.Seq2[GameServer, error] {
	const method, path = http.MethodGet, "/watch/gameserver"
	return func(yield func(GameServer, error) bool) {
		fails := func(err error) { yield(GameServer{}, failed(method, path, err)) }
		limited, cancel := context.WithCancel(ctx)
		defer cancel()
		limit := time.AfterFunc(callTimeout, cancel)
		response, err := c.send(limited, method, path, nil)
		limit.Stop()
		if err != nil {
			fails(because(ctx, limited, err))
			return
		}
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, answerMost)
		for lines.Scan() {
			var line struct {
				Result *gameServerJSON `json:"result"`
				Error  *failure        `json:"error"`
			}
			err := json.Unmarshal(lines.Bytes(), &line)
			switch {
			case err != nil:
				err = fmt.Errorf("a line that is no JSON object: %w", err)
			case line.Error != nil:
				err = fmt.Errorf("the sidecar ended the watch: %q", line.Error.Message)
			case line.Result == nil:
				err = errors.New(`a line without "result"`)
			}
			var g GameServer
			if err == nil {
				g, err = line.Result.read()
			}
			if err != nil {
				fails(err)
				return
			}
			if !yield(g, nil) {
				return
			}
		}
		fails(because(ctx, limited, cmp.Or(lines.Err(), errors.New("the sidecar ended the watch"))))
	}
}

// Counter is a counter of a game server.
type Counter struct{ Count, Capacity int64 }

// Counter returns a counter. It fails if the fleet's spec has no counter of this name, or if
// Agones' feature CountsAndLists is off.
func (c *Client) Counter(ctx context.Context, name string) (Counter, error) {
	return c.counter(ctx, http.MethodGet, name, nil)
}

// SetCapacity sets a counter's capacity, and returns the counter.
func (c *Client) SetCapacity(ctx context.Context, name string, n int64) (Counter, error) {
	return c.counter(ctx, http.MethodPatch, name, struct {
		Capacity int64 `json:"capacity,string"`
	}{n})
}

// SetCount sets a counter's count, 0 to its capacity, and returns the counter.
func (c *Client) SetCount(ctx context.Context, name string, n int64) (Counter, error) {
	return c.counter(ctx, http.MethodPatch, name, struct {
		Count int64 `json:"count,string"`
	}{n})
}

// AddCount adds n to a counter's count, and returns the counter. n may be negative, but not 0. If
// the call fails, the caller can't know whether n was added. So prefer SetCount.
func (c *Client) AddCount(ctx context.Context, name string, n int64) (Counter, error) {
	if n == 0 {
		return Counter{}, fmt.Errorf("agones: AddCount(%q, 0): Agones refuses to add 0", name)
	}
	return c.counter(ctx, http.MethodPatch, name, struct {
		CountDiff int64 `json:"countDiff,string"`
	}{n})
}

func (c *Client) counter(ctx context.Context, method, name string, change any) (Counter, error) {
	path := "/v1beta1/counters/" + url.PathEscape(name)
	var answer struct {
		Name *string `json:"name"`
		counterJSON
	}
	if err := c.call(ctx, method, path, change, &answer); err != nil {
		return Counter{}, err
	}
	if answer.Name == nil || *answer.Name != name {
		return Counter{}, failed(method, path, errors.New("the answer is no counter of this name"))
	}
	counter, err := answer.read()
	if err != nil {
		return Counter{}, failed(method, path, err)
	}
	return counter, nil
}

type empty struct{}

type keyValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// failure is the sidecar's answer to a call that failed.
type failure struct {
	Message string `json:"message"`
}

func failed(method, path string, err error) error {
	return fmt.Errorf("agones: %s %s: %w", method, path, err)
}

func (c *Client) post(ctx context.Context, path string, body any) error {
	return c.call(ctx, http.MethodPost, path, body, &empty{})
}

// call makes one call and decodes its answer, a JSON object.
func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := c.exchange(limited, method, path, body)
	if err != nil {
		return failed(method, path, because(ctx, limited, err))
	}
	if err = json.Unmarshal(text, answer); err == nil && bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		err = errors.New("no object")
	}
	if err != nil {
		return failed(method, path, fmt.Errorf("the answer %s isn't as expected: %w", start(text), err))
	}
	return nil
}

// because returns the reason of a call's error: the end of ctx, or of limited's time, or else err.
func because(ctx, limited context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return fmt.Errorf("no answer within %v: %w", callTimeout, limited.Err())
	}
	return err
}

// exchange sends a request and returns the answer's text.
func (c *Client) exchange(ctx context.Context, method, path string, body any) ([]byte, error) {
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerMost+1))
	if err == nil && len(text) > answerMost {
		err = fmt.Errorf("an answer of more than %d bytes", answerMost)
	}
	return text, err
}

// send sends a request. If the status of the response isn't 200, it returns an error.
func (c *Client) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var content io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		// The outer error repeats the method and the address.
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err
		}
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	var says failure
	if json.Unmarshal(text, &says) == nil && says.Message != "" {
		text = []byte(says.Message)
	}
	return nil, fmt.Errorf("status %d: %s", response.StatusCode, start(text))
}

// start returns the start of a text from outside, quoted.
func start(text []byte) string {
	const most = 120
	if len(text) > most {
		return fmt.Sprintf("%q...", text[:most])
	}
	return fmt.Sprintf("%q", text)
}
