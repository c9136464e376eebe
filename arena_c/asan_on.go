//go:build asan

package arena_c

// Asan says whether AddressSanitizer is on.
const Asan = true
