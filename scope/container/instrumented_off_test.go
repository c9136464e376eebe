//go:build !race && !asan

package container_test

const instrumented = false
