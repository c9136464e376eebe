package budget_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestWorkerOutlivesAnError: the example's worker goes on after a read that fails, as on Windows
// the read of a packet that is too long. Here it fails by a deadline.
func TestWorkerOutlivesAnError(t *testing.T) {
	step.Machine(t, step.Loopback())
	b := open(t, planOf(8*budget.KiB))
	worlds, err := budget.Load(context.Background(), b.Region("worlds"), loadWorlds)
	require.NoError(t, err)
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Unix(1, 0)))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		worlds.Get()[0].serve(conn, b.Scratch(0, 0))
	}()
	select {
	case <-ended:
		t.Error("the worker has ended")
	case <-time.After(50 * time.Millisecond): // by then it has read; if not, the test finds less
		require.NoError(t, conn.SetReadDeadline(time.Time{}))
		assert.Equal(t, "done", ask(conn.LocalAddr(), 1))
	}
	require.NoError(t, conn.Close())
	<-ended
}
