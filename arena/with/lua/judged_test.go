//go:build !race && !asan && !checked

package lua_test

// judged is true where allocations are those of a release build.
const judged = true
