//go:build !race && !asan && !memdebug

package budget

import "math"

// wideMost is the most that Measure asks for: it may well be beyond the machine's memory, since only what is used becomes
// present, and a small part of what the narrowest address space has, of 39 bits; where they have 32, a sixteenth.
const wideMost uint64 = min(16*GiB, math.MaxUint/16)
