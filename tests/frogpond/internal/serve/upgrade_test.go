//go:build linux

package serve

import (
	"bufio"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/client"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/udp"
	"github.com/upfront-mem/upfront/tests/step"
)

// A server whose heir ends before it plays, or says that it can't, plays on, with its checkpoints
// and files. If the heir has the checkpoints and is silent, the server ends: two servers would read
// one socket.
func TestUpgradeFails(t *testing.T) {
	step.Needs(t, step.Check)
	dir := t.TempDir()
	name := filepath.Join(dir, "place")
	s := begin(t, func(o *Options) {
		o.Checkpoints, o.Saves, o.Scores = name, filepath.Join(dir, "saves"), filepath.Join(dir, "scores")
		o.HTTP, o.Health, o.Inputs = "127.0.0.1:0", "127.0.0.1:0", filepath.Join(dir, "inputs")
	})
	p := s.joins(client.Options{Name: "plays on", Room: 1, Seed: 1})
	s.until("it plays", p.saw(20))
	meet := func() *net.UnixConn {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name + ".sock", Net: "unix"})
		require.NoError(t, err)
		maps, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "[\"MAP01\",\"MAP02\"]\n", maps)
		return conn
	}
	for _, how := range []string{"is gone while it loads", "is gone", "can't"} {
		conn := meet()
		if how != "is gone while it loads" {
			_, err := conn.Write([]byte("ready\n"))
			require.NoError(t, err)
			socket, err := udp.Receive(conn, 0)
			require.NoError(t, err)
			assert.Equal(t, s.address.String(), socket.Addr().String())
			require.NoError(t, socket.Close())
		}
		if how == "can't" {
			_, err := conn.Write([]byte("its types differ\n"))
			require.NoError(t, err)
		}
		require.NoError(t, conn.Close())
		s.until("it plays on", p.sees(20))
	}
	assert.Regexp(t, "doesn't take over: EOF\n(.*\n)*.*plays on", s.said.String())
	assert.Regexp(t, "doesn't take over: its types differ\n(.*\n)*.*plays on", s.said.String())
	_, err := save.OpenCheckpoints(name, save.CheckpointPlan{Slots: 2, Size: checkpointSize, Own: uint64(outlivesSize)})
	assert.ErrorContains(t, err, "has it")

	conn := meet()
	_, err = conn.Write([]byte("ready\n"))
	require.NoError(t, err)
	socket, err := udp.Receive(conn, 0)
	require.NoError(t, err)
	defer socket.Close()
	c, err := save.OpenCheckpoints(name, save.CheckpointPlan{Slots: 2, Size: checkpointSize, Own: uint64(outlivesSize)})
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, conn.Close())
	<-s.ended
	require.NoError(t, s.err)
	assert.Contains(t, s.said.String(), "has it")
	assert.Zero(t, p.Losses+p.WrongStates+p.RoomsEnded)
	assert.EqualValues(t, 1, s.result.Joined)
	assert.Zero(t, s.result.Faults+s.result.Lost+s.result.Unrecorded)
	p.stops()
}
