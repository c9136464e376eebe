package serve

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock is the time that the calling thread has had of a processor.
type cpuClock struct{ spec unix.Timespec }

func (c *cpuClock) now() time.Duration {
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &c.spec) != nil {
		return 0
	}
	return time.Duration(c.spec.Nano())
}
