// Package group runs a process in a memory cgroup. The limit of the cgroup is the sum of a plan,
// with the plan's Go share and C heap, and a constant. The process fills SQLite, a wasm guest, C's
// malloc and the Go heap, one after the other. Each of them gets an error of its own when it is
// full, and the kernel doesn't end the process.
package group
