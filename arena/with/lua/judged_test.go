//go:build !race && !asan && !checked

package lua_test

// judged: allocations are those of a release build.
const judged = true
