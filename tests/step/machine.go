package step

import (
	"errors"
	"fmt"
	"net"
)

// A Need is a part of the machine that a test uses: open files, addresses, locked memory, loopback.
type Need struct{ lack func() string }

// lacking returns the first of the needs that the machine lacks, with the limit found, or "".
func lacking(needs []Need) string {
	for _, need := range needs {
		if lack := need.lack(); lack != "" {
			return lack
		}
	}
	return ""
}

// Machine skips t if the machine lacks one of the needs. The message has the need and the limit
// found. If REQUIRE_ALL is set, Machine fails t instead.
func Machine(t T, needs ...Need) {
	t.Helper()
	if lack := lacking(needs); lack != "" {
		unproven(t, "the test needs "+lack, "")
	}
}

// Has reports whether the machine has all of the needs. Use it for a part of a test.
func Has(needs ...Need) bool { return lacking(needs) == "" }

// Files is the need of n open files in all, for the process or for a child that is a Go program.
func Files(n uint64) Need {
	return Need{func() string {
		if limit, ok := limits.files(); ok && limit < n {
			return fmt.Sprintf("%d open files, and the limit (RLIMIT_NOFILE) is %d", n, limit)
		}
		return ""
	}}
}

// Addresses is the need of this many bytes of addresses, in addition to those in use.
func Addresses(bytes uint64) Need {
	return Need{func() string {
		limit, used, ok := limits.addresses()
		if left := limit - min(used, limit); ok && left < bytes {
			return fmt.Sprintf("%d bytes of addresses, and the limit (RLIMIT_AS) of %d leaves %d",
				bytes, limit, left)
		}
		return ""
	}}
}

// PlentyOfAddresses is the need of a process without a limit on its addresses. Under a limit,
// package platform reserves no more than a caller requests.
func PlentyOfAddresses() Need {
	return Need{func() string {
		if limit, _, ok := limits.addresses(); ok {
			return fmt.Sprintf("any number of addresses, and the limit (RLIMIT_AS) is %d", limit)
		}
		return ""
	}}
}

// LockedMemory is the need to lock this many bytes. Machine tries to lock them, because a right of
// the process (CAP_IPC_LOCK) removes the limit.
func LockedMemory(bytes uint64) Need {
	return Need{func() string {
		if limit, err := limits.lock(bytes); err != nil {
			return fmt.Sprintf("%d bytes of locked memory, and the limit (RLIMIT_MEMLOCK) is %d without "+
				"CAP_IPC_LOCK: %v", bytes, limit, err)
		}
		return ""
	}}
}

// Loopback is the need of packets from 127.0.0.1 to 127.0.0.1. A new network namespace has none.
func Loopback() Need {
	return Need{func() string {
		if err := limits.loopback(); err != nil {
			return fmt.Sprintf("the loopback network: %v", err)
		}
		return ""
	}}
}

// limits reads the machine. It is a variable for tests.
var limits = readings{files, addresses, lock, loopback}

// readings are functions that read a limit. Without a limit ok is false.
type readings struct {
	files     func() (limit uint64, ok bool)
	addresses func() (limit, used uint64, ok bool)
	lock      func(bytes uint64) (limit uint64, err error)
	loopback  func() error
}

func loopback() error {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.WriteTo([]byte{0}, conn.LocalAddr())
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return op.Err // without the port, which is another one each time
	}
	return err
}
