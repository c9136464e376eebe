//go:build !asan

package arena_c

// Asan reports whether AddressSanitizer is on.
const Asan = false
