package live_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/view/live"
)

// network is a listener with unbuffered connections in memory. In a bubble of testing/synctest,
// waiting for a connection takes only the bubble's time, so a test can check durations.
type network struct {
	calls chan net.Conn
	down  chan struct{}
	once  sync.Once
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.calls:
		return c, nil
	case <-n.down:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.down) })
	return nil
}

func (n *network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (n *network) connect() (net.Conn, error) {
	mine, its := net.Pipe()
	select {
	case n.calls <- its:
		return mine, nil
	case <-n.down:
		return nil, net.ErrClosed
	}
}

// site is a server in its own network.
type site struct {
	*live.Server
	network *network
	client  http.Client
}

// serve serves h until the test ends.
func serve(t testing.TB, h http.Handler, o live.ServerOptions) *site {
	t.Helper()
	n := &network{calls: make(chan net.Conn), down: make(chan struct{})}
	s := &site{Server: live.Serve(n, h, o), network: n}
	s.client.Transport = &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return n.connect() }}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// get requests a path. The body is closed when the test ends.
func (s *site) get(t testing.TB, path string) *http.Response {
	t.Helper()
	r, err := s.client.Get(s.URL() + path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Body.Close() })
	return r
}

// dial connects, sends a request, and never reads.
func (s *site) dial(t testing.TB, ask string) net.Conn {
	t.Helper()
	c, err := s.network.connect()
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	go func() { _, _ = io.WriteString(c, ask) }() // the server may have closed it
	return c
}
