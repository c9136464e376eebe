//go:build !amd64 && !arm64 && !arm

package budget

import (
	"fmt"
	"runtime"
)

// goroutine is the number at the head of the stack trace: "goroutine 7 [running]".
func goroutine() (number uintptr) {
	var trace [64]byte
	if _, err := fmt.Sscanf(string(trace[:runtime.Stack(trace[:], false)]), "goroutine %d ", &number); err != nil {
		panic("budget: the runtime doesn't number its goroutines: " + err.Error())
	}
	return number
}
