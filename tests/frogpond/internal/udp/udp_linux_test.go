package udp

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

func batches(t *testing.T, count, n, size int) (list []*Batch) {
	t.Helper()
	b := budgettest.Open(t, budget.Plan{Name: "udp",
		Regions: []budget.RegionPlan{{Name: "net", Size: budget.MiB}}})
	_, err := budget.Load(t.Context(), b.Region("net"), func(s scope.Scope) (*int, error) {
		for range count {
			list = append(list, NewBatch(s, n, size))
		}
		return new(int), nil
	})
	require.NoError(t, err)
	return list
}

func listen(t *testing.T, address string) *Socket {
	t.Helper()
	step.Machine(t, step.Loopback())
	s, err := Listen(address, 1<<20)
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestThereAndBack(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			if c, err := net.ListenPacket("udp", address); err != nil {
				t.Skip("where this is an address, go test ./tests/frogpond/internal/udp runs it:", err)
			} else {
				c.Close()
			}
			list := batches(t, 2, 16, 100)
			out, in := list[0], list[1]
			a, b := listen(t, address), listen(t, address)
			to := FromAddrPort(netip.MustParseAddrPort(b.Addr().String()))
			for i := range 16 {
				require.NotNil(t, out.Next(&to))
				out.Add(len(fmt.Appendf(out.Next(&to), "number %d", i)))
			}
			assert.Nil(t, out.Next(&to), "a batch of 16 has no 17th")
			require.NoError(t, a.Send(out))
			assert.Zero(t, out.Len())
			for got := 0; got < 16; {
				n, err := b.Receive(in)
				require.NoError(t, err)
				for i := range n {
					assert.Equal(t, fmt.Sprint("number ", got), string(in.Packet(i)))
					assert.Equal(t, a.Addr().String(), in.Address(i).AddrPort().String())
					got++
				}
			}
			answer := *in.Address(0)
			out.Add(copy(out.Next(&answer)[:100], bytes.Repeat([]byte{7}, 100)))
			require.NoError(t, b.Send(out))
			n, err := a.Receive(in)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			assert.Len(t, in.Packet(0), 100)
			assert.Equal(t, to, *in.Address(0), "as the system writes it")
			assert.Zero(t, a.Unsent()+b.Unsent())
		})
	}
}

// Network returns the same number for both forms of an IPv4 address, and for all addresses of an
// IPv6 network of 64 bits.
func TestNetwork(t *testing.T) {
	of := func(text string) uint64 {
		a := FromAddrPort(netip.MustParseAddrPort(text))
		return a.Network()
	}
	for _, same := range [][2]string{{"1.2.3.4:5", "1.2.3.4:6"}, {"1.2.3.4:5", "[::ffff:1.2.3.4]:5"},
		{"[2001:db8:1:2::3]:4", "[2001:db8:1:2:5:6:7:8]:9"}} {
		assert.Equal(t, of(same[0]), of(same[1]), same)
	}
	for _, others := range [][2]string{{"1.2.3.4:5", "1.2.3.5:5"}, {"[::ffff:1.2.3.4]:5", "[::ffff:1.2.3.5]:5"},
		{"[2001:db8:1:2::3]:4", "[2001:db8:1:3::3]:4"}, {"0.0.0.0:5", "[::1]:5"}} {
		assert.NotEqual(t, of(others[0]), of(others[1]), others)
	}
}

