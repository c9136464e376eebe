//go:build !race && !asan

package scope_test

const instrumented = false
