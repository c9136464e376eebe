//go:build race || asan

package arena_test

const instrumented = true