func TestTooLong(t *testing.T) {
	in := batches(t, 1, 4, 32)[0]
	s := listen(t, "127.0.0.1:0")
	conn, err := net.Dial("udp", s.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	for _, size := range []int{1000, 0, 32} {
		_, err := conn.Write(make([]byte, size))
		require.NoError(t, err)
		n, err := s.Receive(in)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		assert.Len(t, in.Packet(0), min(size, 32))
	}
}

func TestDropped(t *testing.T) {
	s := listen(t, "127.0.0.1:0")
	assert.GreaterOrEqual(t, s.Granted(), 4096)
	conn, err := net.Dial("udp", s.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	assert.Zero(t, s.Dropped())
	for range s.Granted()/1000 + 1000 { // without a receiver
		_, err := conn.Write(make([]byte, 1000))
		require.NoError(t, err)
	}
	assert.NotZero(t, s.Dropped())
}

func TestUnsent(t *testing.T) {
	out := batches(t, 1, 4, 32)[0]
	s := listen(t, "127.0.0.1:0")
	nowhere := Address{Size: 16} // of no family
	good := FromAddrPort(netip.MustParseAddrPort(s.Addr().String()))
	for _, to := range []*Address{&nowhere, &good, &nowhere, &good} {
		out.Add(len(append(out.Next(to), 1, 2, 3)))
	}
	require.NoError(t, s.Send(out))
	assert.EqualValues(t, 2, s.Unsent(), "those that can go do")
}

func TestClosed(t *testing.T) {
	list := batches(t, 2, 4, 32)
	s := listen(t, "127.0.0.1:0")
	to := FromAddrPort(netip.MustParseAddrPort(s.Addr().String()))
	ended := make(chan error)
	go func() {
		_, err := s.Receive(list[0])
		ended <- err
	}()
	require.NoError(t, s.Close())
	assert.ErrorIs(t, <-ended, net.ErrClosed)
	list[1].Add(len(append(list[1].Next(&to), 1)))
	assert.ErrorIs(t, s.Send(list[1]), net.ErrClosed)
}

// TestClosedNumber: the descriptor's number of a closed socket has another owner soon. A late Send
// doesn't reach that owner.
func TestClosedNumber(t *testing.T) {
	list := batches(t, 1, 4, 32)
	s := listen(t, "127.0.0.1:0")
	to := FromAddrPort(netip.MustParseAddrPort(s.Addr().String()))
	var number int
	require.NoError(t, s.raw.Control(func(fd uintptr) { number = int(fd) }))
	require.NoError(t, s.Close())
	var pair [2]int
	for pair[0] != number && pair[1] != number { // the lowest free number is next
		var err error
		pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		require.NoError(t, err)
		defer unix.Close(pair[0])
		defer unix.Close(pair[1])
	}
	list[0].Add(len(append(list[0].Next(&to), 1)))
	assert.ErrorIs(t, s.Send(list[0]), net.ErrClosed)
	assert.Zero(t, s.Dropped())
	_, err := unix.Read(pair[0]+pair[1]-number, make([]byte, 32))
	assert.ErrorIs(t, err, unix.EAGAIN)
}

func TestNoGoAllocation(t *testing.T) {
	list := batches(t, 2, 4, 32)
	s := listen(t, ":0")
	to := FromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("::ffff:127.0.0.1"),
		uint16(s.Addr().(*net.UDPAddr).Port)))
	to.Local = netip.MustParseAddr("127.0.0.2").As16()
	round := func() {
		for range 4 {
			list[1].Add(len(append(list[1].Next(&to), 1, 2, 3)))
		}
		if s.Send(list[1]) != nil {
			panic("send")
		}
		for got := 0; got < 4; {
			n, err := s.Receive(list[0])
			if err != nil {
				panic(err)
			}
			got += n
		}
	}
	round()
	assert.Zero(t, testing.AllocsPerRun(100, round))
}

// A socket on all addresses answers from the address that the datagram was sent to. A connected
// client accepts answers from no other address.
func TestAnswersFromWhereItWasAsked(t *testing.T) {
	list := batches(t, 2, 4, 32)
	in, out := list[0], list[1]
	s := listen(t, ":0")
	port := s.Addr().(*net.UDPAddr).Port
	for _, c := range asked(t) {
		client, err := net.DialUDP("udp", &net.UDPAddr{IP: c.from, Zone: c.zone},
			&net.UDPAddr{IP: c.to, Zone: c.zone, Port: port})
		require.NoError(t, err, c)
		_, err = client.Write([]byte("who"))
		require.NoError(t, err)
		n, err := s.Receive(in)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		from := *in.Address(0)
		assert.Equal(t, c.to.To16(), net.IP(from.Local[:]), "%v", c)
		assert.Equal(t, client.LocalAddr().(*net.UDPAddr).AddrPort().Port(), from.AddrPort().Port())
		out.Add(len(append(out.Next(&from), "me"...)))
		require.NoError(t, s.Send(out))
		require.NoError(t, client.SetReadDeadline(time.Now().Add(10*time.Second)))
		buffer := make([]byte, 32)
		n, err = client.Read(buffer)
		require.NoError(t, err, "%v hears no answer", c)
		assert.Equal(t, "me", string(buffer[:n]))
		require.NoError(t, client.Close())
	}
	assert.Zero(t, s.Unsent())
}

// question is a datagram from one of this machine's addresses to another.
type question struct {
	from, to net.IP
	zone     string
}

// asked returns some questions that the system alone would answer from another address, and some
// that it would answer from the right one.
func asked(t *testing.T) []question {
	t.Helper()
	one := net.IPv4(127, 0, 0, 1)
	list := []question{{from: one, to: one}, {from: one, to: net.IPv4(127, 0, 0, 2)},
		{from: one, to: net.IPv4(127, 8, 8, 8)}}
	interfaces, err := net.Interfaces()
	require.NoError(t, err)
	for i := range interfaces {
		addresses, err := interfaces[i].Addrs()
		require.NoError(t, err)
		for _, a := range addresses {
			switch ip := a.(*net.IPNet).IP; {
			case ip.To4() != nil:
			case ip.IsLinkLocalUnicast():
				list = append(list, question{ip, ip, interfaces[i].Name})
			default:
				list = append(list, question{from: net.IPv6loopback, to: ip})
			}
		}
	}
	return list
}

// A datagram to several machines is answered from an address of this one.
func TestAsksAll(t *testing.T) {
	in := batches(t, 1, 4, 32)[0]
	s := listen(t, ":0")
	client, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 255, 255, 255),
		Port: s.Addr().(*net.UDPAddr).Port})
	if err != nil {
		t.Skip("where this is an address, go test ./tests/frogpond/internal/udp runs it:", err)
	}
	defer client.Close()
	if _, err := client.Write([]byte("who")); err != nil {
		t.Skip("where this is an address, go test ./tests/frogpond/internal/udp runs it:", err)
	}
	_, err = s.Receive(in)
	require.NoError(t, err)
	local := net.IP(in.Address(0).Local[:])
	assert.Equal(t, net.IPv4(127, 0, 0, 1), local)
}
