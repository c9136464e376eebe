//go:build !linux

package serve

import "time"

// cpuClock isn't known here.
type cpuClock struct{}

func (*cpuClock) now() time.Duration { return 0 }
