//go:build !unix

package bots

import (
	"errors"
	"net"
	"os"
	"time"
)

// socket is a bot's socket on package net. Each deadline that passes allocates an error.
type socket struct {
	*net.UDPConn
	buffer [1500]byte
}

func dial(to *net.UDPAddr) (*socket, error) {
	c, err := net.DialUDP("udp", nil, to)
	return &socket{UDPConn: c}, err
}

// wait passes the packets that arrive within d to take.
func (s *socket) wait(d time.Duration, take func(packet []byte)) error {
	if err := s.SetReadDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	for {
		n, err := s.Read(s.buffer[:])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err == nil { // an error means that the server's port was closed
			take(s.buffer[:n])
		}
	}
}

// send sends a packet. It ignores errors, because a network also loses packets.
func (s *socket) send(packet []byte) { s.Write(packet) }
