//go:build !asan

package main

import (
	"fmt"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNoGarbage: repeated joins, hops, chat, ticks and the server's packets make no Go allocation,
// with checkpoints and without.
func TestNoGarbage(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows package net allocates now and then: on Linux, go test ./tests/pond runs it")
	}
	for _, keeps := range []bool{true, false} {
		noGarbage(t, keeps)
	}
}

func noGarbage(t *testing.T, keeps bool) {
	b, s := startOn(t, planOf(t, 2, keeps), listen(t))
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

// TestRoomGarbage: opening and ending a room makes one Go allocation, the Room. A checked build
// also notes the lines that acquired and loaded the slot and made the Hall. With a checkpoint there
// are more, for the ring and the description of its types.
func TestRoomGarbage(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		b, s := startOn(t, planOf(t, 2, keeps), listen(t))
		most := 1.0
		if b.Published().Arenas[0].Counted {
			most = 4
		}
		if s.checkpoints != nil {
			most = 600
		}
		join, leave := []byte("j\x03adalobby"), []byte{kindLeave}
		from := addressOf(s.conn.LocalAddr().(*net.UDPAddr).AddrPort())
		allocations := testing.AllocsPerRun(100, func() {
			s.handle(from, join)
			s.handle(from, leave)
		})
		t.Logf("checkpoints: %v, %.0f allocations", keeps, allocations)
		assert.LessOrEqual(t, allocations, most)
		assert.Equal(t, 101, s.counts.joined)
	}
}
