package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
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

	// PerAddress is how many of the connections one IP address may have, the addresses of an IPv6 /64
	// together. 0: a quarter, so that no viewer keeps the others out. One more is answered with status
	// 503 and the numbers, and closed. Behind a proxy all viewers have its address.
	PerAddress int
}

const (
	connections = 128
	headerMax   = 4 << 10  // bytes of a request, and net/http adds as many
	kernelMax   = 64 << 10 // bytes that the system keeps of answers that a viewer doesn't read

	bandwidth = 64 << 20               // bytes a second that all get together
	writeTime = 200 * time.Microsecond // what each write costs beside
)

// What a connection may take, of time.
const (
	headerTime   = 5 * time.Second
	shutdownTime = time.Second
)

// Listen serves h on a TCP address, such as "127.0.0.1:0" (port 0: any that is free), in a goroutine of its own until
// Close. An address that others than this machine reach is refused, unless o.Public says so.
//
// A request has 5 seconds to come, and so has the next one of its connection; its header has 8 KiB at most. Each
// connection costs a goroutine or two, and of the system's memory 64 KiB and more where nobody reads. All together get
// 64 MiB a second, in a few thousand writes at most: who asks again and again takes a few per cent of a core from the program,
// and waits. One address has a quarter of the connections, unless o.PerAddress says otherwise.
func Listen(address string, h http.Handler, o ServerOptions) (*Server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	if a, ok := listener.Addr().(*net.TCPAddr); !o.Public && (!ok || !a.IP.IsLoopback()) {
		return nil, errors.Join(fmt.Errorf("live: %s is reached from beyond this machine, and a page has no password: "+
			"listen on 127.0.0.1:PORT, or set ServerOptions.Public", address), listener.Close())
	}
	return serve(listener, h, o), nil
}

// serve serves h to whoever the listener lets in.
func serve(listener net.Listener, h http.Handler, o ServerOptions) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		listen: newBounded(listener, o),
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
	return s
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
	each int // of them, of one address
	open atomic.Int64
	pace pace
	mu   sync.Mutex
	held map[netip.Addr]int // how many connections each has
}

func newBounded(listener net.Listener, o ServerOptions) *bounded {
	most := cmp.Or(o.Connections, connections)
	return &bounded{Listener: listener, most: int64(most), each: cmp.Or(o.PerAddress, max(1, most/4)),
		held: map[netip.Addr]int{}}
}

// partyOf is where a connection comes from: an IPv4 address, or the first 64 bits of an IPv6
// address. A connection that isn't TCP has none.
func partyOf(c net.Conn) netip.Addr {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip
	}
	const network = 64
	prefix, _ := ip.Prefix(network) // each IPv6 address has one
	return prefix.Addr()
}

// take gives a connection one of its address's places, if there is one left.
func (l *bounded) take(of netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of.IsValid() && l.held[of] >= l.each {
		return false
	}
	l.held[of]++
	l.open.Add(1)
	return true
}

func (l *bounded) giveBack(of netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[of]--; l.held[of] == 0 {
		delete(l.held, of)
	}
	l.open.Add(-1)
}

// refuse answers a connection of an address that has its share. Nothing was written to it, so that
// the system has room for the answer and no write waits.
func (l *bounded) refuse(c net.Conn) {
	text := fmt.Sprintf("this address has %d of the %d connections that one may have here, of %d\n",
		l.each, l.each, l.most)
	_, _ = fmt.Fprintf(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"+
		"Retry-After: %d\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		int(headerTime/time.Second), len(text), text)
	_ = c.Close()
}

func (l *bounded) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Load() >= l.most { // one goroutine accepts
			_ = c.Close() // nobody was answered on it
			continue
		}
		of := partyOf(c)
		if !l.take(of) {
			l.refuse(c)
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(kernelMax) // a wish; without it the system decides
		}
		return &counted{Conn: c, of: l, party: of}, nil
	}
}

// counted is a connection that writes at the pace of all, and gives its place back once.
type counted struct {
	net.Conn
	of     *bounded
	party  netip.Addr
	closed atomic.Bool
}

func (c *counted) Write(b []byte) (int, error) {
	time.Sleep(c.of.pace.wait(len(b)))
	return c.Conn.Write(b)
}

func (c *counted) Close() error {
	if c.closed.CompareAndSwap(false, true) {
		c.of.giveBack(c.party)
	}
	return c.Conn.Close()
}

// pace has all who write take turns.
type pace struct {
	mu   sync.Mutex
	free time.Time // when the next may begin
}

// wait is how long who writes so many bytes has to wait.
func (p *pace) wait(bytes int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	begin := now
	if p.free.After(now) {
		begin = p.free
	}
	p.free = begin.Add(writeTime + time.Duration(bytes)*time.Second/bandwidth)
	return begin.Sub(now)
}
