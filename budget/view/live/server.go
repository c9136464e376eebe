package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// Server serves a page, or another handler that reads, with a bound on time and on connections.
type Server struct {
	http   http.Server
	listen *bounded
	cancel context.CancelFunc
	ended  chan struct{}
}

// ServerOptions are the bounds of a server.
type ServerOptions struct {
	Public      bool // listen beyond this machine, too: whoever reaches the address may look
	Connections int  // at once; 0: 128. One more is closed without an answer
}

const (
	connections = 128
	headerMax   = 4 << 10  // bytes of a request, and net/http adds as many
	kernelMax   = 64 << 10 // bytes that the system keeps of answers that a viewer doesn't read
)

// What a connection may take, of time.
var (
	headerTime   = 5 * time.Second
	shutdownTime = time.Second
)

// Listen serves h on a TCP address, such as "127.0.0.1:0" (port 0: any that is free), in a goroutine of its own until
// Close. An address that others than this machine reach is refused, unless o.Public says so.
//
// A request has 5 seconds to come, and so has the next one of its connection; its header has 8 KiB at most. Each
// connection costs a goroutine or two, and of the system's memory 64 KiB and more where nobody reads.
func Listen(address string, h http.Handler, o ServerOptions) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	if a, ok := listener.Addr().(*net.TCPAddr); !o.Public && (!ok || !a.IP.IsLoopback()) {
		return nil, errors.Join(fmt.Errorf("live: %s is reached from beyond this machine, and a page has no password: "+
			"listen on 127.0.0.1:PORT, or set ServerOptions.Public", address), listener.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		listen: &bounded{Listener: listener, most: int64(cmp.Or(o.Connections, connections))},
		cancel: cancel,
		ended:  make(chan struct{}),
	}
	s.http = http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       headerTime,
		MaxHeaderBytes:    headerMax,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(s.listen) // it ends by Close alone
	}()
	return s, nil
}

// URL is where the server is found: "http://127.0.0.1:43210/".
func (s *Server) URL() string { return "http://" + s.listen.Addr().String() + "/" }

// Close stops the server: streams end, other answers have a second, then connections are cut.
func (s *Server) Close() error {
	s.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-s.ended
	return err
}

// bounded is a listener that closes what comes while too many are open.
type bounded struct {
	net.Listener
	most int64
	open atomic.Int64
}

func (l *bounded) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Load() < l.most { // one goroutine accepts
			l.open.Add(1)
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetWriteBuffer(kernelMax) // a wish; without it the system decides
			}
			return &counted{Conn: c, open: &l.open}, nil
		}
		_ = c.Close() // nobody was answered on it
	}
}

// counted is a connection that gives its place back once.
type counted struct {
	net.Conn
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}
