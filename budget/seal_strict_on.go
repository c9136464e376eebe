//go:build memdebug

package budget

// strictBuild says whether Strict looks at the Go heap.
const strictBuild = true
