//go:build !race && !checked && !asan && !upfront_cgo

package arrow_test

const release = true
