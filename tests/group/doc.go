// Package group runs a process in a memory cgroup whose limit is the sum of a plan, its Go share
// and its C heap, and a constant. The process fills SQLite, a wasm guest, C's malloc and the Go
// heap, one after the other. Each is refused in its own words, and the kernel kills nothing.
package group
