//go:build race || asan || checked

package lua_test

const judged = false
