//go:build !linux || !cgo

package crash

import "unsafe"

const supported = false

func watch(Range) error { return nil }

func unwatch(_, _ unsafe.Pointer, _ uintptr) {}
