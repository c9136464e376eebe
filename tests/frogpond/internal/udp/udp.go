// Package udp receives or sends many datagrams of a socket with one system call: recvmmsg or
// sendmmsg on Linux. Buffers, addresses and headers are in a budget. Receive and Send make no Go
// allocation.
//
//	socket, err := udp.Listen("127.0.0.1:0", 4<<20)
//	in := udp.NewBatch(s, 64, 1200)                  // s: a scope that outlives the socket
//	n, err := socket.Receive(in)                     // waits for the first
//	for i := range n { use(in.Packet(i), in.Address(i)) }
//
//	out := udp.NewBatch(s, 64, 1200)
//	packet := append(out.Next(address), "hello"...)  // nil: the batch is full
//	out.Add(len(packet))
//	err = socket.Send(out)                           // drops and counts refused datagrams
package udp

import (
	"encoding/binary"
	"net/netip"

	"github.com/upfront-mem/upfront/scope"
)

// Address is the source or destination of a datagram, as the system writes it. It is plain data,
// and may be in a budget. Equal addresses have equal bytes.
//
// Local is the machine's address that a datagram was sent to, if the socket is on all of the
// machine's addresses. A datagram to this Address is sent from Local, because a client accepts
// answers only from there. Local has IPv4 addresses in their IPv6 form. If it is zero, the system
// chooses.
type Address struct {
	Bytes [28]byte // a sockaddr_in or a sockaddr_in6
	Size  uint32
	Local [16]byte
}

// IsSize reports whether size is that of an IPv4 or an IPv6 address.
func IsSize(size uint32) bool { return size == ipv4Size || size == uint32(len(Address{}.Bytes)) }

// ipv4Size is the size of a sockaddr_in.
const ipv4Size = 16

// Raw returns the address of the other side, without its unused end. It aliases a.
func (a *Address) Raw() []byte { return a.Bytes[:min(int(a.Size), len(a.Bytes))] }

// mapped begins the IPv6 form of an IPv4 address.
var mapped = [12]byte{10: 0xff, 11: 0xff}

// isMapped reports whether an IPv6 address is the form of an IPv4 address.
func isMapped(ip []byte) bool { return [len(mapped)]byte(ip) == mapped }

// Network returns a number for the network of the address: an IPv4 address, or the first 64 bits of
// an IPv6 address. One party usually has all addresses of such a network.
func (a *Address) Network() uint64 {
	if a.Size != uint32(len(a.Bytes)) {
		return ipv4Network | uint64(binary.BigEndian.Uint32(a.Bytes[4:]))
	}
	ip := a.Bytes[8:24]
	if isMapped(ip) {
		return ipv4Network | uint64(binary.BigEndian.Uint32(ip[len(mapped):]))
	}
	return binary.BigEndian.Uint64(ip)
}

// ipv4Network marks the number of an IPv4 address. No IPv6 network begins with it.
const ipv4Network = 0xffff << 32

// AddrPort returns the address in Go's form.
func (a *Address) AddrPort() netip.AddrPort {
	port := binary.BigEndian.Uint16(a.Bytes[2:])
	if a.Size == uint32(len(a.Bytes)) {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(a.Bytes[8:24])).Unmap(), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(a.Bytes[4:8])), port)
}

// FromAddrPort returns an Address for a socket of the address's family: IPv4, or else IPv6.
func FromAddrPort(from netip.AddrPort) (a Address) {
	binary.BigEndian.PutUint16(a.Bytes[2:], from.Port())
	if from.Addr().Is4() {
		binary.NativeEndian.PutUint16(a.Bytes[:], familyIPv4)
		four := from.Addr().As4()
		a.Size = uint32(4 + copy(a.Bytes[4:], four[:]) + 8)
		return a
	}
	binary.NativeEndian.PutUint16(a.Bytes[:], familyIPv6)
	sixteen := from.Addr().As16()
	copy(a.Bytes[8:], sixteen[:])
	a.Size = uint32(len(a.Bytes))
	return a
}

// Batch is memory for datagrams. It is for one goroutine at a time.
type Batch struct {
	system    batch // the headers for the system
	addresses []Address
	buffers   []byte
	size      int // of a buffer
	count     int // datagrams to send
}

var (
	addressMaker = scope.Plain[Address]()
	byteMaker    = scope.Plain[byte]()
)

// NewBatch makes a batch of n datagrams of at most size bytes in s. If s is full, it unwinds.
func NewBatch(s scope.Scope, n, size int) *Batch {
	b := &Batch{addresses: addressMaker.Slice(s, n), buffers: byteMaker.Slice(s, n*size), size: size}
	b.system.make(s, b)
	return b
}

// Cap returns the number of datagrams that fit.
func (b *Batch) Cap() int { return len(b.addresses) }

// Len returns the number of datagrams to send.
func (b *Batch) Len() int { return b.count }

// Address returns the source of the i-th datagram.
func (b *Batch) Address(i int) *Address { return &b.addresses[i] }

// buffer returns the i-th buffer, empty.
func (b *Batch) buffer(i int) []byte { return b.buffers[i*b.size : i*b.size : (i+1)*b.size] }

// Packet returns the i-th received datagram, cut to the size of a buffer. It is valid until the
// next Receive into b.
func (b *Batch) Packet(i int) []byte { return b.buffer(i)[:b.system.received(i)] }

// Next returns the empty buffer of the next datagram to send, or nil if all buffers are in use.
func (b *Batch) Next(to *Address) []byte {
	if b.count == len(b.addresses) {
		return nil
	}
	b.addresses[b.count] = *to
	return b.buffer(b.count)
}

// Add adds the datagram of size bytes in the buffer that Next returned last.
func (b *Batch) Add(size int) {
	b.system.sends(b, b.count, size)
	b.count++
}
