//go:build !race && !asan && !checked

package lua_test

// judged is true in builds that allocate as a release build does.
const judged = true
