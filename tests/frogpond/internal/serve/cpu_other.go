//go:build !linux

package serve

import "time"

// cpuClock is unknown on this system.
type cpuClock struct{}

func (*cpuClock) now() time.Duration { return 0 }
