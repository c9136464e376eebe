//go:build unix

package bots

import (
	"net"
	"syscall"
	"time"
)

// socket is a bot's socket. With thousands of bots, a wake-up for each packet costs too much. So
// the bot sleeps until its tick, and then reads all packets. A read deadline would allocate an
// error each time.
type socket struct {
	*net.UDPConn
	raw    syscall.RawConn
	drain  func(fd uintptr) bool
	take   func(packet []byte)
	buffer [1500]byte
}

// readMost is the number of datagrams read at once, so that a flooded bot also does its other work.
const readMost = 64

func dial(to *net.UDPAddr) (*socket, error) {
	c, err := net.DialUDP("udp", nil, to)
	if err != nil {
		return nil, err
	}
	s := &socket{UDPConn: c}
	s.drain = func(fd uintptr) bool {
		for range readMost {
			n, err := syscall.Read(int(fd), s.buffer[:])
			if err == syscall.ECONNREFUSED { // an earlier packet found the port closed
				continue
			}
			if err != nil {
				break
			}
			s.take(s.buffer[:n])
		}
		return true
	}
	s.raw, err = c.SyscallConn()
	return s, err
}

// wait sleeps for d, and then passes the packets that arrived to take.
func (s *socket) wait(d time.Duration, take func(packet []byte)) error {
	if d > 0 {
		time.Sleep(d)
	}
	s.take = take
	return s.raw.Read(s.drain)
}

// send sends a packet. It ignores errors, because a network also loses packets.
func (s *socket) send(packet []byte) { s.Write(packet) }
