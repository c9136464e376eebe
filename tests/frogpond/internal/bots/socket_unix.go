//go:build unix

package bots

import (
	"net"
	"syscall"
	"time"
)

// socket is a bot's. What comes is taken when the bot wakes for its tick: with thousands of bots
// there is no time to wake for each packet. So it sleeps, and then reads what is there, which
// allocates nothing; a deadline that passes would allocate an error.
type socket struct {
	*net.UDPConn
	raw    syscall.RawConn
	drain  func(fd uintptr) bool
	take   func(packet []byte)
	buffer [1500]byte
}

// readMost is how many datagrams are taken at once: who is flooded has other things to do too.
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
			if err == syscall.ECONNREFUSED { // of a packet that was sent: nobody is there yet, or any more
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

// wait sleeps, and then gives what came meanwhile.
func (s *socket) wait(d time.Duration, take func(packet []byte)) error {
	if d > 0 {
		time.Sleep(d)
	}
	s.take = take
	return s.raw.Read(s.drain)
}

// send may fail, as on a real network: nobody is told.
func (s *socket) send(packet []byte) { s.Write(packet) }
