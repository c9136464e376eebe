//go:build !unix

package bots

import (
	"errors"
	"net"
	"os"
	"time"
)

// socket is a bot's, by what package net has: a deadline that passes allocates an error.
type socket struct {
	*net.UDPConn
	buffer [1500]byte
}

func dial(to *net.UDPAddr) (*socket, error) {
	c, err := net.DialUDP("udp", nil, to)
	return &socket{UDPConn: c}, err
}

// wait gives what comes within a time.
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
		if err == nil { // else nobody is there yet, or any more
			take(s.buffer[:n])
		}
	}
}

// send may fail, as on a real network: nobody is told.
func (s *socket) send(packet []byte) { s.Write(packet) }
