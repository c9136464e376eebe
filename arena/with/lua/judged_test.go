//go:build !race && !asan && !checked

package lua_test

// judged: figures, and allocations, are those of a release build.
const judged = true
