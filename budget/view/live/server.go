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

// Server serves a page or another read-only handler, with limits on time and connections.
type Server struct {
	http   http.Server
	listen *bounded
	cancel context.CancelFunc
	ended  chan struct{}
}

// ServerOptions are the limits of a server.
type ServerOptions struct {
	Public      bool // accept addresses that other machines can reach
	Connections int  // most at once; 0 is 128. Further connections are closed without an answer

	// PerAddress is the maximum of connections from one IP address, or from all addresses of an
	// IPv6 /64 together. 0 is a quarter of Connections, so that one address can't take all
	// connections. Further connections get status 503. Behind a proxy all viewers have the proxy's
	// address.
	PerAddress int
}

const (
	connections = 128
	headerMax   = 4 << 10  // bytes of a request; net/http adds as many
	kernelMax   = 64 << 10 // bytes of unread answers in the system

	bandwidth = 64 << 20               // bytes a second for all together
	writeTime = 200 * time.Microsecond // for each write, in addition
)

// Time limits of a connection.
const (
	headerTime   = 5 * time.Second
	shutdownTime = time.Second
)

// Listen serves h on a TCP address, such as "127.0.0.1:0" (port 0 means any free port), in a
// goroutine of its own until Close. Listen fails if it can't listen on the address. Unless o.Public
// is set, Listen also fails if other machines can reach the address.
//
// A request must arrive within 5 seconds after the connection began. A later request must begin
// within 5 seconds after the last answer, and arrive within 5 seconds more. The request's header
// may have 8 KiB. Each connection takes one or two goroutines, and 64 KiB or more of the system's
// memory while its answer is unread. All connections together write at most 64 MiB a second, and at
// most 5000 times a second. So clients that send requests without pause have to wait.
//
// Listen fails if a number of o is negative.
func Listen(address string, h http.Handler, o ServerOptions) (*Server, error) {
	if o.Connections < 0 || o.PerAddress < 0 {
		return nil, fmt.Errorf("live: BUG: a server with ServerOptions.Connections of %d and PerAddress of %d: "+
			"give 0 (the default) or more", o.Connections, o.PerAddress)
	}
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

func serve(listener net.Listener, h http.Handler, o ServerOptions) *Server {
	ctx, cancel := context.WithCancel(context.Background())
	most := cmp.Or(o.Connections, connections)
	s := &Server{
		listen: &bounded{Listener: listener, most: int64(most), each: cmp.Or(o.PerAddress, max(1, most/4)),
			held: map[netip.Addr]int{}},
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
		_ = s.http.Serve(s.listen) // ends only by Close
	}()
	return s
}

// URL returns the server's address: "http://127.0.0.1:43210/".
func (s *Server) URL() string { return "http://" + s.listen.Addr().String() + "/" }

// Close stops the server. It ends streams, waits up to a second for other answers, and then cuts
// connections.
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

// bounded is a listener that closes further connections while too many are open.
type bounded struct {
	net.Listener
	most int64
	each int // of one address
	open atomic.Int64
	pace pace
	mu   sync.Mutex
	held map[netip.Addr]int // connections of each
}

// partyOf returns the origin of a connection: an IPv4 address, or the first 64 bits of an IPv6
// address. For a connection that isn't TCP it returns the zero Addr.
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
	prefix, _ := ip.Prefix(network) // never fails for IPv6
	return prefix.Addr()
}

// take reserves a connection, if its address may have another.
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

// refuse answers a connection that its address may not have. The answer is the first write, so the
// system has room for it, and the write doesn't wait.
func (l *bounded) refuse(c net.Conn) {
	text := fmt.Sprintf("this address has %d of the %d connections that one address may have; the server has %d\n",
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
		if l.open.Load() >= l.most { // only one goroutine accepts
			_ = c.Close() // no answer was written
			continue
		}
		of := partyOf(c)
		if !l.take(of) {
			l.refuse(c)
			continue
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetWriteBuffer(kernelMax) // on failure the system's default stays
		}
		return &counted{Conn: c, of: l, party: of}, nil
	}
}

// counted is a connection that writes at the common pace, and frees its place once.
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

// pace makes writers take turns.
type pace struct {
	mu   sync.Mutex
	free time.Time // when the next write may start
}

// wait returns the time until a write of that many bytes may start, and reserves the turn.
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
