package clienttest

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/step"
)

// Listen returns a server on a local socket, which plays until the test ends, and its address.
func Listen(t testing.TB, places int) (s *Server, address string) {
	t.Helper()
	step.Machine(t, step.Loopback())
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	s = New(places, func(to string, p []byte) {
		address, err := net.ResolveUDPAddr("udp", to)
		if err == nil {
			socket.WriteToUDP(p, address)
		}
	})
	var lock sync.Mutex
	var group sync.WaitGroup
	stop := make(chan struct{})
	group.Go(func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := socket.ReadFromUDP(buffer)
			if err != nil {
				return
			}
			lock.Lock()
			s.Handle(from.String(), buffer[:n])
			lock.Unlock()
		}
	})
	group.Go(func() {
		ticks := time.NewTicker(time.Second / 35)
		defer ticks.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticks.C:
				lock.Lock()
				s.Play()
				lock.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		socket.Close()
		group.Wait()
	})
	return s, socket.LocalAddr().String()
}
