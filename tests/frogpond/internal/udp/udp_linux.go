package udp

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/scope"
)

const familyIPv4, familyIPv6 = unix.AF_INET, unix.AF_INET6

// batch has the headers for the system. They point into memory of the same scope, which doesn't
// move.
type batch struct {
	messages []message
	vectors  []vector
	controls []control
	send     func(fd uintptr) // made once, so that no call allocates
	rest     []message        // not sent so far
	refused  uint64
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

// control has space for two of the system's struct cmsghdr, each with the local address of a
// datagram. An IPv6 socket reports an IPv4 address twice, in both forms.
type control [9]uint64

func (c *control) bytes() []byte { return (*[unsafe.Sizeof(*c)]byte)(unsafe.Pointer(c))[:] }

var (
	messageMaker = scope.Plain[message]()
	vectorMaker  = scope.Plain[vector]()
	controlMaker = scope.Plain[control]()
)

func (m *batch) make(s scope.Scope, b *Batch) {
	m.messages, m.vectors = messageMaker.Slice(s, b.Cap()), vectorMaker.Slice(s, b.Cap())
	m.controls = controlMaker.Slice(s, b.Cap())
	m.send = m.sendNow
	for i := range m.messages {
		m.vectors[i] = vector{uintptr(unsafe.Pointer(&b.buffers[i*b.size])), uintptr(b.size)}
		m.messages[i].header = header{name: uintptr(unsafe.Pointer(&b.addresses[i])),
			nameSize: uint32(len(b.addresses[i].Bytes)), vectors: uintptr(unsafe.Pointer(&m.vectors[i])),
			vectorCount: 1, control: uintptr(unsafe.Pointer(&m.controls[i])),
			controlSize: unsafe.Sizeof(m.controls[i])}
	}
}

func (m *batch) received(i int) int { return int(m.messages[i].received) }

func (m *batch) sends(b *Batch, i, size int) {
	m.messages[i].nameSize = b.addresses[i].Size
	m.messages[i].controlSize = m.controls[i].sendFrom(&b.addresses[i])
	m.vectors[i].size = uintptr(size)
}

// sendFrom sets the local address to send from, and returns the number of bytes used.
func (c *control) sendFrom(to *Address) uintptr {
	if to.Local == ([16]byte{}) {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(c))
	data := c.bytes()[unix.CmsgLen(0):]
	clear(data)
	if isMapped(to.Local[:]) { // struct in_pktinfo: the interface, the source, the destination
		h.Level, h.Type = unix.IPPROTO_IP, unix.IP_PKTINFO
		copy(data[4:8], to.Local[len(mapped):])
		h.SetLen(unix.CmsgLen(unix.SizeofInet4Pktinfo))
		return uintptr(unix.CmsgSpace(unix.SizeofInet4Pktinfo))
	}
	// struct in6_pktinfo: the source, the interface
	h.Level, h.Type = unix.IPPROTO_IPV6, unix.IPV6_PKTINFO
	copy(data[:16], to.Local[:])
	h.SetLen(unix.CmsgLen(unix.SizeofInet6Pktinfo))
	return uintptr(unix.CmsgSpace(unix.SizeofInet6Pktinfo))
}

// local returns the address that a datagram was sent to. For a datagram to several machines it
// returns the address to answer from. It returns zeros if the system reported no address.
func (c *control) local(size uintptr) (ip [16]byte) {
	for rest := c.bytes()[:size]; len(rest) >= unix.CmsgLen(0); {
		h, data, next, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			break
		}
		rest = next
		switch {
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO:
			copy(ip[:], mapped[:])
			copy(ip[len(mapped):], data[4:8])
			return ip
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO:
			const multicast = 0xff
			if data[0] != multicast && !isMapped(data) {
				copy(ip[:], data)
			}
		}
	}
	return ip
}

// Socket is a UDP socket. One goroutine may receive; any number may send, each with a batch of its
// own.
type Socket struct {
	conn    *net.UDPConn
	raw     syscall.RawConn
	granted int
	receive func(fd uintptr) bool // made once, so that no call allocates
	into    *Batch                // of the current Receive
	count   int
	failed  syscall.Errno
	unsent  atomic.Uint64
	passed  error // the error of Pass
}

// Listen opens a socket on an address: "127.0.0.1:0", or ":7777" for all addresses of the machine,
// IPv4 and, if the machine has it, IPv6. It requests a receive buffer of buffer bytes.
func Listen(address string, buffer int) (*Socket, error) {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, err
	}
	return newSocket(conn.(*net.UDPConn), buffer)
}

// Pass sends the socket to another process, with a text. Both processes then have the socket. Close
// it in one of them, or stop to receive: each datagram arrives once.
func (s *Socket) Pass(to *net.UnixConn, text string) error {
	err := s.raw.Control(func(fd uintptr) {
		_, _, s.passed = to.WriteMsgUnix([]byte(text), unix.UnixRights(int(fd)), nil)
	})
	return errors.Join(err, s.passed)
}

