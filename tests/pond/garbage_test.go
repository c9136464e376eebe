//go:build !asan

package main

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNoGarbage: repeated joins, hops, chat, ticks and the server's packets make no Go allocation.
func TestNoGarbage(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows package net allocates now and then: on Linux, go test ./tests/pond runs it")
	}
	b, s := start(t, 2)
	var all []*client
	for i := range 12 {
		name, room := fmt.Sprintf("player %d", i), []string{"lobby", "attic"}[i%2]
		all = append(all, enter(t, s.conn.LocalAddr(), name, room))
	}
	says := []byte("shello, all of you: this is a line of many bytes")
	hops := []byte{kindHop, 1, 2, 3, 4}
	rounds := func(n int) {
		for range n {
			for _, c := range all {
				c.send(says)
				c.send(hops)
				c.settle()
			}
			s.step()
		}
	}
	rounds(100)
	assert.NoError(t, b.NoHeap(func() { rounds(100) }))
}

// TestRoomGarbage: opening and ending a room makes Go allocations for the ring and the description
// of its types, and their number is bounded.
func TestRoomGarbage(t *testing.T) {
	_, s := start(t, 2)
	join, leave := []byte("j\x03adalobby"), []byte{kindLeave}
	from := addressOf(s.conn.LocalAddr().(*net.UDPAddr).AddrPort())
	most := testing.AllocsPerRun(100, func() {
		s.handle(from, join)
		s.handle(from, leave)
	})
	t.Logf("%.0f allocations", most)
	assert.Less(t, most, 600.0)
	assert.Equal(t, 101, s.counts.joined)
}
