package udp

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/scope"
)

const familyIPv4, familyIPv6 = unix.AF_INET, unix.AF_INET6

// batch is the headers as the system reads them. What they lead to lies beside them, in memory that
// doesn't move and lives as long.
type batch struct {
	messages []message
	vectors  []vector
}

// message is the system's struct mmsghdr.
type message struct {
	header
	received uint32
}

// header is the system's struct msghdr.
type header struct {
	name        uintptr
	nameSize    uint32
	vectors     uintptr
	vectorCount uintptr
	control     uintptr
	controlSize uintptr
	flags       int32
}

// vector is the system's struct iovec.
type vector struct{ start, size uintptr }

var (
	messageMaker = scope.Plain[message]()
	vectorMaker  = scope.Plain[vector]()
)

func (m *batch) make(s scope.Scope, b *Batch) {
	m.messages, m.vectors = messageMaker.Slice(s, b.Cap()), vectorMaker.Slice(s, b.Cap())
	for i := range m.messages {
		m.vectors[i] = vector{uintptr(unsafe.Pointer(&b.buffers[i*b.size])), uintptr(b.size)}
		m.messages[i].header = header{name: uintptr(unsafe.Pointer(&b.addresses[i])),
			nameSize: uint32(len(b.addresses[i].Bytes)), vectors: uintptr(unsafe.Pointer(&m.vectors[i])),
			vectorCount: 1}
	}
}

func (m *batch) received(i int) int { return int(m.messages[i].received) }

func (m *batch) sends(b *Batch, i, size int) {
	m.messages[i].nameSize = b.addresses[i].Size
	m.vectors[i].size = uintptr(size)
}

// Socket is a UDP socket. One goroutine receives; any sends, each a batch of its own.
type Socket struct {
	conn    *net.UDPConn
	raw     syscall.RawConn
	fd      int
	granted int
	receive func(fd uintptr) bool // made once: nothing is allocated for a call
	into    *Batch                // of the Receive at work
	count   int
	failed  syscall.Errno
	unsent  atomic.Uint64
}

// Listen opens a socket on an address: "127.0.0.1:0", or ":7777" for IPv4 and, where there is one,
// IPv6. It asks the system for a buffer of so many bytes for what comes.
func Listen(address string, buffer int) (*Socket, error) {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, err
	}
	s := &Socket{conn: conn.(*net.UDPConn)}
	if s.raw, err = s.conn.SyscallConn(); err == nil {
		err = errors.Join(s.raw.Control(func(fd uintptr) { s.fd, err = int(fd), s.ask(int(fd), buffer) }), err)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("udp: %s: %w", address, err), conn.Close())
	}
	s.receive = s.receiveNow
	return s, nil
}

// ask asks for a buffer: first as root may, beyond the system's limit.
func (s *Socket) ask(fd, buffer int) (err error) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer); err != nil {
			return err
		}
	}
	s.granted, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	return err
}

// Granted is the size of the buffer that the system gave, its own bookkeeping included.
func (s *Socket) Granted() int { return s.granted }

// Addr is the address that the socket has.
func (s *Socket) Addr() net.Addr { return s.conn.LocalAddr() }

// Interrupt has Receive return at once, with os.ErrDeadlineExceeded, until Resume.
func (s *Socket) Interrupt() error { return s.conn.SetReadDeadline(time.Unix(1, 0)) }

// Resume has Receive wait again.
func (s *Socket) Resume() error { return s.conn.SetReadDeadline(time.Time{}) }

// Close closes it: Receive returns net.ErrClosed. Nobody may send any more.
func (s *Socket) Close() error { return s.conn.Close() }

// Receive waits for datagrams and says how many there are.
func (s *Socket) Receive(b *Batch) (count int, err error) {
	s.into = b
	if err := s.raw.Read(s.receive); err != nil {
		return 0, err
	}
	if s.failed != 0 {
		return 0, s.failed
	}
	for i := range s.count {
		m := &b.system.messages[i]
		b.addresses[i].Size = m.nameSize
		m.nameSize = uint32(len(b.addresses[i].Bytes))
	}
	return s.count, nil
}

// receiveNow takes what has come. False: nothing, the runtime waits for more.
func (s *Socket) receiveNow(fd uintptr) bool {
	for {
		m := s.into.system.messages
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)),
			unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EINTR || errno == unix.ECONNREFUSED { // of a datagram that was sent
			continue
		}
		s.count, s.failed = int(n), errno
		return errno != unix.EAGAIN
	}
}

// Send sends what was added, and empties the batch. It doesn't wait: what the system has no room
// for, or can't send, is lost as if on the way, and counted. The error is that of a socket which is
// gone.
func (s *Socket) Send(b *Batch) error {
	m := b.system.messages[:b.count]
	b.count = 0
	for len(m) > 0 {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&m[0])),
			uintptr(len(m)), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0:
			m = m[n:]
		case errno == unix.EBADF || errno == unix.ENOTSOCK:
			return errno
		case errno != unix.EINTR:
			s.unsent.Add(1) // the first: the rest may go
			m = m[1:]
		}
	}
	return nil
}

// Unsent is how many datagrams the system refused to send.
func (s *Socket) Unsent() uint64 { return s.unsent.Load() }

// Dropped is how many datagrams came and found no room in the system's buffer.
func (s *Socket) Dropped() uint64 {
	const drops = 8 // the place of sk_drops in what SO_MEMINFO gives
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	if _, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
		return 0
	}
	return uint64(info[drops])
}
