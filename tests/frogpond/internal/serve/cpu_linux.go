package serve

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock reads the CPU time of the calling thread.
type cpuClock struct{ spec unix.Timespec }

func (c *cpuClock) now() time.Duration {
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &c.spec) != nil {
		return 0
	}
	return time.Duration(c.spec.Nano())
}
