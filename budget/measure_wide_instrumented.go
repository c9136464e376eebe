//go:build race || asan || memdebug

package budget

// wideMost is the most that Measure asks for: these builds touch every byte of a budget, or a shadow of it.
const wideMost uint64 = 256 * MiB