// Receive waits for a socket that another process passes, and reads the text with it.
func Receive(from *net.UnixConn, buffer int) (*Socket, error) {
	text, rights := make([]byte, 512), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := from.ReadMsgUnix(text, rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("udp: the other process passed no socket"), err)
	}
	list, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(list[0]), "socket")
	conn, err := net.FilePacketConn(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	u, ok := conn.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(errors.New("udp: the other process passed another kind of socket"), conn.Close())
	}
	return newSocket(u, buffer)
}

func newSocket(conn *net.UDPConn, buffer int) (s *Socket, err error) {
	s = &Socket{conn: conn}
	if s.raw, err = s.conn.SyscallConn(); err == nil {
		err = errors.Join(s.raw.Control(func(fd uintptr) {
			err = errors.Join(s.ask(int(fd), buffer), s.askLocal(int(fd)))
		}), err)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("udp: %s: %w", conn.LocalAddr(), err), conn.Close())
	}
	s.receive = s.receiveNow
	return s, nil
}

// ask requests a receive buffer. It first tries to exceed the system's limit, which only root may.
func (s *Socket) ask(fd, buffer int) (err error) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		if err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer); err != nil {
			return err
		}
	}
	s.granted, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	return err
}

// askLocal requests the local address of each datagram, if the socket is on all addresses.
func (s *Socket) askLocal(fd int) error {
	ip := s.conn.LocalAddr().(*net.UDPAddr).IP
	if !ip.IsUnspecified() {
		return nil
	}
	err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	if ip.To4() == nil { // such a socket also receives IPv4
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1))
	}
	return err
}

// Granted returns the bytes of the receive buffer, including the system's own bookkeeping.
func (s *Socket) Granted() int { return s.granted }

// Addr returns the address of the socket.
func (s *Socket) Addr() net.Addr { return s.conn.LocalAddr() }

// Interrupt makes Receive return os.ErrDeadlineExceeded at once, until Resume.
func (s *Socket) Interrupt() error { return s.conn.SetReadDeadline(time.Unix(1, 0)) }

// Resume ends an Interrupt.
func (s *Socket) Resume() error { return s.conn.SetReadDeadline(time.Time{}) }

// Close closes the socket. Receive and Send then return net.ErrClosed.
func (s *Socket) Close() error { return s.conn.Close() }

// Receive waits for datagrams, receives as many as wait and fit in b, and returns their number.
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
		a := &b.addresses[i]
		a.Size, a.Local = m.nameSize, b.system.controls[i].local(m.controlSize)
		m.nameSize, m.controlSize = uint32(len(a.Bytes)), unsafe.Sizeof(control{})
	}
	return s.count, nil
}

// receiveNow receives the waiting datagrams. It returns false if none waits; then the runtime
// waits.
func (s *Socket) receiveNow(fd uintptr) bool {
	for {
		m := s.into.system.messages
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)),
			unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EINTR || errno == unix.ECONNREFUSED { // of a datagram sent earlier
			continue
		}
		s.count, s.failed = int(n), errno
		return errno != unix.EAGAIN
	}
}

// Send sends the added datagrams, and empties the batch. It doesn't wait: datagrams that the system
// refuses, or has no space for, are lost and counted. It returns an error only if the socket is
// closed.
func (s *Socket) Send(b *Batch) error {
	m := &b.system
	m.rest, m.refused = m.messages[:b.count], 0
	b.count = 0
	// Control keeps the descriptor open meanwhile. The number of a closed one may be that of
	// another socket, which would get the datagrams.
	err := s.raw.Control(m.send)
	s.unsent.Add(m.refused)
	return err
}

// sendNow sends the rest.
func (m *batch) sendNow(fd uintptr) {
	for len(m.rest) > 0 {
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&m.rest[0])), uintptr(len(m.rest)),
			unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0:
			m.rest = m.rest[n:]
		case errno != unix.EINTR:
			m.refused++ // the first one was refused; the others may pass
			m.rest = m.rest[1:]
		}
	}
}

// Unsent returns the number of datagrams that the system refused to send.
func (s *Socket) Unsent() uint64 { return s.unsent.Load() }

// Dropped returns the number of datagrams that found the system's receive buffer full.
func (s *Socket) Dropped() uint64 {
	const drops = 8 // the index of sk_drops in SO_MEMINFO
	var info [9]uint32
	size := uint32(unsafe.Sizeof(info))
	failed := s.raw.Control(func(fd uintptr) {
		if _, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0); errno != 0 {
			info[drops] = 0
		}
	})
	if failed != nil {
		return 0
	}
	return uint64(info[drops])
}
